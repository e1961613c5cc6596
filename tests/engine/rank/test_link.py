from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from omb_py.engine.rank import handshake
from omb_py.engine.rank.link import LOST, Channel, Link, LocalLink
from omb_py.engine.rank.reporting import LinkRefused, report, split_address
from tests.support.machines.mpi import run_command
from tests.support.patience import PATIENCE_S


class Server:
    """The supervisor's end, by hand."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listening.getsockname()[1]}"

    def accept(self, secret: str = "t") -> dict[str, Any]:
        """Let a rank in; what it says of itself."""
        self.peer, _ = self.listening.accept()
        self.peer.settimeout(PATIENCE_S)
        self.lines = self.peer.makefile("rb")
        return handshake.answer(self.peer, self.lines, secret)

    @contextlib.contextmanager
    def accepting(self, secret: str = "t") -> Iterator[list[dict[str, Any]]]:
        """Let a rank of this process in, from a thread; the list gets what it says of itself."""
        hello: list[dict[str, Any]] = []
        thread = threading.Thread(target=lambda: hello.append(self.accept(secret)))
        thread.start()
        yield hello
        thread.join()

    def read(self) -> dict[str, Any]:
        return json.loads(self.lines.readline())

    def send(self, **message: Any) -> None:
        self.peer.sendall(json.dumps(message).encode() + b"\n")

    def hang_up(self) -> None:
        self.lines.close()
        self.peer.close()

    def close(self) -> None:
        if hasattr(self, "peer"):
            self.hang_up()
        self.listening.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def test_a_rank_says_who_it_is_and_gets_the_spec(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "2")
    with server.accepting() as said:
        link = Link.connect(server.address, "t")
    server.send(type="spec", cells=[1, 2], beat_s=0.02)
    assert link.spec()["cells"] == [1, 2]
    hello = said[0]
    assert hello["pid"] == os.getpid()
    assert (hello["env_rank"], hello["env_size"], hello["host"]) == (1, 2, socket.gethostname())
    link.joined(1, 2)
    assert server.read()["size"] == 2
    iteration = iter(range(10_000))
    link.watch(lambda: {"phase": "loop", "iteration": next(iteration)})
    beats = [server.read() for _ in range(3)]
    assert [beat["iteration"] for beat in beats] == [0, 1, 2], "the spec's interval is used"
    server.send(type="exit", code=0)
    assert link.done() == 0
    while (message := server.read())["type"] == "beat":
        pass
    assert message == {"type": "done"}
    link.close()


@pytest.mark.parametrize("ahead_s", [5.0, -5.0, 0.0, 2e6])
def test_the_time_of_the_launch_is_told_by_this_hosts_clock(
    server: Server, monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    """Hosts count from when they booted, and many may have one name."""
    truth = handshake.welcome
    now = 1_000_000_000_000

    def elsewhere(*arguments: Any) -> dict[str, Any]:
        return {**truth(*arguments), "now": now + int(ahead_s * 1e9)}

    monkeypatch.setattr(handshake, "welcome", elsewhere)
    monkeypatch.setattr(handshake, "now_ns", lambda: now)
    with server.accepting():
        link = Link.connect(server.address, "t")
    server.send(type="spec", launched_at=now)
    assert link.spec()["launched_at"] == now - int(ahead_s * 1e9)
    link.close()


def test_clocks_that_agree_as_far_as_a_message_can_tell_are_left_alone(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = iter([0, 4_000_000])  # 4 ms from hello to welcome: 2 ms of error
    truth = handshake.welcome
    monkeypatch.setattr(handshake, "welcome", lambda *a: {**truth(*a), "now": 3_900_000})
    with server.accepting():
        thread = threading.current_thread()
        monkeypatch.setattr(handshake, "now_ns", lambda: next(readings) if threading.current_thread() is thread else 0)
        link = Link.connect(server.address, "t")
    server.send(type="spec", launched_at=10)
    assert link.spec()["launched_at"] == 10
    link.close()


def test_messages_of_many_threads_stay_whole(server: Server) -> None:
    with server.accepting():
        link = Link.connect(server.address, "t")
    threads = [
        threading.Thread(target=lambda k=k: [link.send("cell", k=k, text="x" * 5000) for _ in range(50)])
        for k in range(4)
    ]
    for thread in threads:
        thread.start()
    seen = [server.read()["k"] for _ in range(200)]
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted([0, 1, 2, 3] * 50)
    link.close()


def test_a_position_that_fails_does_not_stop_the_heart(server: Server) -> None:
    with server.accepting():
        link = Link.connect(server.address, "t")
    link.watch(lambda: {}["gone"], interval=0.01)
    assert "KeyError" in server.read()["doing"]
    assert server.read()["type"] == "beat"
    link.close()


@pytest.mark.parametrize(
    ("bound_to", "cores", "expected"),
    [({2}, 4, {0, 1, 3}), ({0, 1}, 4, {2, 3}), ({0, 1, 2, 3}, 4, None), ({0}, 1, None)],
)
def test_heartbeats_leave_the_core_that_measures(
    server: Server, monkeypatch: pytest.MonkeyPatch, bound_to: set[int], cores: int, expected: set[int] | None
) -> None:
    moves: list[tuple[int, set[int], str]] = []

    def move(process: int, to: set[int]) -> None:
        moves.append((process, to, threading.current_thread().name))
        raise PermissionError("the heart beats all the same")

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: bound_to)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(os, "sched_setaffinity", move)
    with server.accepting():
        link = Link.connect(server.address, "t")
    with contextlib.closing(link):
        link.watch(lambda: {"phase": "loop"}, interval=10.0)
        assert server.read() == {"type": "beat", "phase": "loop"}
        assert moves == ([] if expected is None else [(0, expected, "omb-beat")])


def test_a_refused_connection_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[tuple[str, int]] = []
    connect = socket.create_connection
    with Server() as server:

        def slow(place: tuple[str, int], timeout: float) -> socket.socket:
            tries.append(place)
            if len(tries) < 4:
                raise ConnectionRefusedError("not yet")
            return connect(place, timeout)

        monkeypatch.setattr(socket, "create_connection", slow)
        with server.accepting():
            link = Link.connect(f"127.0.0.1:9,{server.address}", "t", timeout=5)
        link.close()
    assert len(tries) == 4


@pytest.mark.parametrize("secret", ["", "s", "secret", "secrets"])
def test_a_supervisor_that_does_not_know_the_secret_is_refused(server: Server, secret: str) -> None:
    """What answers may be another program, or another user's, at a port that is used again."""

    def impostor() -> None:
        peer, _ = server.listening.accept()
        with peer, peer.makefile("rb") as lines:
            handshake.write(peer, {"type": "challenge", "nonce": "0"})
            hello = json.loads(lines.readline())
            claim = handshake.proof(secret, "listener", "0", hello["nonce"]) if secret else ""
            handshake.write(peer, {"type": "welcome", "proof": claim})
            handshake.write(peer, {"type": "spec", "cells": ["of somebody else"]})

    thread = threading.Thread(target=impostor)
    thread.start()
    with pytest.raises(LinkRefused, match="does not know this launch's secret"):
        Link.connect(server.address, "secret?", timeout=0.0)
    thread.join()


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"[" * 5000, b"[]\n", b'{"type":"spec"}\n']
)
def test_another_service_at_the_address_is_refused(server: Server, answer: bytes) -> None:
    def other() -> None:
        peer, _ = server.listening.accept()
        with peer:
            peer.sendall(answer)

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(LinkRefused, match="no supervisor answers at"):
        Link.connect(server.address, "t", timeout=0.0)
    thread.join()


def test_a_supervisor_without_a_secret_is_an_error(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setenv("OMB_PY_CONTROL", server.address)
    monkeypatch.delenv("OMB_PY_TOKEN", raising=False)
    with pytest.raises(LinkRefused, match="OMB_PY_CONTROL is set without OMB_PY_TOKEN"):
        Link.from_environment()


def test_a_rank_has_reported_before_anything_heavy_is_imported() -> None:
    """Importing takes seconds on a loaded machine: a supervisor must not take a rank that imports for a stranger."""
    body = """
import sys
import omb_py.engine.rank.link as link
def reported(self, *arguments):
    heavy = {"numpy", "mpi4py", "llvmlite", "torch", "omb_py.results", "omb_py.backends", "omb_py.suites"}
    raise SystemExit(str(sorted(heavy & sys.modules.keys())))
link.Link.__init__ = reported
link.report = lambda *arguments: ()
from omb_py.orchestrate.running.rank_process import main
main()
"""
    environ = {**os.environ, "OMB_PY_CONTROL": "127.0.0.1:9", "OMB_PY_TOKEN": "t"}
    done = run_command([sys.executable, "-c", body], env=environ)
    assert done.stderr.strip() == "[]"


class Pauses:
    """A clock that only the pauses between two attempts move."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("address", "timeout", "least", "most"),
    [
        ("127.0.0.1:9", 0.2, 0.1, 0.2),
        # where everybody refuses, the supervisor has ended: one second suffices
        ("127.0.0.1:9,127.0.0.1:10", 60, 0.5, 1.0),
    ],
)
def test_nobody_is_waited_for_longer_than_told(
    address: str, timeout: float, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omb_py.engine.rank.reporting.time", clock := Pauses())
    with pytest.raises(LinkRefused, match="no supervisor answers at"):
        Link.connect(address, "t", timeout=timeout)
    assert least <= clock.now <= most


def test_a_rank_that_was_too_slow_reports_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among hundreds of ranks on a core one may not get its turn before the supervisor hangs up."""
    monkeypatch.setattr("omb_py.engine.rank.reporting.time", clock := Pauses())

    def supervise() -> None:
        peer, _ = server.listening.accept()
        with peer:
            handshake.write(peer, {"type": "challenge", "nonce": "0"})
            clock.now += 6.0
        server.accept()

    thread = threading.Thread(target=supervise)
    thread.start()
    link = Link.connect(server.address, "t", timeout=30.0)
    thread.join()
    link.close()


@pytest.mark.parametrize("address", ["", "host", "host:", "a:1,b"])
def test_an_address_must_be_one(address: str) -> None:
    with pytest.raises(ValueError, match="not host:port"):
        split_address(address)


def test_without_the_variables_there_is_no_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMB_PY_CONTROL", raising=False)
    assert Link.from_environment() is None


# what ends a process is tried in a process

BLOCKED = """
import ctypes
from omb_py.engine.rank.link import Link
link = Link.from_environment(5)
link.spec()
link.joined(0, 1)
{blocked}
"""
IN_NATIVE_CODE = "ctypes.CDLL(None).pause()"
COMPUTING = "while True: sum(range(1000))"


Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(server: Server) -> Iterator[Start]:
    """Starts processes that run a body and connect to the server; none outlives the test, whether it passes or not."""
    environ = {**os.environ, "OMB_PY_CONTROL": server.address, "OMB_PY_TOKEN": "t"}
    with contextlib.ExitStack() as children:

        def started(body: str) -> subprocess.Popen[bytes]:
            child = children.enter_context(subprocess.Popen([sys.executable, "-c", body], env=environ))
            children.callback(child.kill)
            server.accept()
            return child

        yield started


@pytest.mark.faults
@pytest.mark.parametrize("blocked", [IN_NATIVE_CODE, COMPUTING])
def test_a_closed_connection_ends_the_rank_whatever_it_does(server: Server, start: Start, blocked: str) -> None:
    child = start(BLOCKED.format(blocked=blocked))
    server.send(type="spec")
    assert server.read()["type"] == "joined"
    server.hang_up()
    assert child.wait(PATIENCE_S) == LOST


@pytest.mark.faults
def test_a_rank_that_is_told_to_end_ends_with_that_code(server: Server, start: Start) -> None:
    child = start(BLOCKED.format(blocked=IN_NATIVE_CODE))
    server.send(type="spec")
    server.read()
    server.send(type="exit", code=2)
    assert child.wait(PATIENCE_S) == 2


@pytest.mark.faults
def test_a_connection_closed_before_the_spec_ends_the_rank(server: Server, start: Start) -> None:
    child = start(BLOCKED.format(blocked=IN_NATIVE_CODE))
    server.hang_up()
    assert child.wait(PATIENCE_S) == LOST


@pytest.mark.slow
def test_a_rank_that_is_done_may_go_on_to_its_end(server: Server, start: Start) -> None:
    child = start(BLOCKED.format(blocked="import time; link.done(); time.sleep(0.2); raise SystemExit(0)"))
    server.send(type="spec")
    server.send(type="exit", code=0)
    server.hang_up()
    assert child.wait(PATIENCE_S) == 0


FOLLOWS = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[1]])
sys.stdin.read()
"""


@pytest.mark.faults
def test_a_stopped_rank_dies_with_its_launcher(server: Server) -> None:
    environ = {**os.environ, "OMB_PY_CONTROL": server.address, "OMB_PY_TOKEN": "t"}
    body = BLOCKED.format(blocked=IN_NATIVE_CODE)
    with subprocess.Popen([sys.executable, "-c", FOLLOWS, body], env=environ, stdin=subprocess.PIPE) as launcher:
        rank = server.accept()["pid"]
        server.send(type="spec", follow_launcher=True)
        assert server.read()["type"] == "joined"
        os.kill(rank, signal.SIGSTOP)
        launcher.kill()
    assert server.lines.readline() == b"", "the kernel closed the rank's connection: it is dead"


@pytest.mark.slow
def test_the_threads_cost_nothing(server: Server, start: Start) -> None:
    body = BLOCKED.format(
        blocked="""
import resource, time
link.watch(lambda: {}, interval=1.0)
time.sleep(0.1)
before = resource.getrusage(resource.RUSAGE_SELF)
time.sleep(1.5)
after = resource.getrusage(resource.RUSAGE_SELF)
link.send("note", cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
          switches=after.ru_nvcsw - before.ru_nvcsw)
link.send("done")
"""
    )
    child = start(body)
    server.send(type="spec")
    beats = 1
    while (message := server.read())["type"] != "note":
        beats += message["type"] == "beat"  # more of them where a busy machine lets it sleep for longer
    assert message["switches"] < 20 * beats, "a thread that polls wakes hundreds of times in 1.5 s"
    # one heartbeat takes 0.5 ms on an idle machine, and several times that on a busy one
    assert message["cpu"] < 0.03 * beats, "seconds of processor in 1.5 s with one heartbeat: a thread spins"
    server.hang_up()
    child.wait(PATIENCE_S)


# until the supervisor is done


@contextlib.contextmanager
def beside(work: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join()


def test_a_rank_waits_for_the_answer_to_its_last_question(server: Server) -> None:
    with server.accepting():
        link = Link.connect(server.address, "t")
    asked: list[dict[str, Any]] = []

    def answer() -> None:
        for times in (2, 1):  # the first answer comes twice, and is none to the second question
            asked.append(server.read())
            for _ in range(times):
                server.send(type="settled", number=asked[-1]["number"])

    with beside(answer):
        for number in (1, 2):
            link.settle()
            assert asked[-1] == {"type": "settle", "number": number}
    link.close()


def test_an_answer_that_an_agent_took_along_is_asked_for_again(server: Server) -> None:
    with Server() as agent:
        with agent.accepting():
            link = Link(report(agent.address, "t", 10), 0, lambda more: report(server.address, "t", 10, more))
        heard: list[dict[str, Any]] = []

        def lose() -> None:
            agent.send(type="spec")
            agent.send(type="settled", number=0)
            agent.read()
            agent.peer.shutdown(socket.SHUT_RDWR)
            heard.append(server.accept())
            server.send(type="confirmed", messages=1)
            heard.append(server.read())
            server.send(type="settled", number=1)

        with beside(lose):
            link.settle()
        link.close()
    assert heard[0]["heard"] == ["spec"], "a line for each cell would be too long for a report"
    assert heard[1] == {"type": "settle", "number": 1}


# in one process


def test_a_local_link_is_a_function_call() -> None:
    said: list[dict[str, Any]] = []

    def handler(message: dict[str, Any]) -> dict[str, Any] | None:
        said.append(message)
        return {"hello": {"cells": [7]}, "done": {"code": 1}}.get(message["type"])

    link: Channel = LocalLink(handler)
    assert link.spec() == {"cells": [7]}
    link.joined(0, 8)
    link.watch(lambda: {"phase": "loop"})
    link.send("cell", index=0)
    link.settle()
    assert link.done() == 1
    assert [message["type"] for message in said] == ["hello", "joined", "beat", "cell", "done"]
    assert said[3]["index"] == 0


def test_a_silent_handler_means_an_empty_spec_and_no_error() -> None:
    link = LocalLink(lambda message: None)
    assert link.spec() == {}
    assert link.done() == 0
    link.close()

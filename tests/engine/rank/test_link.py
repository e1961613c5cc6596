from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from omb_py.engine.rank.link import LOST, Channel, Link, LinkRefused, LocalLink, split_address


class Server:
    """The supervisor's end, by hand."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listening.getsockname()[1]}"

    def accept(self) -> None:
        self.peer, _ = self.listening.accept()
        self.peer.settimeout(10)
        self.lines = self.peer.makefile("rb")

    def read(self) -> dict[str, Any]:
        return json.loads(self.lines.readline())

    def send(self, **message: Any) -> None:
        self.peer.sendall(json.dumps(message).encode() + b"\n")

    def hang_up(self) -> None:
        self.lines.close()
        self.peer.close()

    def close(self) -> None:
        self.hang_up()
        self.listening.close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def test_a_rank_says_who_it_is_and_gets_the_spec(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "2")
    link = Link.connect(server.address, "secret")
    server.accept()
    server.send(type="spec", cells=[1, 2], beat_s=0.02)
    assert link.hello()["cells"] == [1, 2]
    hello = server.read()
    assert (hello["type"], hello["token"], hello["pid"]) == ("hello", "secret", os.getpid())
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


def test_messages_of_many_threads_stay_whole(server: Server) -> None:
    link = Link.connect(server.address, "t")
    server.accept()
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
    link = Link.connect(server.address, "t")
    server.accept()
    link.watch(lambda: {}["gone"], interval=0.01)
    assert "KeyError" in server.read()["doing"]
    assert server.read()["type"] == "beat"
    link.close()


def test_a_refused_connection_is_tried_again() -> None:
    with socket.socket() as later:
        later.bind(("127.0.0.1", 0))  # reserved, not listening: refused
        address = f"127.0.0.1:{later.getsockname()[1]}"
        timer = threading.Timer(0.15, later.listen)
        timer.start()
        link = Link.connect(f"127.0.0.1:9,{address}", "t", timeout=5)
        timer.join()
        link.close()


def test_nobody_there_is_said_in_time() -> None:
    began = time.monotonic()
    with pytest.raises(LinkRefused, match="no supervisor answers at"):
        Link.connect("127.0.0.1:9", "t", timeout=0.2)
    assert time.monotonic() - began < 1


def test_a_supervisor_that_has_ended_is_not_waited_for() -> None:
    began = time.monotonic()
    with pytest.raises(LinkRefused):
        Link.connect("127.0.0.1:9,127.0.0.1:10", "t", timeout=60)
    assert time.monotonic() - began < 4


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
link.hello()
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
    assert [server.read()["type"], server.read()["type"]] == ["hello", "joined"]
    server.hang_up()
    assert child.wait(2) == LOST


@pytest.mark.faults
def test_a_rank_that_is_told_to_end_ends_with_that_code(server: Server, start: Start) -> None:
    child = start(BLOCKED.format(blocked=IN_NATIVE_CODE))
    server.send(type="spec")
    server.read()
    server.read()
    server.send(type="exit", code=2)
    assert child.wait(2) == 2


@pytest.mark.faults
def test_a_connection_closed_before_the_spec_ends_the_rank(server: Server, start: Start) -> None:
    child = start(BLOCKED.format(blocked=IN_NATIVE_CODE))
    assert server.read()["type"] == "hello"
    server.hang_up()
    assert child.wait(2) == LOST


def test_a_rank_that_is_done_may_go_on_to_its_end(server: Server, start: Start) -> None:
    child = start(BLOCKED.format(blocked="import time; link.done(); time.sleep(0.2); raise SystemExit(0)"))
    server.send(type="spec")
    server.send(type="exit", code=0)
    server.hang_up()
    assert child.wait(5) == 0


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
        server.accept()
        server.send(type="spec", follow_launcher=True)
        rank = server.read()["pid"]
        assert server.read()["type"] == "joined"
        os.kill(rank, signal.SIGSTOP)
        launcher.kill()
    assert server.lines.readline() == b"", "the kernel closed the rank's connection: it is dead"


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
    while (message := server.read())["type"] != "note":
        pass
    assert message["switches"] < 20, "a thread that polls wakes hundreds of times in 1.5 s"
    # one heartbeat takes 0.5 ms on an idle machine, and several times that on a busy one
    assert message["cpu"] < 0.03, "seconds of processor in 1.5 s with one heartbeat: a thread spins"
    server.hang_up()
    child.wait(5)


# in one process


def test_a_local_link_is_a_function_call() -> None:
    said: list[dict[str, Any]] = []

    def handler(message: dict[str, Any]) -> dict[str, Any] | None:
        said.append(message)
        return {"hello": {"cells": [7]}, "done": {"code": 1}}.get(message["type"])

    link: Channel = LocalLink(handler)
    assert link.hello() == {"cells": [7]}
    link.joined(0, 8)
    link.watch(lambda: {"phase": "loop"})
    link.send("cell", index=0)
    assert link.done() == 1
    assert [message["type"] for message in said] == ["hello", "joined", "beat", "cell", "done"]
    assert said[3]["index"] == 0


def test_a_silent_handler_means_an_empty_spec_and_no_error() -> None:
    link = LocalLink(lambda message: None)
    assert link.hello() == {}
    assert link.done() == 0
    link.close()

"""Ranks behind the agent of their node."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omb_py.engine.rank import handshake, reporting
from omb_py.engine.rank.link import AGENTS_VARIABLE
from omb_py.errors import LaunchFailed, UsageError
from omb_py.orchestrate.supervision import wire
from omb_py.orchestrate.supervision.agent_start import wanted
from omb_py.orchestrate.supervision.branches import Branches
from omb_py.orchestrate.supervision.node_agent import Agent, AgentLoop
from omb_py.orchestrate.supervision.supervisor import Handlers, Outcome, Supervisor
from omb_py.orchestrate.supervision.wire import Connection, Garbage, Lobby
from tests.orchestrate.supervision.peers import GARBAGE, Clock, Peer, supervising
from tests.orchestrate.supervision.toy import Toy
from tests.support.patience import PATIENCE_S


class Node:
    """An agent in a thread, beside a supervisor in another."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.name = f"\0omb-py-test-{handshake.new_nonce()}"
        self.secret = reporting.agent_secret(supervisor.token)
        server = socket.socket(socket.AF_UNIX)
        server.bind(self.name)
        server.listen()
        reported = reporting.report(supervisor.address, supervisor.token, PATIENCE_S, {"agent": True})
        self.parent = Connection(reported.connection, reported.lines)
        reported.lines.close()
        self.parent.trusted = True
        self.agent = Agent(self.parent, supervisor.token, {"ahead_ns": 0, "host": "10.0.0.5"})

        def run() -> None:
            with server, reported.connection:
                AgentLoop(server, self.parent, self.agent).run()

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def rank(self, number: int, **more: Any) -> Peer:
        """A rank that has reported and has the spec."""
        peer = Peer(self.supervisor, self.name)
        about = peer.hello(self.secret, number, **{"pid": number, "start": 0, **more})
        assert about == {"type": "agent", "ahead_ns": 0, "host": "10.0.0.5"}
        assert peer.read()["type"] == "spec"
        return peer

    def end(self, after: int) -> None:
        """End as a killed process does, once so many ranks are known to the supervisor."""
        until = time.monotonic() + PATIENCE_S
        while len(self.supervisor._states) < after and time.monotonic() < until:
            time.sleep(0.001)
        self.parent.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()


@contextlib.contextmanager
def node(supervisor: Supervisor) -> Iterator[Node]:
    node = Node(supervisor)
    try:
        yield node
    finally:
        node.thread.join(PATIENCE_S)
        assert not node.thread.is_alive()


def finish(ranks: list[Peer]) -> None:
    """Let all ranks come to their end."""
    for number, rank in enumerate(ranks):
        rank.send(type="joined", rank=number, size=len(ranks), host="elsewhere", pid=number)
        rank.send(type="done")
    for rank in ranks:
        while (message := rank.read())["type"] == "meet":
            pass
        assert message == {"type": "exit", "code": 0}
        rank.close()


def test_the_ranks_of_a_node_share_a_connection() -> None:
    cells: list[Any] = []
    supervisor = Supervisor({"cells": [1]}, 4, 5.0, handlers=Handlers(cell=cells.append))
    with supervising(supervisor) as result, node(supervisor) as first, node(supervisor) as second:
        ranks = [first.rank(0), second.rank(1), first.rank(2), second.rank(3)]
        assert len(list(supervisor._branches)) == 2
        ranks[0].send(type="meet", place={"port": 7})
        for rank in ranks[1:]:
            assert rank.read() == {"type": "meet", "place": {"port": 7}}
        ranks[3].send(type="cell", index=0)
        finish(ranks)
    assert isinstance(result[0], Outcome)
    assert (result[0].hosts, result[0].notes) == (("elsewhere",) * 4, ())
    assert cells == [{"type": "cell", "index": 0}]


def test_the_spec_travels_once_to_a_node() -> None:
    supervisor = Supervisor({"cells": ["x" * 1000] * 1000}, 3, 5.0)
    sent: list[int] = []
    with supervising(supervisor), node(supervisor) as here:
        receive = here.parent.receive

        def counted(*arguments: int) -> Iterator[bytes]:
            for line in receive(*arguments):
                sent.append(len(line))
                yield line

        here.parent.receive = counted  # type: ignore[method-assign]
        finish([here.rank(number) for number in range(3)])
    assert sum(sent) < 1_100_000


def test_a_large_message_of_a_rank_arrives_whole() -> None:
    cells: list[Any] = []
    supervisor = Supervisor({}, 1, 5.0, handlers=Handlers(cell=cells.append))
    with supervising(supervisor) as result, node(supervisor) as here:
        rank = here.rank(0)
        rank.send(type="cell", index=0, text="y" * 3_000_000)
        assert rank.read() == {"type": "confirmed", "messages": 1}, "the rank need not keep it any longer"
        finish([rank])
    assert isinstance(result[0], Outcome)
    assert len(cells[0]["text"]) == 3_000_000


def test_strangers_at_the_agent_are_dropped_and_disturb_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = Supervisor({"cells": [1]}, 1, 5.0)
    with supervising(supervisor) as result, node(supervisor) as here:
        for garbage in GARBAGE:
            stranger = Peer(supervisor, here.name)
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                stranger.socket.sendall(garbage)
                if garbage:
                    assert stranger.read()["type"] == "challenge"
                    assert stranger.read() == {}, "no word of the spec to a stranger"
            stranger.close()
        for wrong in (supervisor.token, here.secret[:-1], "agent ", "agent none"):
            stranger = Peer(supervisor, here.name)
            with pytest.raises(handshake.Stranger):
                stranger.hello(wrong, 0)
            stranger.close()
        idle = Peer(supervisor, here.name)
        assert idle.read()["type"] == "challenge"
        monkeypatch.setattr(here.agent, "_lobby", lobby := Lobby(here.secret, patience=0.0))
        silent = Peer(supervisor, here.name)
        assert silent.read()["type"] == "challenge"
        Peer(supervisor, here.name).close()  # the agent looks again
        assert silent.read() == {}, "the agent hangs up on who says nothing"
        monkeypatch.setattr(lobby, "_patience", PATIENCE_S)
        finish([here.rank(0)])
        for peer in (idle, silent):
            peer.close()
    assert isinstance(result[0], Outcome)


def test_who_poses_as_the_agent_learns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """When an agent has ended, who saw the name of its socket may take it."""
    name = f"\0omb-py-test-{handshake.new_nonce()}"
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()

        def impostor() -> None:
            peer, _ = server.accept()
            with peer, peer.makefile("rb") as lines:
                handshake.write(peer, {"type": "challenge", "nonce": "0"})
                heard.append(lines.readline())
                handshake.write(peer, {"type": "welcome", "proof": json.loads(heard[0])["proof"]})
                heard.append(lines.readline())

        thread = threading.Thread(target=impostor)
        thread.start()
        assert reporting.report_to_agent(name, "secret", 5.0) is None
        thread.join()
    assert heard[1] == b""
    assert b"secret" not in heard[0]


@pytest.mark.parametrize("report", ["a rule", ""])
def test_a_rank_that_refuses_ends_the_ranks_of_every_node(report: str) -> None:
    supervisor = Supervisor({}, 2, 5.0)
    with supervising(supervisor) as result, node(supervisor) as first, node(supervisor) as second:
        ranks = [first.rank(0), second.rank(1)]
        if report:
            ranks[1].send(type="error", code=2, text=report)
            assert [rank.read() for rank in ranks] == [{"type": "exit", "code": 2}] * 2
        else:
            ranks[1].close()
            assert ranks[0].read() == {"type": "exit", "code": 3}
        assert ranks[0].read() == {"type": "gone"}
        for rank in ranks:
            rank.close()
    if report:
        assert isinstance(result[0], UsageError)
    else:
        assert str(result[0]).startswith("rank 1 on elsewhere (pid 1) died before the launch was done")


def test_a_rank_that_has_lost_its_agent_goes_on_by_itself() -> None:
    cells: list[Any] = []
    supervisor = Supervisor({"cells": [1]}, 2, 5.0, handlers=Handlers(cell=lambda m: cells.append(m["value"])))
    with supervising(supervisor) as result, node(supervisor) as here:
        ranks = [here.rank(0), here.rank(1)]
        ranks[0].send(type="cell", index=0, value=1)
        while not cells:
            time.sleep(0.001)
        here.end(after=2)
        for rank in ranks:
            while rank.read():  # "gone", since this agent does not die at once
                pass
            rank.close()
        again = [Peer(supervisor), Peer(supervisor)]
        confirmed = again[0].hello(supervisor.token, 0, pid=0, start=0, heard=["spec"])
        assert confirmed == {"type": "confirmed", "messages": 1}, "the first cell came, and must not come twice"
        again[0].send(type="cell", index=0, value=2)
        assert again[1].hello(supervisor.token, 1, pid=1, start=0, heard=[])["messages"] == 0
        assert again[1].read()["type"] == "spec", "what it has missed"
        finish(again)
    assert isinstance(result[0], Outcome)
    assert cells == [1, 2]
    assert result[0].notes == ("the agent on elsewhere ended; its ranks went on with a connection of their own",)


@pytest.mark.slow
def test_a_rank_that_does_not_come_back_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, tick=0.01)
    supervisor = Supervisor({}, 2, 60.0)
    with supervising(supervisor) as result, node(supervisor) as here:
        ranks = [here.rank(0), here.rank(1, host="node7")]
        here.end(after=2)
        again = Peer(supervisor)
        assert again.hello(supervisor.token, 0, pid=0, start=0, heard=["spec"])["type"] == "confirmed"
        clock.step = 0.1
        assert again.read() == {"type": "exit", "code": 3}
        for rank in (*ranks, again):
            rank.close()
    assert isinstance(result[0], LaunchFailed)
    assert str(result[0]).startswith("rank 1 on node7 (pid 1) died")


def test_what_an_agent_still_sends_of_a_rank_that_has_left_is_not_taken() -> None:
    ends = socket.socketpair()
    with ends[0], ends[1]:
        branches, agent = Branches(10.0), Connection(ends[0])
        branches.add(agent)
        hello = {"type": "hello", "host": "a", "pid": 1, "start": 2}
        rank, _ = branches.read(agent, b"0 " + wire.encode(hello))
        branches.read(agent, b'0 {"type":"beat"}')
        branches.read(agent, b'0 {"type":"cell"}')
        assert branches.take_back(hello) is rank
        assert (rank.moved, rank.messages) == (True, 1)
        assert branches.lose(agent, 0.0) == [rank] and not branches.anybody_adrift, "nobody has to be waited for"
        assert branches.take_back({**hello, "pid": 2}) is None


@pytest.mark.parametrize("line", [b"", b"x", b"{}", b"7 {}", b'7 {"type":"cell"}', b"0 17", b'-1 {"type":"hello"}'])
def test_an_agent_that_breaks_the_rules_is_dropped(line: bytes) -> None:
    ends = socket.socketpair()
    with ends[0], ends[1]:
        branches, agent = Branches(10.0), Connection(ends[0])
        branches.add(agent)
        with pytest.raises(Garbage):
            branches.read(agent, line)


@pytest.mark.parametrize(
    ("address", "environ", "expected"),
    [
        ("127.0.0.1:5", {}, False),
        ("127.0.0.1:5", {AGENTS_VARIABLE: "1"}, True),
        ("10.0.0.1:5,127.0.0.1:5", {}, True),
        ("10.0.0.1:5,127.0.0.1:5", {AGENTS_VARIABLE: "0"}, False),
        ("10.0.0.1:5,127.0.0.1:5", {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, False),
        ("10.0.0.1:5,127.0.0.1:5", {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, True),
    ],
)
def test_agents_are_for_launches_on_several_nodes(address: str, environ: dict[str, str], expected: bool) -> None:
    assert wanted(address, environ) is expected


# toy ranks with agents of their own


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """Toy ranks on two nodes, as they believe."""
    monkeypatch.setenv(AGENTS_VARIABLE, "1")
    monkeypatch.setenv("OMB_PY_TEST_NODES", "2")
    return Toy(tmp_path)


@pytest.mark.slow
def test_a_launch_over_agents_runs_to_its_end(toy: Toy) -> None:
    outcome = toy.run("fine", ranks=4)
    assert [kind for kind, _ in toy.messages] == ["launch", "note", "cell"]
    assert (outcome.status, outcome.notes) == (0, ())
    assert outcome.hosts == ("node0", "node1") * 2
    assert toy.supervisor is not None
    assert len(list(toy.supervisor._branches)) == 2


@pytest.mark.slow
def test_ranks_behind_agents_meet(toy: Toy) -> None:
    toy.run("meets late", ranks=3)
    notes = sorted(message["text"] for kind, message in toy.messages if kind == "note")
    assert notes == ["0 {'port': 4321}", "1 {'port': 4321}", "2 {'port': 4321}", "a note"]


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("mode", ["loses its agent", "loses its agent, stopped"])
def test_an_agent_that_is_killed_takes_nothing_along(toy: Toy, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("OMB_PY_TEST_NODES", "1")
    outcome = toy.run(mode, ranks=3, timeout=PATIENCE_S)
    cells = [message["value"] for kind, message in toy.messages if kind == "cell"]
    assert cells == [1.5, *range(60)], "every cell once, in order"
    assert outcome.notes == ("the agent on node0 ended; its ranks went on with a connection of their own",)


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("dies in the loop", ["rank 1 on node1", "died", "allreduce 8 B, loop iteration", "recv 8 B from 0"]),
        ("rank 0 dies", ["rank 0 on node0", "died"]),
        ("launcher dies", ["launcher toy was killed by signal 9 (SIGKILL)"]),
    ],
)
def test_a_death_behind_an_agent_is_named_at_once(toy: Toy, mode: str, words: list[str]) -> None:
    with pytest.raises(LaunchFailed) as caught:
        toy.run(mode, timeout=PATIENCE_S)
    assert [word for word in words if word not in str(caught.value)] == []
    if mode == "rank 0 dies":
        assert "cell" in [kind for kind, _ in toy.messages], "what was sent before the death is kept"

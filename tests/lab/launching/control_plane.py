"""The control plane with many simulated ranks: ``python -m tests.lab.launching.control_plane --ranks 4096,16384,65536``.

Every rank reports, joins, sends a heartbeat, is done and leaves, through the supervisor's own code, and with --node
through the agents' own code too, so many ranks on each. Connections are objects in memory instead of sockets. Prints
processor time of each stage in µs a rank, and exits with 1 where the largest number takes more than three times as long a
rank as the smallest.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

from omb_py.engine.rank import handshake
from omb_py.engine.rank.reporting import agent_secret
from omb_py.orchestrate.supervision import wire
from omb_py.orchestrate.supervision.node_agent import Agent
from omb_py.orchestrate.supervision.supervisor import Supervisor

STAGES = ("report", "join", "beat", "done", "leave")


class Connection:
    """One end of a connection, without a socket: what is sent is kept, or taken at once."""

    _numbers = itertools.count(1000)

    def __init__(self, take: Callable[[bytes], None] | None = None) -> None:
        self.trusted = self.closed = self.waiting = False
        self.sent: list[dict[str, Any]] = []
        self._number = next(self._numbers)
        self._take = take or (lambda line: self.sent.append(wire.decode(line)))

    @property
    def carrier(self) -> Connection:
        return self

    def fileno(self) -> int:
        return self._number

    def send(self, lines: bytes) -> None:
        for line in lines.splitlines():
            self._take(line)

    def close(self) -> None:
        self.closed = True


class NoSelector:
    """An event loop in which nothing happens by itself."""

    def register(self, *arguments: Any) -> None:
        pass

    unregister = modify = register

    def get_key(self, connection: Any) -> Any:
        raise KeyError

    def select(self, timeout: float) -> list[Any]:
        return []

    def close(self) -> None:
        pass


class Simulated:
    """A supervisor and so many ranks, `node` of them behind each agent; without agents where that is 0."""

    def __init__(self, ranks: int, node: int) -> None:
        self.supervisor: Any = Supervisor({"cells": []}, 1, 60.0)
        self.supervisor.ranks = ranks  # more than this process could open files for
        self.supervisor._selector.close()
        self.supervisor._selector = NoSelector()
        self.ranks: list[Any] = [Connection() for _ in range(ranks)]
        self.agents = [self._agent() for _ in range(-(-ranks // node))] if node else []
        self._node = node
        self.supervisor_s = 0.0
        """Processor time of what is done where the supervisor is, where there are agents."""

    def _agent(self) -> Agent:
        early: list[bytes] = []  # what the supervisor sends at once
        carrier = Connection(early.append)
        self._report(carrier, {"agent": True}, self.supervisor.token, self.supervisor._lobby, self.supervisor._message)

        def to_supervisor(line: bytes) -> None:
            began = time.process_time()
            self.supervisor._message(*self.supervisor._read(carrier, line))
            self.supervisor_s += time.process_time() - began

        parent: Any = Connection(to_supervisor)
        agent = Agent(parent, self.supervisor.token, {"ahead_ns": 0, "host": "10.0.0.1"})
        carrier._take = lambda line: agent.down(line) and None
        for line in early:
            agent.down(line)
        return agent

    @staticmethod
    def _report(connection: Connection, more: dict[str, Any], secret: str, lobby: Any, to: Callable[..., None]) -> None:
        challenge: list[bytes] = []
        take, connection._take = connection._take, challenge.append
        lobby.enter(connection, 0.0)
        connection._take = take
        nonce = wire.decode(challenge[0])["nonce"]
        proof = handshake.proof(secret, "caller", nonce, "1")
        to(connection, {"type": "hello", "nonce": "1", "proof": proof, **more})

    def report(self, rank: int) -> None:
        """A rank says hello."""
        me = {"host": f"node{rank // (self._node or 64)}", "pid": rank, "start": 0, "env_rank": rank}
        secret, connection = self.supervisor.token, self.ranks[rank]
        if self.agents:
            agent = self.agents[rank // self._node]
            to_agent = lambda peer, hello: agent.up(peer, wire.encode(hello).rstrip())  # noqa: E731
            self._report(connection, me, agent_secret(secret), agent._lobby, to_agent)
        else:
            self._report(connection, me, secret, self.supervisor._lobby, self.supervisor._message)

    def say(self, rank: int, /, **message: Any) -> None:
        """A rank sends a message."""
        if self.agents:
            self.agents[rank // self._node].up(self.ranks[rank], wire.encode(message).rstrip())
        else:
            self.supervisor._message(self.ranks[rank], message)

    def leave(self, rank: int) -> None:
        """A rank closes its connection."""
        if self.agents:
            self.agents[rank // self._node].leave(self.ranks[rank])
        else:
            self.supervisor._closed(self.ranks[rank])


def simulate(ranks: int, node: int = 0) -> tuple[dict[str, float], float]:
    """Seconds of processor time that each stage takes for all ranks together, and the supervisor's part of it."""
    launch = Simulated(ranks, node)
    taken: dict[str, float] = {}

    def stage(name: str, do: Callable[[int], None]) -> None:
        began = time.process_time()
        for rank in range(ranks):
            do(rank)
            if rank % 64 == 0:  # as many messages as one turn of a busy loop may find
                launch.supervisor._check()
        taken[name] = time.process_time() - began

    stage("report", launch.report)
    stage("join", lambda rank: launch.say(rank, type="joined", rank=rank, size=ranks))
    stage("beat", lambda rank: launch.say(rank, type="beat", phase="loop", cell=0, iteration=1, step=0))
    stage("done", lambda rank: launch.say(rank, type="done"))
    assert all(connection.sent[-1] == {"type": "exit", "code": 0} for connection in launch.ranks)
    stage("leave", launch.leave)
    assert launch.supervisor._lost == ranks and launch.supervisor._is_finished()
    launch.supervisor._branches = ()  # whose sockets there are not
    launch.supervisor.close()
    return taken, launch.supervisor_s


def main() -> int:
    """Simulate, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="4096,16384,65536", help="numbers of ranks (default: %(default)s)")
    parser.add_argument("--node", type=int, default=0, help="ranks of a node, which share an agent (default: no agent)")
    chosen = parser.parse_args()
    counts = sorted(map(int, chosen.ranks.split(",")))
    print(
        f"{'ranks':>7} {'sockets':>8} "
        + " ".join(f"{name:>8}" for name in STAGES)
        + "   all, s   supervisor, s   (µs of processor time a rank)"
    )
    per_rank = []
    for ranks in counts:
        taken, supervisor_s = simulate(ranks, chosen.node)
        total = sum(taken.values())
        per_rank.append(total / ranks)
        figures = " ".join(f"{1e6 * taken[name] / ranks:8.1f}" for name in STAGES)
        sockets = -(-ranks // chosen.node) if chosen.node else ranks
        print(f"{ranks:>7} {sockets:>8} {figures} {total:8.2f} {supervisor_s or total:15.2f}", flush=True)
    return 1 if per_rank[-1] > 3 * per_rank[0] else 0


if __name__ == "__main__":
    sys.exit(main())

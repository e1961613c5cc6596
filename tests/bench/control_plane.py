"""The supervisor with many simulated ranks: ``python -m tests.bench.control_plane --ranks 4096,16384,65536``.

Every rank reports, joins, sends a heartbeat, is done and leaves, through the supervisor's own code. Its connection is an
object in memory instead of a socket, of which a process may have fewer than that. Prints processor time of each stage
in µs a rank, and exits with 1 where the largest number takes more than three times as long a rank as the smallest.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from typing import Any

from omb_py.engine.rank import handshake
from omb_py.orchestrate.supervision import wire
from omb_py.orchestrate.supervision.supervisor import Supervisor

STAGES = ("report", "join", "beat", "done", "leave")


class Connection:
    """A rank's connection, without a socket: it takes what the supervisor sends."""

    _numbers = itertools.count(1000)

    def __init__(self) -> None:
        self.trusted = self.closed = self.waiting = False
        self.sent: list[dict[str, Any]] = []
        self._number = next(self._numbers)

    def fileno(self) -> int:
        return self._number

    def send(self, line: bytes) -> None:
        self.sent += [wire.decode(part) for part in line.splitlines()]

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


def simulate(ranks: int) -> dict[str, float]:
    """Seconds of processor time that each stage takes for all ranks together."""
    supervisor: Any = Supervisor({"cells": []}, 1, 60.0)
    supervisor.ranks = ranks  # more than this process could open files for
    supervisor._selector.close()
    supervisor._selector = NoSelector()
    connections = [Connection() for _ in range(ranks)]
    taken: dict[str, float] = {}

    def stage(name: str, do: Any) -> None:
        began = time.process_time()
        for rank, connection in enumerate(connections):
            do(rank, connection)
            if rank % 64 == 0:  # as many messages as one turn of a busy loop may find
                supervisor._check()
        taken[name] = time.process_time() - began

    def report(rank: int, connection: Connection) -> None:
        supervisor._lobby.enter(connection, supervisor._clock)
        nonce, own = connection.sent[0]["nonce"], str(rank)
        proof = handshake.proof(supervisor.token, "caller", nonce, own)
        hello = {"type": "hello", "nonce": own, "proof": proof, "host": f"node{rank // 64}", "pid": 0, "env_rank": rank}
        supervisor._message(connection, hello)

    def say(kind: str, **fields: Any) -> Any:
        return lambda rank, connection: supervisor._message(connection, {"type": kind, "rank": rank, **fields})

    stage("report", report)
    stage("join", say("joined", size=ranks))
    stage("beat", say("beat", phase="loop", cell=0, iteration=1, step=0))
    stage("done", say("done"))
    assert all(connection.sent[-1] == {"type": "exit", "code": 0} for connection in connections)
    stage("leave", lambda rank, connection: supervisor._closed(connection))
    assert supervisor._finished()
    supervisor.close()
    return taken


def main() -> int:
    """Simulate, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="4096,16384,65536", help="numbers of ranks (default: %(default)s)")
    counts = sorted(map(int, parser.parse_args().ranks.split(",")))
    print(f"{'ranks':>7} " + " ".join(f"{name:>8}" for name in STAGES) + "   all, s   (µs of processor time a rank)")
    per_rank = []
    for ranks in counts:
        taken = simulate(ranks)
        total = sum(taken.values())
        per_rank.append(total / ranks)
        figures = " ".join(f"{1e6 * taken[name] / ranks:8.1f}" for name in STAGES)
        print(f"{ranks:>7} {figures} {total:8.2f}", flush=True)
    return 1 if per_rank[-1] > 3 * per_rank[0] else 0


if __name__ == "__main__":
    sys.exit(main())

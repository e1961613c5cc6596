"""The skew with which ranks leave a barrier: the floor under every maximum of local durations."""

from __future__ import annotations

from typing import Any

import numpy as np

from omb_py.engine.native import assemble
from omb_py.engine.program import Stage, Stamp, body
from omb_py.engine.steps import barrier

ROUNDS = 200
PING_PONGS = 30


def barrier_skew(session: Any) -> float:
    """Median over barriers of (last exit - first exit), in µs.

    Exit times are read right after the barrier.  Ranks on rank 0's host share its clock; for
    the others the offset is taken from the ping-pong with the shortest round trip (SKaMPI's rule), so there the
    result carries an error of up to half that round trip.
    """
    from omb_py.backends.mpi.calls import Resolver
    from omb_py.engine.memory import HostMemory

    resolver = Resolver(lambda step: session.comm, HostMemory("numpy"), 0)
    table = assemble(Stage(body(barrier(), Stamp("exit"))), resolver, resolver.byte, {})
    session.machine.run(table, 0, 10)
    stamps, failed = session.machine.run(table, 0, ROUNDS)
    if failed:
        return float("nan")
    corrected = stamps[:, 0] - clock_offset(session)
    exits = session.comm.gather(corrected)
    if exits is None:
        return 0.0
    table_ = np.array(exits)
    return float(np.median(table_.max(axis=0) - table_.min(axis=0))) / 1000


def clock_offset(session: Any) -> int:
    """This rank's clock minus rank 0's, in ns; 0 on rank 0's host."""
    import time

    comm, offset = session.comm, 0
    for rank in range(1, session.size):
        if session.hosts[rank] == session.hosts[0]:
            continue
        if session.rank == 0:
            for _ in range(PING_PONGS):
                comm.recv(source=rank, tag=7)
                comm.send(time.monotonic_ns(), rank, tag=7)
        elif session.rank == rank:
            best = 1 << 62
            for _ in range(PING_PONGS):
                start = time.monotonic_ns()
                comm.send(None, 0, tag=7)
                there = comm.recv(source=0, tag=7)
                stop = time.monotonic_ns()
                if stop - start < best:
                    best, offset = stop - start, (start + stop) // 2 - there
    return offset

"""The skew with which ranks leave a synchronisation: the floor under every maximum of local durations."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from omb_py.engine.measuring.process_sync import skew_program
from omb_py.engine.program.benchmark import World

ROUNDS = 200
FEWEST = 5
LIMIT_S = 2.0
"""Seconds for the rounds, as far as FEWEST allows: 64 ranks on two loaded cores take 0.4 s for one barrier."""
WARMUPS = 20
"""One warm-up for so many rounds."""
PING_PONGS = 30


def measured_skew(session: Any, kind: str) -> float:
    """Median over rounds of (last exit - first exit) of a synchronisation (``KINDS``), in µs.

    Exit times are read right after it.  Ranks on rank 0's host share its clock; for
    the others the offset is taken from the ping-pong with the shortest round trip (SKaMPI's rule), so there the
    result carries an error of up to half that round trip. There are 200 rounds, and fewer where a barrier takes longer
    than 10 ms, as where many ranks share a core.
    """
    program, cell = skew_program(World(session.rank, session.size, session.hosts), kind)
    runner = session.load(cell, {session.rank: program})
    runner.enter(0, {})
    rounds = affordable_rounds(session)
    warmup = -(-rounds // WARMUPS)
    session.barrier()
    runner.run(0, -warmup, warmup)
    stamps = runner.run(0, 0, rounds)[session.rank]
    runner.leave(0)
    laps = program.stages[0].laps
    corrected = stamps[:, laps.index("exit")] - clock_offset(session)
    late = stamps[:, laps.index("late")] > 0 if "late" in laps else np.zeros(rounds, bool)
    gathered = session.gather((corrected, late))
    if not gathered:
        return 0.0
    exits = np.array([times for times, _ in gathered])
    in_time = ~np.array([missed for _, missed in gathered]).any(axis=0)
    exits = exits[:, in_time] if in_time.any() else exits
    return float(np.median(exits.max(axis=0) - exits.min(axis=0))) / 1000


def affordable_rounds(session: Any) -> int:
    """How many barriers fit into LIMIT_S, by the second of two: FEWEST to ROUNDS, the same on every rank."""
    session.barrier()
    began = time.perf_counter()
    session.barrier()
    each = time.perf_counter() - began
    return int(session.share(ROUNDS if each * ROUNDS <= LIMIT_S else max(FEWEST, int(LIMIT_S / each))))


def clock_offset(session: Any) -> int:
    """This rank's clock minus rank 0's, in ns; 0 on rank 0's host."""
    traffic, offset = session.traffic, 0
    for rank in range(1, session.size):
        if session.hosts[rank] == session.hosts[0]:
            continue
        if session.rank == 0:
            for _ in range(PING_PONGS):
                traffic.recv(rank, tag=7)
                traffic.send(time.monotonic_ns(), rank, tag=7)
        elif session.rank == rank:
            best = 1 << 62
            for _ in range(PING_PONGS):
                start = time.monotonic_ns()
                traffic.send(0, 0, tag=7)
                remote = traffic.recv(0, tag=7)
                stop = time.monotonic_ns()
                if stop - start < best:
                    best, offset = stop - start, (start + stop) // 2 - remote
    return offset

"""A benchmark of two ranks, measured between every pair of a world: the samples of each pair are kept apart.

The program is the benchmark's own, with other numbers for its two ranks. Ranks without a partner in a round wait
without using a core where the session knows how (``sleeping_barrier``): on a full machine they would be in the way.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.measuring.cell_result import PairRound
from omb_py.engine.measuring.measure import Phase
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import program_hash
from omb_py.engine.program.pair_programs import PairPrograms
from omb_py.engine.program.pair_schedule import Pair, parse_schedule
from omb_py.engine.samples import LapTimes
from omb_py.engine.session import Session


class _PairTimes(NamedTuple):
    """Microseconds by iteration of each pair, shape (pairs, iterations)."""

    pairs: list[Pair]
    samples: NDArray[np.float32]


def measure_pairs(
    session: Session, benchmark: Benchmark, cell: Cell, phase: Phase = lambda name: None
) -> Iterator[PairRound]:
    """Measure every pair of the cell's schedule, round by round; all ranks must take all of it.

    Raises:
        StepFailed: a library call returned an error.
    """
    first, second = (benchmark.program(World(rank, 2), cell) for rank in (0, 1))
    version = program_hash(first, second)
    moved = benchmark.metric.bytes_of(cell, 2) if benchmark.metric.bytes_of else None
    # a round is handed on when the next one is known to exist, since only the last is marked
    waiting: tuple[int, _PairTimes] | None = None
    for number, pairs in parse_schedule(cell.pairs).rounds(session.size):
        if waiting is not None:
            yield PairRound(cell, waiting[0], False, *waiting[1], version, moved)
        waiting = number, _measure(session, benchmark, cell, PairPrograms((first, second), pairs), phase)
    if waiting is not None:
        yield PairRound(cell, waiting[0], True, *waiting[1], version, moved)


def _measure(session: Session, benchmark: Benchmark, cell: Cell, programs: PairPrograms, phase: Phase) -> _PairTimes:
    local = set(session.local)
    runner = (
        None
        if local.isdisjoint(rank for pair in programs.pairs for rank in pair)
        else session.load_pairs(cell, programs)
    )
    if runner is not None:
        runner.enter(0, {})
    phase("loop")
    session.barrier()
    warmup, own = cell.sampling.warmup, []
    if runner is not None:
        gc.disable()
        try:
            laps = runner.run(0, -warmup, warmup + cell.sampling.iterations)
        finally:
            gc.enable()
        own = [pair for pair in programs.pairs if pair[0] in local]
        tables = ((of.table() if isinstance(of, LapTimes) else of) for of in (laps[first] for first, _ in own))
        times = np.array([table[warmup:, 0] for table in tables])
    phase("write")
    if runner is not None:
        runner.leave(0)
        runner.close()
    session.sleeping_barrier()
    here = (own, (times / (1000.0 * benchmark.metric.parts_of(cell))).astype(np.float32)) if own else None
    gathered = [part for part in session.gather(here) if part is not None]
    pairs = [pair for ours, _ in gathered for pair in ours]
    order = sorted(range(len(pairs)), key=pairs.__getitem__)
    together = np.concatenate([samples for _, samples in gathered])[order] if gathered else np.empty((0, 0), np.float32)
    return _PairTimes([pairs[place] for place in order], together)

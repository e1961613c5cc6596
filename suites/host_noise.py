"""The host itself: how much of a processor's time is taken away from a rank."""

from __future__ import annotations

from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, World
from omb_py.engine.program.language import Lap, Program, Repeat, Stage, body
from omb_py.engine.program.steps import compute
from omb_py.suites.shared import PER_CALL
from omb_py.suites.startup import ONE_OR_MORE

READINGS = 1000
"""Computations of a quantum, of two readings of the clock each: some tens of microseconds."""
COUNTS = Counts(10000, 100, 10000, 100)
"""A quantum is short and thefts are rare, so there are many."""


def noise(world: World, cell: Cell) -> Program:
    """The same work again and again, without communication: what one takes longer than another was stolen."""
    # a computation of 1 ns is over at the second look at the clock: fixed work, whatever the time
    return Program((), (Stage(body(Lap(), Repeat(READINGS, (compute(1),)), Lap("time"))),))


def _none(size: int, ranks: int) -> int:
    return 0


BENCHMARKS = (
    Benchmark(
        "noise",
        "host",
        "time of a fixed quantum of work without communication: what the host steals",
        noise,
        PER_CALL,
        None,
        COUNTS,
        ONE_OR_MORE,
        "all",
        "char",
        frozenset({"full"}),
        _none,
    ),
)

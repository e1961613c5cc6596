"""OS noise: how much processor time the host takes away from a rank."""

from __future__ import annotations

from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, World
from omb_py.engine.program.language import Lap, Program, Repeat, Stage, body
from omb_py.engine.program.steps import compute
from omb_py.suites.shared import PER_CALL, no_bytes
from omb_py.suites.startup import ONE_OR_MORE

READINGS = 1000
"""Computations in a quantum. Each reads the clock twice, so a quantum takes some tens of microseconds."""
COUNTS = Counts(10000, 100, 10000, 100)
"""A quantum is short and interruptions are rare, so there are many iterations."""


def noise(world: World, cell: Cell) -> Program:
    """Repeat a fixed piece of work without communication: where one takes longer, the host took the time."""
    # a computation of 1 ns ends when the clock is read again, so the work is the same however long it takes
    return Program((), (Stage(body(Lap(), Repeat(READINGS, (compute(1),)), Lap("time"))),))


BENCHMARKS = (
    Benchmark(
        "noise",
        "host",
        "OS noise: time of a fixed piece of work without communication",
        noise,
        PER_CALL,
        None,
        COUNTS,
        ONE_OR_MORE,
        "all",
        "char",
        frozenset({"full"}),
        no_bytes,
    ),
)

"""Partitioned point-to-point (MPI-4): one message whose parts are declared ready one by one."""

from __future__ import annotations

from dataclasses import replace

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Sizes, Volume, World
from omb_py.engine.program.language import Buffer, Lap, Node, Program, Region, RequestSlot, Result, Stage, body
from omb_py.suites.collective.forms import OVERLAP
from omb_py.suites.shared import EXACTLY_TWO, LATENCY_COUNTS, PT2PT_SIZES, partition_bytes

_OUT, _BACK = RequestSlot(0), RequestSlot(1)
_HALF = 2
"""An iteration goes there and back, so every column is half of its laps."""


def _begin(request: RequestSlot, cell: Cell) -> tuple[Node, ...]:
    """Start a direction; the sending side also declares every partition ready."""
    if request == _BACK:
        return (steps.start(_BACK),)
    return (steps.start(_OUT), *(steps.pready(_OUT, part) for part in range(cell.options.partitions)))


def _busy(request: RequestSlot, cell: Cell) -> tuple[Node, ...]:
    """Compute as long as a message takes; with `tests` in pieces, each followed by MPI_Test or MPI_Parrived."""
    if not cell.options.tests:
        return steps.compute(Result("pure", "time", _HALF)), Lap("compute")
    nodes: list[Node] = []
    for call in range(cell.options.tests):
        test = steps.parrived(_BACK, call % cell.options.partitions) if request == _BACK else steps.test(_OUT)
        nodes += [steps.compute(Result("pure", "time", _HALF * cell.options.tests)), Lap("compute"), test, Lap("test")]
    return tuple(nodes)


def partitioned_latency(world: World, cell: Cell) -> Program:
    """A ping-pong alone, then one that computes between start and wait of each direction."""
    size, peer, first = cell.options.partitions * partition_bytes(cell), 1 - world.rank, world.rank == 0
    order = (_OUT, _BACK) if first else (_BACK, _OUT)
    calls = (
        steps.psend(Region("send", 0, size), peer, cell.dtype, cell.options.partitions),
        steps.precv(Region("recv", 0, size), peer, cell.dtype, cell.options.partitions),
    )
    setup = tuple(steps.persistent(call, request) for call, request in zip(calls, (_OUT, _BACK), strict=True))
    teardown = steps.free(_OUT), steps.free(_BACK)
    pure: list[Node] = []
    busy: list[Node] = [Lap()]
    for request in order:
        pure += [*_begin(request, cell), steps.wait(request)]
        busy += [*_begin(request, cell), Lap("init"), *_busy(request, cell), steps.wait(request), Lap("wait")]
    return Program(
        (Buffer("send", size), Buffer("recv", size)),
        (
            Stage(body(Lap(), *pure, Lap("time")), "pure", setup, teardown),
            Stage(body(*busy, steps.barrier()), "overlap", setup, teardown),
        ),
    )


def _volume(cell: Cell, ranks: int) -> Volume:
    size = cell.options.partitions * partition_bytes(cell)
    return Volume(cell.dtype, size, size)


BENCHMARKS = (
    Benchmark(
        "partitioned_latency",
        "pt2pt",
        "overlap of a partitioned message with computing",
        partitioned_latency,
        replace(
            OVERLAP,
            parts=_HALF,
            formula="overall: half of all laps on rank 0; overlap = max(0, 100 - (overall - compute) / pure × 100)",
        ),
        Sizes(8, PT2PT_SIZES.maximum),
        LATENCY_COUNTS,
        EXACTLY_TWO,
        "rank 0",
        "char",
        frozenset({"type", "validation", "partitions", "tests"}),
        bytes_total=lambda size, ranks: size,
        unit_of=lambda cell: cell.options.partitions,
        volume=_volume,
    ),
)

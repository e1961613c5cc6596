"""The three loops that every collective has: blocking, non-blocking (overlap) and persistent, as in OMB 7.5."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Family, Metric, Sizes, Volume, World
from omb_py.engine.program.language import Body, Buffer, Lap, Node, Program, RequestSlot, Result, Stage, Step
from omb_py.suites.shared import COLLECTIVE_COUNTS, COLLECTIVE_SIZES, PER_CALL, TWO_OR_MORE, barrier_after

CallAndBuffers = tuple[Step, tuple[Buffer, ...]]
"""The call of a rank and the buffers that it needs."""
Call = Callable[[World, Cell], CallAndBuffers]
"""Makes the call of a rank. The option `root` is a rank here, never :data:`ROTATE`."""

ROTATE = -1
"""Value of the option `root`: each iteration has another root."""

_LAPS = ("init", "compute", "test", "wait")


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective with three forms. Fields as in :class:`~omb_py.engine.program.benchmark.Benchmark`."""

    name: str
    summary: str
    call: Call
    bytes_total: Callable[[int, int], int]
    bandwidth: str | None = None
    sizes: Sizes | None = COLLECTIVE_SIZES
    dtype: str = "char"
    options: frozenset[str] = frozenset()
    volume: Callable[[Cell, int], Volume] | None = None
    family: Family = "collective"
    """The family of the blocking form."""

    def benchmark(
        self, name: str, family: Family, summary: str, program: Callable[[World, Cell], Program], metric: Metric
    ) -> Benchmark:
        """One form of the collective as a benchmark."""
        data: frozenset[str] = frozenset({"type", "validation"}) if self.sizes else frozenset()
        if self.sizes and "op" not in self.options:
            data |= {"ddt"}
        return Benchmark(
            name,
            family,
            summary,
            program,
            metric,
            self.sizes,
            COLLECTIVE_COUNTS,
            TWO_OR_MORE,
            "all",
            self.dtype,
            self.options | data | {"full", "process_sync"},
            self.bytes_total,
            self.bandwidth,
            volume=self.volume,
        )


def calls_of(call: Call, world: World, cell: Cell) -> tuple[list[Step], tuple[Buffer, ...]]:
    """The call, or with rotating roots one for each root; and the buffers that all of them need.

    As in OMB rank 0 is root in the first warm-up, and the timed iterations go on from there: the first of them, number
    0, has the root that comes after the last warm-up's.
    """
    roots: Sequence[int] = (cell.options.root,)
    if cell.options.root == ROTATE:
        roots = [(cell.sampling.warmup + number) % world.size for number in range(world.size)]
    calls = [call(world, cell.with_options(root=root)) for root in roots]
    largest: dict[str, int] = {}
    for _, buffers in calls:
        for buffer in buffers:
            largest[buffer.name] = max(largest.get(buffer.name, 0), buffer.nbytes)
    return [step for step, _ in calls], tuple(Buffer(name, nbytes) for name, nbytes in largest.items())


def _barrier_behind(call: Step, cell: Cell) -> tuple[Step, ...]:
    """The untimed barrier behind a call. A barrier itself has none, as in OMB: its calls stand back to back."""
    return () if call.op == "barrier" else barrier_after(cell.options.process_sync)


def blocking(collective: Collective) -> Benchmark:
    """The blocking form. Each iteration times the call; an untimed barrier follows."""

    def program(world: World, cell: Cell) -> Program:
        calls, buffers = calls_of(collective.call, world, cell)
        return Program(buffers, (Stage(tuple((Lap(), c, Lap("time"), *_barrier_behind(c, cell)) for c in calls)),))

    return collective.benchmark(collective.name, collective.family, collective.summary, program, PER_CALL)


def persistent(collective: Collective) -> Benchmark:
    """The persistent form. Each iteration times start and wait; the initialisation, once a size, is untimed."""

    def program(world: World, cell: Cell) -> Program:
        calls, buffers = calls_of(collective.call, world, cell)
        requests = [RequestSlot(number) for number in range(len(calls))]
        after = _barrier_behind(calls[0], cell)
        bodies: list[Body] = [(Lap(), steps.start(r), steps.wait(r), Lap("time"), *after) for r in requests]
        setup = tuple(steps.persistent(call, request) for call, request in zip(calls, requests, strict=True))
        return Program(buffers, (Stage(tuple(bodies), setup=setup, teardown=tuple(steps.free(r) for r in requests)),))

    summary = f"persistent {collective.name}, started in each iteration"
    return collective.benchmark(f"{collective.name}_persistent", "persistent", summary, program, PER_CALL)


def overlapping(collective: Collective) -> Benchmark:
    """The non-blocking form: call and wait alone; then the call, as much computing as that took, and the wait."""

    def program(world: World, cell: Cell) -> Program:
        calls, buffers = calls_of(collective.call, world, cell)
        request = RequestSlot(0)
        starts = [steps.nonblocking(call, request) for call in calls]
        wait, after = steps.wait(request), barrier_after(cell.options.process_sync)
        pure: list[Body] = [(Lap(), call, wait, Lap("time"), *_barrier_behind(calls[0], cell)) for call in starts]
        busy: tuple[Node, ...] = (steps.compute(Result("pure", "time")), Lap("compute"))
        if cell.options.tests:
            part = steps.compute(Result("pure", "time", cell.options.tests))
            busy = (part, Lap("compute"), steps.test(request), Lap("test")) * cell.options.tests
        both: list[Body] = [(Lap(), call, Lap("init"), *busy, wait, Lap("wait"), *after) for call in starts]
        return Program(buffers, (Stage(tuple(pure), "pure"), Stage(tuple(both), "overlap")))

    family: Family = "non-blocking" if collective.family == "collective" else collective.family
    summary = f"overlap of {collective.name} with computing"
    benchmark = collective.benchmark(f"i{collective.name}", family, summary, program, OVERLAP)
    return replace(benchmark, options=benchmark.options | {"tests"})


def overlap_columns(laps: Mapping[str, list[float]]) -> dict[str, float]:
    """OMB's columns of a non-blocking collective.

    overlap = max(0, 100 - (overall - compute) / pure * 100); all terms are means over ranks. As in OMB the time in
    MPI_Test is not part of ``compute``.

    Args:
        laps: each lap -> its mean on every rank in µs.

    Returns:
        Column -> µs, of ``overlap_pct`` percent.
    """

    def mean(name: str) -> float:
        values = laps.get(name) or [0.0]
        return sum(values) / len(values)

    parts = {lap: mean(f"overlap.{lap}") for lap in _LAPS}
    pure, overall = mean("pure.time"), sum(parts.values())
    hidden = 100 - (overall - parts["compute"]) / pure * 100 if pure > 0 else 0.0
    return {
        **parts,
        "overall": overall,
        "pure": pure,
        "overlap_pct": max(0.0, hidden),
        "min_comm": min(laps["pure.time"]),
        "max_comm": max(laps["pure.time"]),
    }


OVERLAP = Metric(
    "us",
    "overall: mean over ranks of init + compute + test + wait; "
    "overlap = max(0, 100 - (overall - compute) / pure × 100)",
    lap="overall",
    adds=_LAPS,
    communication="pure.time",
    derive=overlap_columns,
)

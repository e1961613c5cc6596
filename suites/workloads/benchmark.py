"""The benchmark ``step``: the time of a training or inference step's communication, and how much of it is exposed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from omb_py.backends.capabilities import FROM_ANYONE, ONE_SIDED
from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric, Volume, World
from omb_py.engine.program.language import Program
from omb_py.errors import UsageError
from omb_py.suites.shared import TWO_OR_MORE, no_bytes
from omb_py.suites.workloads.program import (
    ARENA_BYTES,
    COMPUTE,
    EXPOSED,
    FLIGHT,
    SERIAL,
    STEP,
    PlacedCall,
    place_calls,
    program_of,
)

if TYPE_CHECKING:
    from omb_py.suites.workloads.families import Workload

DEFAULT = "ddp"
_APART = "use --process-sync barrier"
STEPS = Counts(100, 3, 100, 3, fewest=5)
"""`--time-limit` leaves few iterations at least, since a step may take seconds."""


def step(world: World, cell: Cell) -> Program:
    """The program of the cell's workload."""
    return program_of(_workload(cell.options.workload), world, cell.options.process_sync)


def _workload(text: str) -> Workload:
    from omb_py.suites.workloads.families import parse_workload  # heavy, and a list of benchmarks needs none of it

    return parse_workload(text or DEFAULT)


def columns(laps: Mapping[str, list[float]]) -> dict[str, float]:
    """The columns of a step, as means over the ranks.

    ``serial_us``: time of all calls one by one; ``flight_us``: of all in flight; ``compute_us``: of computing;
    ``exposed_us``: of the step beyond its computing; ``overlap_pct`` = max(0, 100 − exposed / serial × 100).

    Args:
        laps: each lap -> its mean on every rank in µs.
    """

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    serial = sum(mean(values) for name, values in laps.items() if name.startswith(f"{SERIAL}."))
    flight, computed = mean(laps[f"{FLIGHT}.time"]), mean(laps[f"{STEP}.{COMPUTE}"])
    exposed = mean(laps[f"{STEP}.{EXPOSED}"])
    hidden = 100 - exposed / serial * 100 if serial > 0 else 0.0
    return {
        "serial_us": serial,
        "flight_us": flight,
        "compute_us": computed,
        "exposed_us": exposed,
        "overlap_pct": max(0.0, hidden),
    }


def of_calls(cell: Cell, ranks: int, means: Mapping[str, float]) -> dict[str, float]:
    """The payload of each kind of call, and what requests wait for communication.

    ``payload.KIND``: bytes sent, or of a receive alone received, as the mean over the ranks; as the time of a kind is.

    Args:
        cell: its workload.
        ranks: their number.
        means: each lap -> its mean over the ranks in µs.
    """
    workload = _workload(cell.options.workload)
    payload: Counter[str] = Counter()
    for rank in range(ranks):
        kind_of = workload.labels(rank, ranks)
        for call in workload.calls(rank, ranks):
            payload[kind_of[call.label, call.size]] += call.size
    derived = {f"payload.{kind}": nbytes / ranks for kind, nbytes in payload.items()}
    if workload.family.latencies is None or not payload:
        return derived
    kinds = [workload.labels(0, ranks)[call.label, call.size] for call in workload.calls(0, ranks)]
    counts = Counter(kinds)
    return derived | workload.family.latencies(
        workload.values, ranks, [means.get(f"{SERIAL}.{kind}", 0.0) / counts[kind] for kind in kinds]
    )


METRIC = Metric(
    "us",
    "a step = compute + exposed, the communication that computing does not hide; serial: all calls one by one "
    "without computing; in flight: all at once; overlap = max(0, 100 - exposed / serial × 100); all as means over "
    "ranks",
    lap=STEP,
    adds=(COMPUTE, EXPOSED),
    derive=columns,
    derive_of_cell=of_calls,
    medians=f"{SERIAL}.",
)


def fits(cell: Cell, ranks: int) -> None:
    """Check that a workload can run on so many ranks, and with ``-c`` that its data can be checked there.

    Raises:
        UsageError: it cannot.
    """
    workload = _workload(cell.options.workload)
    # ranks place different amounts: the middle stages of a pipeline twice those of the first
    looked_at = range(ranks) if cell.validate else (0,)
    placed = [place_calls(workload, World(rank, ranks))[0] for rank in looked_at]
    if cell.options.process_sync == "none" and workload.from_anyone:
        raise UsageError(f"{workload.text} needs its steps apart, or a worker would be served twice in one: {_APART}")
    if cell.validate and any(call.wraps for own in placed for call in own):
        text = (
            f"to check every byte of {workload.text}, all its calls need memory of their own, {ARENA_BYTES >> 30} GiB"
        )
        raise UsageError(f"{text} at most: leave out -c, or write scale=1/{max(map(_next_power, placed))}")


def features(cell: Cell) -> tuple[str, ...]:
    """What the workload of a cell needs of a backend."""
    workload = _workload(cell.options.workload)
    needs = {FROM_ANYONE: workload.from_anyone, ONE_SIDED: workload.one_sided}
    return tuple(feature for feature, needed in needs.items() if needed)


def volume(text: str, ranks: int) -> Volume:
    """The types and bytes of a workload's calls. Raises UsageError where the ranks do not fit."""
    workload = _workload(text)
    calls = [workload.calls(rank, ranks) for rank in range(ranks)]
    sent = [sum(call.sent for call in own) for own in calls]
    types = sorted({call.dtype for own in calls for call in own if call.op != "barrier"})
    return Volume("+".join(types) or "char", max(sent), sum(sent))


def _next_power(placed: list[PlacedCall]) -> int:
    """The power of two by which the calls must be scaled down to fit the memory."""
    whole = sum(each.call.size for each in placed)
    return 1 << (2 * whole // ARENA_BYTES).bit_length()


BENCHMARKS = (
    Benchmark(
        "step",
        "workload",
        "the collectives and messages of a training or inference step, and how much of them computing hides",
        step,
        METRIC,
        None,
        STEPS,
        TWO_OR_MORE,
        "all",
        "char",
        frozenset({"workload", "validation", "full", "process_sync"}),
        no_bytes,
        defaults=(("workload", DEFAULT),),
        fits=fits,
        features=features,
        volume=lambda cell, ranks: volume(cell.options.workload, ranks),
    ),
)

"""The benchmark ``step``: what the communication of a training or inference step takes, and how much of it shows."""

from __future__ import annotations

from collections.abc import Mapping

from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric, World
from omb_py.engine.program.language import Program
from omb_py.errors import UsageError
from omb_py.suites.shared import TWO_OR_MORE
from omb_py.suites.workloads.program import (
    ARENA_BYTES,
    COMPUTE,
    EXPOSED,
    FLIGHT,
    SERIAL,
    STEP,
    Laid,
    laid_out,
    program_of,
)

DEFAULT = "ddp"
STEPS = Counts(100, 3, 100, 3)
FEWEST = 5
"""A step may take seconds: with `--time-limit` so few are enough."""


def step(world: World, cell: Cell) -> Program:
    """The workload of the cell."""
    from omb_py.suites.workloads.families import parse_workload

    return program_of(parse_workload(cell.workload or DEFAULT), world, cell.process_sync)


def columns(laps: Mapping[str, list[float]]) -> dict[str, float]:
    """What a step takes, in µs, from each lap's means over the ranks.

    ``serial_us``: all calls one by one; ``flight_us``: all in flight; ``compute_us``; ``exposed_us``: what the step
    takes beyond its computing; ``overlap_pct`` = max(0, 100 − exposed / serial × 100).
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


METRIC = Metric(
    "us",
    "step: mean over ranks of compute + exposed; exposed is what a step takes beyond its computing; "
    "overlap = max(0, 100 - exposed / serial × 100), serial: all calls one by one",
    lap=STEP,
    adds=(COMPUTE, EXPOSED),
    derive=columns,
)


def fits(cell: Cell, ranks: int) -> None:
    """Raises UsageError where a workload cannot run on so many ranks, or be checked there."""
    from omb_py.suites.workloads.families import parse_workload

    workload = parse_workload(cell.workload or DEFAULT)
    made, _ = laid_out(workload.calls(0, ranks), World(0, ranks))
    if cell.validate and any(laid.wraps for laid in made):
        text = (
            f"to check every byte of {workload.text}, all its calls need memory of their own, {ARENA_BYTES >> 30} GiB"
        )
        raise UsageError(f"{text} at most: leave out -c, or write scale=1/{_next_power(made)}")


def _next_power(made: list[Laid]) -> int:
    """By what power of two the calls are too large, at least."""
    whole = sum(laid.call.size for laid in made)
    return 1 << (2 * whole // ARENA_BYTES).bit_length()


BENCHMARKS = (
    Benchmark(
        "step",
        "workload",
        "communication of a step of a deep-learning or machine-learning workload",
        step,
        METRIC,
        None,
        STEPS,
        TWO_OR_MORE,
        "all",
        "char",
        frozenset({"workload", "predict", "validation", "full", "process_sync"}),
        lambda size, ranks: 0,
        defaults=(("workload", DEFAULT),),
        fewest=FEWEST,
        fits=fits,
    ),
)

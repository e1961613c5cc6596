"""Sizes, counts, rank rules and metrics that benchmarks share (OMB 7.5, reference section 1.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric, RankRule, Sizes, Timed, World
from omb_py.engine.program.datatype_layouts import message_bytes as message_bytes
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Program, Step

LATENCY_COUNTS = Counts(10000, 100, 1000, 10)
BANDWIDTH_COUNTS = Counts(100, 10, 20, 2)
COLLECTIVE_COUNTS = Counts(1000, 100, 100, 10)

PT2PT_SIZES = Sizes(1, 1 << 22)
COLLECTIVE_SIZES = Sizes(1, 1 << 20)
REDUCTION_SIZES = Sizes(4, 1 << 20)

EXACTLY_TWO = RankRule("exactly 2 ranks", lambda n: n == 2)
EVEN = RankRule("an even number of ranks", lambda n: n >= 2 and n % 2 == 0)
TWO_OR_MORE = RankRule("2 ranks or more", lambda n: n >= 2)

POWER_OF_TWO = RankRule("2, 4, 8, … ranks", lambda n: n >= 2 and n & (n - 1) == 0)

ONE_WAY = Metric("us", "mean over iterations of lap time / 2, on rank 0", parts=2)
PER_CALL = Metric("us", "mean over ranks of each rank's mean lap time")


def point_to_point(
    name: str,
    summary: str,
    program: Callable[[World, Cell], Program],
    metric: Metric,
    counts: Counts,
    options: frozenset[str],
    ranks: RankRule = EXACTLY_TWO,
    timed: Timed = "rank 0",
    bytes_total: Callable[[int, int], int] = lambda size, ranks: size,
    **more: Any,
) -> Benchmark:
    """The declaration of a benchmark that sends messages of OMB's point-to-point sizes, of char by default.

    `more` are further fields of :class:`Benchmark`.
    """
    return Benchmark(
        name, "pt2pt", summary, program, metric, PT2PT_SIZES, counts, ranks, timed, "char", options, bytes_total, **more
    )


def no_bytes(size: int, ranks: int) -> int:
    """`Benchmark.bytes_total` of a benchmark without payload."""
    return 0


def barrier_after(process_sync: str) -> tuple[Step, ...]:
    """The barrier that ends an iteration outside the timer; empty where ranks are kept together in another way."""
    return (steps.barrier(),) if process_sync == "barrier" else ()


def sides(counts: str) -> tuple[int, int]:
    """The two numbers of ``SENDERS:RECEIVERS``: threads or processes on each side."""
    sender, receiver = counts.split(":")
    return int(sender), int(receiver)


def partition_bytes(cell: Cell) -> int:
    """Bytes of a partition in whole elements. The rest of the message is not sent, as in OMB."""
    item = DTYPES[cell.dtype].itemsize
    partitions: int = cell.options.partitions
    return cell.size // item // partitions * item


def uneven(mean: int, cell: Cell, ranks: int) -> tuple[int, ...]:
    """Bytes of each rank's block in whole elements: `mean` times a factor.

    The factors rise in even steps from ``1 - imbalance`` on rank 0 to ``1 + imbalance`` on the last rank.
    Without imbalance every block has `mean` bytes, as in OMB.
    """
    if not cell.options.imbalance or ranks < 2:
        return (mean,) * ranks
    item = DTYPES[cell.dtype].itemsize
    factors = (1 + cell.options.imbalance * (2 * rank / (ranks - 1) - 1) for rank in range(ranks))
    return tuple(round(mean * factor / item) * item for factor in factors)


def window_bytes(directions: int) -> Metric:
    """The metric of a window of messages in MB/s; `directions` is 1 or 2."""

    def moved(cell: Cell, ranks: int) -> int:
        window: int = cell.options.window
        return directions * message_bytes(cell) * window

    factor = "" if directions == 1 else f"{directions} × "
    return Metric("MB/s", f"{factor}size × window × iterations / sum of laps on rank 0, MB = 10^6 B", bytes_of=moved)

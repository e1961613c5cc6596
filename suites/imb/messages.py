"""The declaration of IMB's benchmarks that send messages of IMB's sizes, from 0 bytes on, without a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric, RankRule, Timed, World
from omb_py.engine.program.language import Program
from omb_py.suites.shared import LATENCY_COUNTS, PER_CALL, TWO_OR_MORE, point_to_point

Make = Callable[[World, Cell], Program]
OPTIONS = frozenset({"type", "validation"})


def tags(peers: Sequence[int]) -> list[int]:
    """A tag for each message to, or from, these ranks: the second one of a pair has another than the first.

    Messages of a pair are numbered in their order, so they also match where a library knows no tags.

    >>> tags([1, 3, 1])
    [1, 1, 2]
    """
    return [1 + list(peers[:number]).count(peer) for number, peer in enumerate(peers)]


def messages(
    name: str,
    summary: str,
    program: Make,
    metric: Metric = PER_CALL,
    counts: Counts = LATENCY_COUNTS,
    ranks: RankRule = TWO_OR_MORE,
    timed: Timed = "all",
    bytes_total: Callable[[int, int], int] = lambda size, ranks: size,
) -> Benchmark:
    """The declaration of such a benchmark; what is left out is as in most of IMB-MPI1."""
    return point_to_point(name, summary, program, metric, counts, OPTIONS, ranks, timed, bytes_total, zero_size=True)

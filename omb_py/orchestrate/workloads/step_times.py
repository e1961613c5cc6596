"""Predict the times of the calls of a step from the curves of single operations.

The calls run as in the loop ``serial`` of a workload: each completes before the next
starts (docs/workloads/predict.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from omb_py.backends.timeline import End, Exchange, TimedCollective, spent_us
from omb_py.results.analysis.step_prediction import MESSAGES, WRITES, Ask, Curves, Missing, NoModel, Predicted

Cost = Callable[[Ask, int, int], float]
"""(call, size in bytes, ranks) -> µs."""


def predict_step(calls: Sequence[Sequence[Ask]], curves: Curves) -> Predicted:
    """Predict the time of each call of a step, in µs, as the mean over the ranks.

    Args:
        calls: for each rank its calls, in order.
        curves: curves of the side on which the step runs.

    Raises:
        ValueError: the calls of the ranks do not match.
    """
    missing: dict[tuple[str, int, str, bool, str], int] = {}
    unknown: set[str] = set()
    priced: dict[Hashable, float | None] = {}

    def cost(ask: Ask, size: int, ranks: int) -> float:
        if ranks < 2:
            return 0.0
        key = (ask.benchmark, ask.dtype, ask.in_place, size, ranks)
        if key not in priced:
            try:
                priced[key] = curves.time_us(ask, size, ranks)
            except NoModel as error:
                # a gap is reported once, with the largest size: one sweep up to there closes it
                gap = (ask.benchmark, ranks, ask.dtype, ask.in_place, str(error))
                missing[gap] = max(missing.get(gap, 0), size)
                priced[key] = None
        time = priced[key]
        if time is None:
            unknown.add(ask.row)
        return time or 0.0

    spent = timeline(calls, cost)
    rows = dict.fromkeys(row for own in spent for row in own)
    means = {row: None if row in unknown else sum(own.get(row, 0.0) for own in spent) / len(spent) for row in rows}
    gaps = tuple(Missing(*gap[:4], size, gap[4]) for gap, size in missing.items())
    return Predicted(means, gaps, tuple(sorted(curves.scaled)))


def timeline(calls: Sequence[Sequence[Ask]], cost: Cost) -> list[dict[str, float]]:
    """Return for each rank the µs in the calls of each row, with the time spent waiting for other ranks.

    Args:
        calls: for each rank its calls, in order.
        cost: time of a call. If the sizes of its members differ, the largest counts.

    Raises:
        ValueError: the calls of the ranks do not match.
    """
    largest: dict[Hashable, int] = {}
    for own in calls:
        for ask, meeting in _meetings(own):
            largest[meeting] = max(largest.get(meeting, 0), ask.size_bytes)

    def timed(ask: Ask, meeting: Hashable) -> TimedCollective | Exchange:
        if ask.benchmark == MESSAGES:
            ends = ([End(m.peer, m.tag, cost(ask, m.nbytes, 2)) for m in way] for way in (ask.sends, ask.receives))
            return Exchange(ask.row, *map(tuple, ends))
        if ask.benchmark == WRITES:
            return TimedCollective(ask.row, sum(cost(ask, m.nbytes, 2) for m in ask.sends), ask.members)
        return TimedCollective(ask.row, cost(ask, largest[meeting], len(ask.members) or len(calls)), ask.members)

    return spent_us([[timed(ask, meeting) for ask, meeting in _meetings(own)] for own in calls])


def _meetings(calls: Sequence[Ask]) -> Iterator[tuple[Ask, Hashable]]:
    """Yield each call of a rank with a key that is equal on all ranks that make it together: (members, turn)."""
    turns: Counter[tuple[int, ...]] = Counter()
    for ask in calls:
        turns[ask.members] += ask.benchmark != MESSAGES
        yield ask, (ask.members, turns[ask.members])

"""Launches of another kind, bounded without looking at their side, so that sign flips of pairs stay exact. Pure.

Derived in docs/statistics.md (Tuning).
"""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.results.statistics.order_statistics import median
from omb_py.results.statistics.sides.sign_flips import SMALLEST

FAR = 2.5
"""Spreads from the median at which a launch is bounded."""
TO_SPREAD = 1.4826
"""A standard deviation over the median distance from the median, of normal numbers."""


def bounded(base: Sequence[float], new: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Bound both sides of the pairs of one question in one round.

    The upper bound is :data:`FAR` spreads above the median of the larger launch of each pair, the lower one as far
    below the median of the smaller ones. Neither depends on which side a launch is of.

    Args:
        base: logs of the launches of BASE, in the order of the pairs.
        new: logs of the launches of NEW, in the same order.

    Returns:
        Both sides, with what is beyond a bound moved to it.

    >>> base, new = bounded([0.0, 0.1, 0.0, 0.1, 0.0], [-0.3, -0.3, 0.9, -0.2, -0.3])
    >>> [round(x, 2) for x in new]
    [-0.3, -0.3, 0.47, -0.2, -0.3]
    """
    if not base:
        return (), ()
    larger = [max(pair) for pair in zip(base, new, strict=True)]
    smaller = [min(pair) for pair in zip(base, new, strict=True)]
    high = median(larger) + FAR * spread(larger)
    low = median(smaller) - FAR * spread(smaller)
    first, second = (tuple(min(max(log, low), high) for log in side) for side in (base, new))
    return first, second


def spread(logs: Sequence[float]) -> float:
    """A standard deviation from the median distance to the median, which a few strange launches hardly change."""
    middle = median(list(logs))
    return max(SMALLEST, TO_SPREAD * median([abs(log - middle) for log in logs]))

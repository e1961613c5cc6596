"""Launches of another kind: far from the others, or in two modes. Pure.

A launch whose ranks share a core, or whose memory lies elsewhere, may take several times as long as the others. A few
of them rule a mean, and say little of the library. They count up to a bound, and are told apart where they are counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FAR = 2.5
"""Spreads from the median at which a launch is bounded."""
TO_SPREAD = 1.4826
"""A standard deviation over the median distance from the median, of normal numbers."""
SMALLEST = 1e-6
"""Smallest spread of logs: a millionth, since times have no more digits."""
GAP = 6.0
"""Two kinds are apart by so many spreads of the launches of a kind, or more."""
FEWEST_APART = math.log(1.25)
"""And by this difference of logs, or more."""


def bounded(base: Sequence[float], new: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Bound both sides of the pairs of one question.

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
    sides = np.array([base, new])
    larger, smaller = sides.max(axis=0), sides.min(axis=0)
    high = float(np.median(larger)) + FAR * spread(larger)
    low = float(np.median(smaller)) - FAR * spread(smaller)
    first, second = np.clip(sides, low, high).tolist()
    return tuple(first), tuple(second)


def spread(logs: Sequence[float] | NDArray[np.float64]) -> float:
    """A standard deviation from the median distance to the median, which a few strange launches hardly change."""
    values = np.asarray(logs, dtype=float)
    return max(SMALLEST, TO_SPREAD * float(np.median(np.abs(values - np.median(values)))))


@dataclass(frozen=True, slots=True)
class LaunchKinds:
    """The two kinds of launches of a question: fast ones and slow ones."""

    fast: float
    """Log of the middle fast launch of both sides."""
    slow: float
    base: tuple[int, int]
    """Slow launches of BASE, and all of them."""
    new: tuple[int, int]
    within: float
    """The largest change within a kind that both sides have: NEW minus BASE, in logs."""

    @property
    def factor(self) -> float:
        """How many times as long a slow launch takes."""
        return math.exp(self.slow - self.fast)

    @property
    def shares_differ(self) -> bool:
        return self.base[0] * self.new[1] != self.new[0] * self.base[1]


def kinds_of(base: Sequence[float], new: Sequence[float]) -> LaunchKinds | None:
    """Tell whether launches are of two kinds, split at the widest gap between their logs.

    Args:
        base: logs of the launches of BASE, not bounded.
        new: the same of NEW.

    Returns:
        The kinds; None where the gap is no wider than what launches of a kind differ by, or where it only divides BASE
        from NEW, which is a change of all launches.

    >>> kinds = kinds_of([0.0, 0.01, 0.02, 0.7], [0.71, 0.01, 0.69, 0.0])
    >>> kinds.base, kinds.new, round(kinds.factor, 1)
    ((1, 4), (2, 4), 2.0)
    """
    both = np.sort(np.concatenate([base, new]))
    if len(both) < 4:
        return None
    gaps = np.diff(both)
    at = int(np.argmax(gaps))
    groups = both[: at + 1], both[at + 1 :]
    inside = max((spread(group) for group in groups if len(group) > 2), default=math.inf)
    if gaps[at] < max(FEWEST_APART, GAP * inside):
        return None
    limit = (both[at] + both[at + 1]) / 2
    sides = [np.asarray(side) for side in (base, new)]
    shifts = []
    for of_kind in (lambda x: x[x < limit], lambda x: x[x > limit]):
        first, second = map(of_kind, sides)
        if first.size and second.size:
            shifts.append(float(np.median(second) - np.median(first)))
    if not shifts:
        return None
    counts = [(int((side > limit).sum()), len(side)) for side in sides]
    return LaunchKinds(
        float(np.median(groups[0])), float(np.median(groups[1])), counts[0], counts[1], max(shifts, key=abs)
    )

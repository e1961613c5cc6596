"""A mean of launches that a rare slow launch does not hide, and that holds where launches know of each other. Pure.

It takes over the correction for many questions, which counts of launches are too coarse for, beside a count that guards
it against modes (docs/statistics.md, Acceptance).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from omb_py.results.statistics.correlated_mean import mean_quantile, mean_tail
from omb_py.results.statistics.order_statistics import median
from omb_py.results.statistics.t_test import paired

CORRELATION = 0.5
"""Largest correlation of a launch with the one before under which a verdict keeps its rate."""
FEWEST = 4
"""Fewest launches whose spread is known at all."""
CLIPPED = 3.0
"""Multiple of the median distance from the limit at which the distance of a launch is clipped."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far launches are beyond a limit in the mean."""

    mean: float
    """In logs; below 0 where they are within the limit."""
    spread: float
    """Standard deviation that the launches show."""
    launches: int
    correlation: float
    """Of a launch with the one before."""

    @property
    def p_beyond(self) -> float:
        """P-value of "the true mean is at most at the limit"; 1 where the spread is unknown."""
        return self._tail(self.mean)

    @property
    def p_within(self) -> float:
        """P-value of "the true mean is at least at the limit"; 1 where the spread is unknown."""
        return self._tail(-self.mean)

    def margin(self, chance: float) -> float:
        """Distance that a mean at the limit exceeds with this chance; infinite where the spread is unknown."""
        if self.launches < FEWEST:
            return math.inf
        return self.spread * mean_quantile(chance, self.launches, self.correlation)

    def _tail(self, mean: float) -> float:
        if self.launches < FEWEST:
            return 1.0
        if self.spread == 0:
            return 0.0 if mean > 0 else 1.0
        return mean_tail(mean / self.spread, self.launches, self.correlation)


def distance(values: Sequence[float], limit: float, correlation: float = CORRELATION) -> Distance:
    """Measure how far launches are beyond a limit in the mean.

    A launch that is further from `limit` than :data:`CLIPPED` times the median distance counts as if it were just so
    far: else one that takes ten times as long would hide in its own spread that all others are beyond the limit, too.

    Args:
        values: log of each launch, or its difference to what it is compared with.
        limit: in the same terms.
        correlation: of a launch with the one before, below 1; less than :data:`CORRELATION` counts as that.

    Raises:
        ValueError: there is no launch.
    """
    over = [value - limit for value in values]
    most = CLIPPED * median([abs(distance) for distance in over])
    estimate = paired([0.0] * len(over), [min(max(distance, -most), most) for distance in over])
    spread = estimate.error * math.sqrt(len(over))  # infinite for one launch
    return Distance(estimate.difference, spread, len(over), max(correlation, CORRELATION))

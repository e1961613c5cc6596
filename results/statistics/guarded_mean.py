"""A mean of launches that a rare slow launch does not hide, and that holds where launches know of each other. Pure.

It takes over the correction for many questions, which counts of launches are too coarse for, beside a count that guards
it against modes (docs/statistics.md, Acceptance).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

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


Floats = NDArray[np.float64]
FARTHEST = 1e5
"""Largest quotient of mean and spread whose chance is computed; rounding is all there is beyond."""
_POINTS = 64
"""Points of the Gauss-Legendre quadrature over the angle."""


def mean_tail(quotient: float, launches: int, correlation: float) -> float:
    """Compute the chance that the mean of launches is so many spreads above the true mean, or more.

    The spread is the standard deviation that the launches show, with n - 1. With a correlation of 0 this is Student's t
    with n - 1 degrees of freedom, for quotient times √n.

    With the mean u z and the variance z B z of n independent normal z, the chance is half of that of
    z (u u - quotient² B) z > 0. This matrix has one eigenvalue above 0; with the others in units of it as -r_i the
    chance is 1/pi times the integral of the product of cos(x) / √(cos²(x) + r_i) from 0 to a right angle.

    Args:
        quotient: mean over spread; 0 or less has a chance of at least 1/2.
        launches: 2 or more.
        correlation: of a launch with the one before, 0 to below 1.

    >>> round(mean_tail(1.0, 10, 0.0), 4), round(mean_tail(1.0, 10, 0.5), 4), round(mean_tail(1.0, 10, 0.9), 4)
    (0.0058, 0.0592, 0.2795)
    """
    if quotient < 0:
        return 1.0 - mean_tail(-quotient, launches, correlation)
    above, spread = _forms(launches, correlation)
    values = np.linalg.eigvalsh(np.outer(above, above) - min(quotient, FARTHEST) ** 2 * spread)
    ratios = np.maximum(-values[:-1], 0.0) / values[-1]  # one is positive: the mean's
    angles, weights = _quadrature()
    return float(weights @ np.prod(np.sqrt(angles / (angles + ratios)), axis=1)) / math.pi


@lru_cache(maxsize=512)
def _forms(launches: int, correlation: float) -> tuple[Floats, Floats]:
    """Vector u and matrix B: of n independent z, the mean of the launches is u z, and their variance z B z."""
    places = np.arange(launches)
    values, vectors = np.linalg.eigh(correlation ** np.abs(places[:, None] - places))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    around = root - root.mean(axis=0)
    return root.mean(axis=0), around.T @ around / (launches - 1)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    """Squares of the cosines from 0 to a right angle, shape (points, 1), and the weights."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    return np.cos((points + 1) * math.pi / 4)[:, None] ** 2, weights * math.pi / 4

"""A mean of launches that a rare slow launch does not hide, and that holds where launches know of each other. Pure.

It takes over the correction for many questions, which counts of launches are too coarse for, beside a count that guards
it against modes (docs/statistics.md, Acceptance).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from omb_py.results.statistics.order_statistics import median
from omb_py.results.statistics.t_test import Estimate, paired

CORRELATION = 0.5
"""Largest correlation of a launch with the one before under which a verdict keeps its rate."""
CLIPPED = 3.0
"""Multiple of the median distance from the limit at which the distance of a launch is clipped."""


def distance(values: Sequence[float], limit: float) -> Estimate:
    """Estimate how far launches are beyond a limit in the mean.

    A launch that is further from `limit` than :data:`CLIPPED` times the median distance counts as if it were just so
    far: else one that takes ten times as long would hide in its own spread that all others are beyond the limit, too.

    The standard error of a mean of an AR(1) process is √τ times that of independent values, τ = (1 + ρ)/(1 - ρ), and
    the variance that n of its values show is too small by about the factor 1 - (τ - 1)/(n - 1). Both are made up for,
    with ρ = :data:`CORRELATION`.

    Args:
        values: log of each launch, or its difference to what it is compared with.
        limit: in the same terms.

    Returns:
        Mean distance, its standard error, and n - 1 degrees of freedom; up to three launches have no known spread.

    Raises:
        ValueError: there is no launch.
    """
    return widened(clipped(values, limit), len(values))


def clipped(values: Sequence[float], limit: float) -> Estimate:
    """Mean distance of launches from a limit, each clipped on both sides, with the error of independent launches."""
    over = [value - limit for value in values]
    most = CLIPPED * median([abs(distance) for distance in over])
    return paired([0.0] * len(over), [min(max(distance, -most), most) for distance in over])


def widened(estimate: Estimate, launches: int) -> Estimate:
    """Widen the error of a mean for correlated launches, as if there were so many with the same spread."""
    tau = (1 + CORRELATION) / (1 - CORRELATION)
    left = 1 - (tau - 1) / (launches - 1) if launches > 1 else 0.0
    if estimate.freedom <= 0 or left <= 0:
        return replace(estimate, error=math.inf, freedom=0.0)
    error = estimate.error * math.sqrt(estimate.base / launches * tau / left)
    return replace(estimate, error=error, freedom=launches - 1.0, base=launches, new=launches)

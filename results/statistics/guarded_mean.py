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
FREEDOM = 0.7
"""Share of n - 1 degrees of freedom that the spread of n launches counts as, up to this correlation.

The spread of nights of five launches is less sure than that of as many launches that know nothing of each other."""
FEWEST = 4
"""Fewest launches whose spread is known at all."""
CLIPPED = 3.0
"""Multiple of the median distance from the limit at which the distance of a launch is clipped."""


def distance(values: Sequence[float], limit: float, correlation: float = CORRELATION) -> Estimate:
    """Estimate how far launches are beyond a limit in the mean.

    A launch that is further from `limit` than :data:`CLIPPED` times the median distance counts as if it were just so
    far: else one that takes ten times as long would hide in its own spread that all others are beyond the limit, too.

    The mean of n values of an AR(1) process varies by v = ((1 + ρ)/(1 - ρ) - 2ρ(1 - ρⁿ)/(n(1 - ρ)²))/n of the variance
    of one value, and the variance that the values show is (1 - v)·n/(n - 1) of it in the mean. Both are made up for,
    with ρ = `correlation`.

    Args:
        values: log of each launch, or its difference to what it is compared with.
        limit: in the same terms.
        correlation: of a launch with the one before; less than :data:`CORRELATION` counts as that.

    Returns:
        Mean distance, its standard error, and the degrees of freedom of that: :data:`FREEDOM` of n - 1, and less for a
        larger correlation. Up to three launches have no known spread.

    Raises:
        ValueError: there is no launch.
    """
    return widened(clipped(values, limit), len(values), correlation)


def clipped(values: Sequence[float], limit: float) -> Estimate:
    """Mean distance of launches from a limit, each clipped on both sides, with the error of independent launches."""
    over = [value - limit for value in values]
    most = CLIPPED * median([abs(distance) for distance in over])
    return paired([0.0] * len(over), [min(max(distance, -most), most) for distance in over])


def widened(estimate: Estimate, launches: int, correlation: float = CORRELATION) -> Estimate:
    """Widen the error of a mean for correlated launches, as if there were so many with the same spread."""
    rho, n = max(correlation, CORRELATION), launches
    if estimate.freedom <= 0 or n < FEWEST:
        return replace(estimate, error=math.inf, freedom=0.0)
    share = ((1 + rho) / (1 - rho) - 2 * rho * (1 - rho**n) / (n * (1 - rho) ** 2)) / n
    error = estimate.error * math.sqrt(estimate.base / n * (n - 1) * share / (1 - share))
    freedom = FREEDOM * _known(rho) / _known(CORRELATION) * (n - 1)
    return replace(estimate, error=error, freedom=freedom, base=n, new=n)


def _known(rho: float) -> float:
    """Share of n - 1 degrees of freedom that the spread of n values of an AR(1) process has."""
    return (1 - rho**2) / (1 + rho**2)

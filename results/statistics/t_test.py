"""Student's t on logs of launch values: pure functions, derived in docs/statistics.md.

A launch is one number, the log of a statistic of it. Two sides are compared by the mean difference of these numbers:
by pairs where launches were interleaved, by Welch's formula where they were not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

MOST_NEEDED = 10_000
"""More launches than this nobody makes: :func:`launches_needed` gives up."""
_STEPS = (np.arange(500) + 0.5) / 500
"""Probabilities at which a distribution is taken."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The difference of two sides, in logs. Infinite error and no degrees of freedom where it is not known."""

    difference: float
    """Mean of log NEW minus mean of log BASE."""
    error: float
    """Standard error of it."""
    freedom: float
    """Degrees of freedom."""
    base: int
    """Launches of BASE."""
    new: int
    """Launches of NEW."""
    paired: bool

    @property
    def ratio(self) -> float:
        """NEW over BASE."""
        return math.exp(self.difference)

    @property
    def p(self) -> float:
        """Two-sided p-value of "no difference". 1 where nothing is known of the spread."""
        if self.freedom <= 0:
            return 1.0
        if self.error == 0:
            return 1.0 if self.difference == 0 else 0.0
        return min(1.0, 2 * float(special.stdtr(self.freedom, -abs(self.difference) / self.error)))

    def interval(self, level: float) -> tuple[float, float]:
        """Confidence interval of the ratio, e.g. `level` 0.99; (0, inf) where nothing is known of the spread."""
        if self.freedom <= 0:
            return 0.0, math.inf
        half = quantile(0.5 + level / 2, self.freedom) * self.error
        return _exp(self.difference - half), _exp(self.difference + half)


def paired(base: Sequence[float], new: Sequence[float]) -> Estimate:
    """The estimate from pairs of launches that were made one after the other; logs, in the order of the pairs.

    Raises ValueError when the lengths differ or there is nothing.
    """
    differences = [b - a for a, b in zip(base, new, strict=True)]
    mean, variance = _moments(differences)
    n = len(differences)
    return Estimate(mean, math.sqrt(variance / n) if n > 1 else math.inf, n - 1.0, n, n, paired=True)


def welch(base: Sequence[float], new: Sequence[float]) -> Estimate:
    """The estimate from two independent sets of launches, whose spreads may differ; logs.

    Degrees of freedom by Welch and Satterthwaite (B. L. Welch, Biometrika 34, 1947). Raises ValueError when a side is
    empty.
    """
    (mean_a, variance_a), (mean_b, variance_b) = _moments(base), _moments(new)
    counts = len(base), len(new)
    if min(counts) < 2:
        return Estimate(mean_b - mean_a, math.inf, 0.0, *counts, paired=False)
    a, b = variance_a / counts[0], variance_b / counts[1]
    freedom = float(sum(counts) - 2)
    if a + b > 0:  # in shares, so that tiny variances do not underflow
        share = a / (a + b)
        freedom = 1 / (share**2 / (counts[0] - 1) + (1 - share) ** 2 / (counts[1] - 1))
    return Estimate(mean_b - mean_a, math.sqrt(a + b), freedom, *counts, paired=False)


def detectable(estimate: Estimate, alpha: float, power: float) -> float:
    """The smallest change, as a ratio over 1, that a test like this finds.

    Args:
        estimate: for the spread and the number of launches.
        alpha: level of the two-sided test.
        power: chance of finding it.

    Returns:
        For example 1.034 for +3.4 %; infinite where nothing is known of the spread.
    """
    if estimate.freedom <= 0:
        return math.inf
    return _exp(_noncentrality(estimate.freedom, alpha, power) * estimate.error)


def launches_needed(estimate: Estimate, change: float, alpha: float, power: float) -> int | None:
    """How many launches a side would find a change at this spread.

    Args:
        estimate: for the spread; how the launches would be compared stays as it is.
        change: ratio, over or under 1.
        alpha: level of the two-sided test.
        power: chance of finding it.

    Returns:
        At least 2; None where nothing is known of the spread, or over :data:`MOST_NEEDED` would be needed.
    """
    effect = abs(math.log(change))
    if estimate.freedom <= 0 or effect == 0:
        return None

    def finds(n: int) -> bool:
        if estimate.paired:
            error, freedom = estimate.error * math.sqrt(estimate.base / n), n - 1.0
        else:
            # equal numbers; the worse half of the spread that the two sides may have
            harmonic = 2 / (1 / estimate.base + 1 / estimate.new)
            error, freedom = estimate.error * math.sqrt(harmonic / n), estimate.freedom * n / harmonic
        return _noncentrality(max(1.0, freedom), alpha, power) * error <= effect

    low, high = 2, 2
    while not finds(high):
        low, high = high + 1, 2 * high
        if low > MOST_NEEDED:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if finds(middle) else (middle + 1, high)
    return low


def quantile(p: float, freedom: float) -> float:
    """The `p` quantile of Student's distribution."""
    return float(special.stdtrit(freedom, p))


@lru_cache(maxsize=4096)
def _noncentrality(freedom: float, alpha: float, power: float) -> float:
    """Of the t statistic whose two-sided test at `alpha` has this power; the far tail is left out.

    P(T > t) is the mean of Phi(nc - t * s) over the distribution of s, the estimated spread over the true one, taken at
    even steps of its probability. (SciPy's nctdtrinc does the same, but does not end for some arguments.)
    """
    critical = quantile(1 - alpha / 2, freedom)
    spreads = critical * np.sqrt(special.chdtri(freedom, _STEPS) / freedom)
    low, high = 0.0, critical * 20 + 20
    for _ in range(60):
        middle = (low + high) / 2
        detected = float(special.ndtr(middle - spreads).mean()) >= power
        low, high = (low, middle) if detected else (middle, high)
    return high


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and variance with n - 1. Raises ValueError on nothing."""
    if not values:
        raise ValueError("no launches")
    mean = math.fsum(values) / len(values)
    if len(set(values)) == 1:  # rounding of the mean is no spread
        return values[0], 0.0
    return mean, math.fsum((v - mean) ** 2 for v in values) / max(1, len(values) - 1)


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf

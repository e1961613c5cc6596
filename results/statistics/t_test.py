"""Student's t on logs of launch values: pure functions.

Each launch gives one number, the log of one of its statistics. Two sides are compared by the mean difference of these
numbers: by pairs where launches were interleaved, by Welch's formula where they were not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # it loads scipy.special when that is first used: help pages need none of it
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_NEEDED = 10_000
"""Most launches that :func:`launches_needed` searches: nobody makes more."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The difference of two sides, in logs. Where the spread is unknown, error is infinite and freedom is 0."""

    difference: float
    """Mean of log NEW minus mean of log BASE."""
    error: float
    freedom: float
    base: int
    new: int
    paired: bool

    @property
    def ratio(self) -> float:
        """NEW over BASE, in times."""
        return math.exp(self.difference)

    @property
    def p(self) -> float:
        """Two-sided p-value of "no difference"; 1 where the spread is unknown."""
        if self.freedom <= 0:
            return 1.0
        if self.error == 0:
            return 1.0 if self.difference == 0 else 0.0
        return min(1.0, 2 * float(scipy.special.stdtr(self.freedom, -abs(self.difference) / self.error)))

    def limits(self, level: float) -> tuple[float, float]:
        """Confidence limits of the difference at a level such as 0.99; infinite where the spread is unknown."""
        if self.freedom <= 0:
            return -math.inf, math.inf
        half = quantile(0.5 + level / 2, self.freedom) * self.error
        return self.difference - half, self.difference + half


def paired(base: Sequence[float], new: Sequence[float]) -> Estimate:
    """Estimate the difference from pairs of launches that were made one after the other.

    Args:
        base: logs of the launches of BASE, in the order of the pairs.
        new: logs of the launches of NEW, in the same order.

    Raises:
        ValueError: the lengths differ, or there is no launch.
    """
    differences = [b - a for a, b in zip(base, new, strict=True)]
    mean, variance = moments(differences)
    n = len(differences)
    return Estimate(mean, math.sqrt(variance / n) if n > 1 else math.inf, n - 1.0, n, n, paired=True)


def welch(base: Sequence[float], new: Sequence[float]) -> Estimate:
    """Estimate the difference from two independent sets of launches, whose spreads may differ.

    The degrees of freedom are those of Welch and Satterthwaite (B. L. Welch, Biometrika 34, 1947).

    Args:
        base: logs of the launches of BASE.
        new: logs of the launches of NEW.

    Raises:
        ValueError: a side is empty.
    """
    (mean_a, variance_a), (mean_b, variance_b) = moments(base), moments(new)
    counts = len(base), len(new)
    if min(counts) < 2:
        return Estimate(mean_b - mean_a, math.inf, 0.0, *counts, paired=False)
    a, b = variance_a / counts[0], variance_b / counts[1]
    freedom = float(sum(counts) - 2)
    if a + b > 0:  # in shares, so that tiny variances do not underflow
        share = a / (a + b)
        freedom = 1 / (share**2 / (counts[0] - 1) + (1 - share) ** 2 / (counts[1] - 1))
    return Estimate(mean_b - mean_a, math.sqrt(a + b), freedom, *counts, paired=False)


def welch_of_rounded(base: Sequence[float], new: Sequence[float]) -> Estimate:
    """:func:`welch`, with an error of at least what rounding gives to the difference (:func:`rounding`).

    Two sides of a few printed or clocked times are often constant: without that floor their spread is 0, and the least
    difference would be certain.

    Raises:
        ValueError: a side is empty.
    """
    estimate = welch(base, new)
    floor = rounding([*base, *new]) * math.sqrt(1 / len(base) + 1 / len(new))
    return replace(estimate, error=max(estimate.error, floor))


def split_chances(values: Floats, shortest: int) -> Floats:
    """The p of :func:`welch_of_rounded` for each split into two parts of `shortest` values or more, the earliest first.

    From running sums, so that a long series takes as long as it is: p may differ in its last digits.
    """
    cuts = np.arange(shortest, len(values) - shortest + 1)
    away = values - values.mean()
    sums, squares = np.cumsum(away), np.cumsum(away**2)
    counts = np.array([cuts, len(values) - cuts])
    totals = np.array([sums[cuts - 1], sums[-1] - sums[cuts - 1]])
    powers = np.array([squares[cuts - 1], squares[-1] - squares[cuts - 1]])
    spreads = np.maximum(powers - totals**2 / counts, 0.0) / (counts - 1) / counts
    both = spreads.sum(axis=0)
    error = np.maximum(np.sqrt(both), rounding(values) * np.sqrt((1 / counts).sum(axis=0)))
    share = np.divide(spreads[0], both, out=np.zeros(len(cuts)), where=both > 0)
    freedom = 1 / (share**2 / (counts[0] - 1) + (1 - share) ** 2 / (counts[1] - 1))
    freedom[both == 0] = len(values) - 2.0
    apart = np.abs(totals[1] / counts[1] - totals[0] / counts[0])
    t = np.divide(apart, error, out=np.where(apart > 0, np.inf, 0.0), where=error > 0)
    chances: Floats = 2 * scipy.special.stdtr(freedom, -t)
    return chances


def detectable(estimate: Estimate, alpha: float, power: float, tolerance: float = 0.0) -> float:
    """Compute the smallest change that a test with this spread and number of launches detects.

    It is exp(nc · error), with nc the noncentrality at which Student's test at `alpha` has this power; and at least
    exp(tolerance + q · error), with q the quantile of `power`: from there on an estimate lies beyond the tolerance.

    Args:
        estimate: gives the spread and the number of launches.
        alpha: level of the two-sided test.
        power: chance of detecting the change.
        tolerance: difference of logs from which on an estimate counts.

    Returns:
        A ratio over 1, for example 1.034 for +3.4 %; infinite where the spread is unknown.
    """
    if estimate.freedom <= 0:
        return math.inf
    beyond_noise = _noncentrality(estimate.freedom, alpha, power) * estimate.error
    beyond_tolerance = tolerance + quantile(power, estimate.freedom) * estimate.error
    return ratio_of(max(beyond_noise, beyond_tolerance))


OF_FEW_PAIRS = 18.0
"""Few pairs must also agree under exchanges of their sides, which costs power: the change that n pairs find is as large
as that of a t test whose error is larger by this over n² (1.5 times at 6 pairs, 1.05 at 20; simulated in its test)."""


def launches_needed(
    estimate: Estimate, change: float, alpha: float, power: float, constant: bool = False
) -> int | None:
    """Compute how many launches a side detect a change at this spread; of pairs, which must agree when exchanged too.

    Args:
        estimate: gives the spread, and whether launches are compared by pairs.
        change: the change as a ratio, over or under 1.
        alpha: level of the two-sided test.
        power: chance of detecting the change.
        constant: True where all launches of a side are equal, so that pairs agree however they are exchanged.

    Returns:
        2 or more; None where the spread is unknown, or more than :data:`MOST_NEEDED` launches would be needed.
    """
    effect = abs(math.log(change))
    if estimate.freedom <= 0 or effect == 0:
        return None

    def finds(n: int) -> bool:
        if estimate.paired:
            # a spread that is shared with other questions has more degrees of freedom than the pairs give
            error = estimate.error if constant else of_few_pairs(estimate.error, n)
            error, freedom = error * math.sqrt(estimate.base / n), estimate.freedom + n - estimate.base
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


def of_few_pairs(error: float, pairs: int) -> float:
    """The error of a t test that finds as much as so many pairs do: see :data:`OF_FEW_PAIRS`."""
    return error * (1 + OF_FEW_PAIRS / pairs**2)


def quantile(p: float, freedom: float) -> float:
    """The `p` quantile of Student's t distribution."""
    return float(scipy.special.stdtrit(freedom, p))


def _noncentrality(freedom: float, alpha: float, power: float) -> float:
    """Noncentrality of the t statistic whose two-sided test at `alpha` has this power; the far tail is left out.

    By N. Johnson and B. Welch (Biometrika 31, 1940): within 1 % from 5 degrees of freedom on, 5 % with one.
    """
    critical = quantile(1 - alpha / 2, freedom)
    spread = math.sqrt(1 + critical**2 / (2 * freedom))
    return critical * (1 - 1 / (4 * freedom)) + float(scipy.special.ndtri(power)) * spread


def moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and variance with n - 1. Raises ValueError when there is no value."""
    if not values:
        raise ValueError("no launches")
    mean = math.fsum(values) / len(values)
    if len(set(values)) == 1:  # rounding of the mean is no spread
        return values[0], 0.0
    return mean, math.fsum((v - mean) ** 2 for v in values) / max(1, len(values) - 1)


def ratio_of(log: float) -> float:
    """The ratio whose log is given; infinite instead of an overflow."""
    return math.exp(log) if log < 700 else math.inf


def rounding(logs: Sequence[float] | Floats) -> float:
    """Standard deviation that rounding gives to a value, in logs; 0 where no value occurs twice.

    Continuous times are never equal. Equal ones were rounded by a clock or in print, and the smallest step between
    different values is at least what they were rounded to: a value is uniform within a step, which has a standard
    deviation of step/√12.

    Args:
        logs: logs of all launches of a question.

    >>> round(rounding([0.0, 0.0, 0.05, 0.1]), 4)
    0.0144
    """
    distinct = np.unique(np.asarray(logs, dtype=float))
    if len(distinct) == len(logs) or len(distinct) < 2:
        return 0.0
    return float(np.diff(distinct).min()) / math.sqrt(12)

"""Statistics of one series of samples: pure functions on arrays, derived in docs/statistics.md."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
"""Confidence level of the stored interval and of the stop rule."""

MAX_LAG = 50
RHO_CUT = 0.05
_EXACT_RANKS = 200
"""Up to this many samples the rank of the interval comes from the binomial distribution itself."""


def _series(x: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(x, dtype=np.float64).ravel()


def autocorrelation_time(x: ArrayLike) -> float:
    """Number of successive samples that carry the information of one independent sample.

    tau = 1 + 2 * sum of rho_k, with rho_k the autocorrelation at lag k of sign(x - median); the sum ends before the
    first rho_k < 0.05, and at k = 50. At least 1.
    """
    values = _series(x)
    if values.size < 3:
        return 1.0
    signs = np.sign(values - np.median(values))
    signs -= signs.mean()
    power = float(signs @ signs)
    if power <= 0.0:
        return 1.0
    total = 0.0
    for lag in range(1, min(MAX_LAG, values.size - 1) + 1):
        rho = float(signs[:-lag] @ signs[lag:]) / power
        if rho < RHO_CUT:
            break
        total += rho
    return 1.0 + 2.0 * total


def effective_size(x: ArrayLike) -> float:
    """Number of independent samples that would tell as much about the median: n / tau."""
    values = _series(x)
    return values.size / autocorrelation_time(values)


@lru_cache(maxsize=4096)
def _lower_rank(n: int, level: float) -> int:
    """Largest k with P(Binomial(n, 1/2) < k) <= (1 - level) / 2; 0 when there is none.

    The k-th smallest and the k-th largest of n independent samples then enclose the median at `level`.
    """
    if n > _EXACT_RANKS:
        z = NormalDist().inv_cdf(0.5 + level / 2)
        return max(0, math.floor((n + 1 - z * math.sqrt(n)) / 2))
    allowed = (1 - level) / 2 * 2**n
    below, k = 0, 0
    while (below := below + math.comb(n, k)) <= allowed:
        k += 1
    return k


def median_interval(x: ArrayLike, level: float = LEVEL, tau: float | None = None) -> tuple[float, float]:
    """Confidence interval of the median from order statistics, widened for autocorrelation.

    Args:
        x: samples, in order of time.
        level: confidence level.
        tau: autocorrelation time; measured from `x` when None. 1 gives the interval of independent samples.

    Returns:
        (low, high), both values of `x`; (nan, nan) when there are too few samples: at 95 % under 6 independent ones.
    """
    values = _series(x)
    n = values.size
    rank = _lower_rank(n, level) if n else 0
    if rank < 1:
        return math.nan, math.nan
    widening = math.sqrt(autocorrelation_time(values) if tau is None else max(1.0, tau))
    centre = (n + 1) / 2
    # a hair keeps tau = 1 exactly on the rank
    low = math.floor(centre - (centre - rank) * widening + 1e-9)
    if low < 1:
        return math.nan, math.nan
    high = n + 1 - low
    ordered = np.partition(values, (low - 1, high - 1))
    return float(ordered[low - 1]), float(ordered[high - 1])


def relative_half_width(x: ArrayLike) -> float:
    """Half the width of the 95 % interval of the median, over the median: the stop rule of ``-i auto``.

    Infinite when the interval does not exist yet, so that ``relative_half_width(x) <= precision`` is never true by
    accident and a maximum over ranks stays meaningful.
    """
    values = _series(x)
    low, high = median_interval(values)
    if math.isnan(low):
        return math.inf
    if high == low:
        return 0.0
    middle = float(np.median(values))
    return (high - low) / 2 / middle if middle > 0 else math.inf


def checkpoints(limit: int, first: int = 100) -> list[int]:
    """Iteration counts at which ``-i auto`` may stop: min(first, limit), then ×1.5 rounded up, ending at `limit`.

    >>> checkpoints(1000)
    [100, 150, 225, 338, 507, 761, 1000]
    """
    if limit < 1 or first < 1:
        raise ValueError(f"counts start at 1: limit {limit}, first {first}")
    points = [min(first, limit)]
    while points[-1] < limit:
        points.append(min(limit, (3 * points[-1] + 1) // 2))
    return points


def omb_percentile(values: ArrayLike, p: float) -> float:
    """Percentile `p` (0 to 100) by OMB's rule: ascending, index floor(n * p / 100) - 1, at least 0.

    With 20 values P99 is the 19th, never the largest. OMB reads before the array when n * p < 100; this does not.
    Raises ValueError on no values.
    """
    series = _series(values)
    if series.size == 0:
        raise ValueError("no values")
    index = min(series.size, max(1, int(series.size * p // 100))) - 1
    return float(np.partition(series, index)[index])


def supports(n: int, q: float) -> bool:
    """Whether `n` samples can say anything about quantile `q`: at least one is expected on either side of it.

    So the median needs 2 samples, p95 and p05 need 20, p99 needs 100, p99.9 needs 1000.
    """
    return n * min(q, 1 - q) >= 1 - 1e-9


def quantile_or_null(x: ArrayLike, q: float) -> float | None:
    """Quantile `q` (0 to 1), linear between the two nearest samples; None where :func:`supports` says no."""
    values = _series(x)
    if not supports(values.size, q):
        return None
    return float(np.quantile(values, q))


def median_absolute_deviation(x: ArrayLike) -> float:
    """Median of abs(x - median), not scaled to a standard deviation. NaN on no values."""
    values = _series(x)
    if values.size == 0:
        return math.nan
    return float(np.median(np.abs(values - np.median(values))))

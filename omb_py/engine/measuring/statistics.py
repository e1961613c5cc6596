"""Statistics of one series of samples: pure functions on arrays."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
"""Confidence level of the stored interval and of the stop rule."""

BATCHES = 16
"""Equal stretches into which a series is cut to see how far apart its samples still know of each other."""
_SHORTEST_BATCH = 3
SLOW = 0.4
"""Correlation of successive batches above which the dependence is too slow for this series."""
_MOST_CORRELATED = 0.9
_STUDENT = 1.0875
"""Student's over the normal quantile at :data:`LEVEL` with BATCHES - 1 degrees of freedom: 2.1314 / 1.9600."""
EARLIEST = 4
"""``-i auto`` never stops before OMB's count divided by this."""
MAX_LAG = 50
RHO_CUT = 0.05
_EXACT_RANKS = 200
"""Up to this many samples the rank of the interval comes from the binomial distribution itself."""


def _series(x: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(x, dtype=np.float64).ravel()


def autocorrelation_time(x: ArrayLike) -> float:
    """Number of successive samples that carry the information of one independent sample, at least 1.

    From lags: 1 + 2 * sum of rho_k, with rho_k the autocorrelation at lag k of sign(x - median); the sum ends before
    the first rho_k < 0.05, and at k = 50. Where batches (:func:`_batch_time`) say more than three times as much,
    which is rare by chance, theirs.
    """
    values = _series(x)
    from_lags, from_batches = _lag_time(values), _batch_time(values)
    return from_batches if from_batches > 3 * from_lags else from_lags


def _signs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    signs: NDArray[np.float64] = np.sign(values - np.median(values))
    signs -= signs.mean()
    return signs


def _lag_time(values: NDArray[np.float64]) -> float:
    if values.size < 3:
        return 1.0
    signs = _signs(values)
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


def _batch_time(values: NDArray[np.float64]) -> float:
    """m times the variance of the means of the signs over batches of m samples, over the variance of the signs.

    Batches whose means are correlated by r, because they are too short, count (1 + r) / (1 - r) times. 1 with too few
    samples to tell.
    """
    if values.size < _SHORTEST_BATCH * BATCHES:
        return 1.0
    signs = _signs(values)
    power = float(signs @ signs)
    if power <= 0.0:
        return 1.0
    means = _batches(signs).mean(axis=1)
    r = min(_correlation(means), _MOST_CORRELATED)
    return values.size // BATCHES * float(means.var(ddof=1)) * (1 + r) / (1 - r) * values.size / power


def too_slow(x: ArrayLike) -> bool:
    """Whether samples know of each other over too long for this series to tell how well its median is known.

    True where successive batches (:data:`BATCHES`) are correlated by more than :data:`SLOW`, in the share of samples
    above the median. False with too few samples to tell.
    """
    values = _series(x)
    if values.size < _SHORTEST_BATCH * BATCHES:
        return False
    return _correlation(_batches(np.sign(values - np.median(values))).mean(axis=1)) > SLOW


def _batches(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The last samples in batches of equal length, shape (BATCHES, m); up to BATCHES - 1 at the beginning are left."""
    length = values.size // BATCHES
    return values[values.size - BATCHES * length :].reshape(BATCHES, length)


def _correlation(batches: NDArray[np.float64]) -> float:
    """Lag-1 correlation of batches, at least 0; 1/BATCHES undoes what taking their mean away costs."""
    apart = batches - batches.mean()
    power = float(apart @ apart)
    if power <= BATCHES * (1e-12 * float(np.abs(batches).max())) ** 2:  # rounding is no scatter
        return 0.0
    return max(0.0, float(apart[1:] @ apart[:-1]) / power + 1 / BATCHES)


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
        (low, high), both values of `x`; (nan, nan) when there are too few samples: at 95 % under 6 independent ones;
        and when `tau` is measured and the samples are :func:`too_slow`.
    """
    values = _series(x)
    n = values.size
    if tau is None and too_slow(values):
        return math.nan, math.nan
    rank = _lower_rank(n, level) if n else 0
    if rank < 1:
        return math.nan, math.nan
    if tau is None:
        tau = max(_lag_time(values), _batch_time(values) * _STUDENT**2)
    widening = math.sqrt(max(1.0, tau))
    centre = (n + 1) / 2
    # a hair keeps tau = 1 exactly on the rank
    low = math.floor(centre - (centre - rank) * widening + 1e-9)
    if low < 1:
        return math.nan, math.nan
    high = n + 1 - low
    ordered = np.partition(values, (low - 1, high - 1))
    return float(ordered[low - 1]), float(ordered[high - 1])


def relative_half_width(x: ArrayLike) -> float:
    """Half the width of the 95 % interval of the median, over the median.

    Infinite when there is no interval, so that ``relative_half_width(x) <= precision`` is never true by accident and a
    maximum over ranks stays meaningful.
    """
    values = _series(x)
    low, high = median_interval(values)
    if math.isnan(low):
        return math.inf
    if high == low:
        return 0.0
    middle = float(np.median(values))
    return (high - low) / 2 / middle if middle > 0 else math.inf


def settled(x: ArrayLike, precision: float) -> bool:
    """Whether the median is known to `precision`, relative: the stop rule of ``-i auto``.

    Three things must hold. There is an interval of the median, and half of its width is at most `precision`. So is
    half of that from the medians of :data:`BATCHES` batches, which jump where samples are of two kinds. And the
    medians of the first and the second half differ by at most `precision`, with the standard error of their difference
    added: a drift that is too small to be seen must also be too small to matter.

    Args:
        x: samples so far, in order of time.
        precision: half-width over median.
    """
    values = _series(x)
    if values.size < _SHORTEST_BATCH * BATCHES or relative_half_width(values) > precision:
        return False
    allowed = precision * float(np.median(values))
    medians = np.median(_batches(values), axis=1)
    r = min(_correlation(medians), _MOST_CORRELATED)
    error = float(medians.std(ddof=1)) / math.sqrt(BATCHES) * math.sqrt((1 + r) / (1 - r))
    if NormalDist().inv_cdf(0.5 + LEVEL / 2) * _STUDENT * error > allowed:
        return False
    half = values.size // 2
    apart = abs(float(np.median(values[:half])) - float(np.median(values[half:])))
    return apart + 2 * error <= allowed


def checkpoints(limit: int, first: int = 100) -> list[int]:
    """Iteration counts at which a loop may stop: min(first, limit), then ×1.5 rounded up, ending at `limit`.

    >>> checkpoints(1000)
    [100, 150, 225, 338, 507, 761, 1000]
    """
    if limit < 1 or first < 1:
        raise ValueError(f"counts start at 1: limit {limit}, first {first}")
    points = [min(first, limit)]
    while points[-1] < limit:
        points.append(min(limit, (3 * points[-1] + 1) // 2))
    return points


def late_enough(n: int, limit: int) -> bool:
    """Whether `n` of `limit` samples are a part of a launch that may speak for the whole of it."""
    return n * EARLIEST >= limit


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

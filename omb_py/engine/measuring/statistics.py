"""Statistics of one series of samples: pure functions."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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


class SignSeries:
    """Samples in order of time, and for each of them whether it is above or below the median.

    The two are kept as the bytes of whole numbers, a byte a sample, so that one operation compares all samples with
    those that came `lag` earlier. Nothing here needs NumPy: ranks use it.
    """

    def __init__(self, x: ArrayLike) -> None:
        self.values: Sequence[float] = _plain(x)
        self.size = len(self.values)
        self.ordered = sorted(self.values)
        self.median = _middle(self.ordered)
        self.above = bytes(map(self.median.__lt__, self.values))
        self.below = bytes(map(self.median.__gt__, self.values))
        self.mean = (self.above.count(1) - self.below.count(1)) / self.size if self.size else 0.0
        """Of the signs: 1 above the median, -1 below, 0 at it."""

    @property
    def power(self) -> float:
        """Sum of the squares of the signs less their mean."""
        return self.above.count(1) + self.below.count(1) - self.size * self.mean**2

    def correlation(self, lag: int) -> float:
        """The autocorrelation of the signs at a lag."""
        up, down = (int.from_bytes(signs, "little") for signs in (self.above, self.below))
        later_up, later_down = up >> 8 * lag, down >> 8 * lag
        alike = (up & later_up).bit_count() + (down & later_down).bit_count()
        unlike = (up & later_down).bit_count() + (down & later_up).bit_count()
        first, last = self.sum_of(lag, self.size), self.sum_of(0, self.size - lag)
        return (alike - unlike - self.mean * (first + last) + (self.size - lag) * self.mean**2) / self.power

    def autocorrelation_time(self) -> float:
        """Number of successive samples that carry the information of one independent sample, at least 1.

        From lags: 1 + 2 * sum of rho_k, with rho_k the autocorrelation at lag k of sign(x - median); the sum ends
        before the first rho_k < 0.05, and at k = 50. Where batches (:func:`_batch_time`) say more than three times as
        much, which is rare by chance, theirs.
        """
        from_lags, from_batches = _lag_time(self), _batch_time(self)
        return from_batches if from_batches > 3 * from_lags else from_lags

    def median_interval(self, level: float = LEVEL, tau: float | None = None) -> tuple[float, float]:
        """Confidence interval of the median from order statistics, widened for autocorrelation.

        Args:
            level: confidence level.
            tau: autocorrelation time; measured when None. 1 gives the interval of independent samples.

        Returns:
            (low, high), both values of the series; (nan, nan) when there are too few samples: at 95 % under 6
            independent ones; and when `tau` is measured and the samples are :func:`too_slow`.
        """
        if tau is None and _is_too_slow(self):
            return math.nan, math.nan
        rank = _lower_rank(self.size, level) if self.size else 0
        if rank < 1:
            return math.nan, math.nan
        if tau is None:
            tau = max(_lag_time(self), _batch_time(self) * _STUDENT**2)
        widening = math.sqrt(max(1.0, tau))
        centre = (self.size + 1) / 2
        # a hair keeps tau = 1 exactly on the rank
        low = math.floor(centre - (centre - rank) * widening + 1e-9)
        if low < 1:
            return math.nan, math.nan
        return float(self.ordered[low - 1]), float(self.ordered[self.size - low])

    def sum_of(self, start: int, stop: int) -> int:
        """Sum of the signs of some samples."""
        return self.above.count(1, start, stop) - self.below.count(1, start, stop)

    def batch_means(self, centre: float) -> list[float]:
        """Means of the signs, less `centre`, over :data:`BATCHES`; up to BATCHES - 1 at the beginning are left."""
        return [self.sum_of(start, stop) / (stop - start) - centre for start, stop in batches_of(self.size)]


def batches_of(size: int) -> list[tuple[int, int]]:
    """Where each batch of the last samples begins and ends; all are of equal length."""
    length = size // BATCHES
    begin = size - BATCHES * length
    return [(start, start + length) for start in range(begin, size, length)]


def _plain(x: ArrayLike) -> Sequence[float]:
    """Numbers as Python has them, in a row."""
    if isinstance(x, (list, tuple, array)):
        return x
    import numpy as np

    flat: list[float] = np.asarray(x, dtype=np.float64).ravel().tolist()
    return flat


def _middle(ordered: Sequence[float]) -> float:
    size = len(ordered)
    if not size:
        return math.nan
    return float(ordered[size // 2]) if size % 2 else (ordered[size // 2 - 1] + ordered[size // 2]) / 2


def median_of(values: Sequence[float]) -> float:
    """The median; NaN on no values."""
    return _middle(sorted(values))


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _lag_time(series: SignSeries) -> float:
    if series.size < 3 or series.power <= 0.0:
        return 1.0
    total = 0.0
    for lag in range(1, min(MAX_LAG, series.size - 1) + 1):
        rho = series.correlation(lag)
        if rho < RHO_CUT:
            break
        total += rho
    return 1.0 + 2.0 * total


def _batch_time(series: SignSeries) -> float:
    """m times the variance of the means of the signs over batches of m samples, over the variance of the signs.

    Batches whose means are correlated by r, because they are too short, count (1 + r) / (1 - r) times. 1 with too few
    samples to tell.
    """
    if series.size < _SHORTEST_BATCH * BATCHES or series.power <= 0.0:
        return 1.0
    means = series.batch_means(series.mean)
    r = min(_correlation(means), _MOST_CORRELATED)
    return series.size // BATCHES * _variance(means) * (1 + r) / (1 - r) * series.size / series.power


def too_slow(x: ArrayLike) -> bool:
    """Whether samples know of each other over too long for this series to tell how well its median is known.

    True where successive batches (:data:`BATCHES`) are correlated by more than :data:`SLOW`, in the share of samples
    above the median. False with too few samples to tell.
    """
    return _is_too_slow(SignSeries(x))


def _is_too_slow(series: SignSeries) -> bool:
    return series.size >= _SHORTEST_BATCH * BATCHES and _correlation(series.batch_means(0.0)) > SLOW


def _correlation(batches: Sequence[float]) -> float:
    """Lag-1 correlation of batches, at least 0; 1/BATCHES undoes what taking their mean away costs."""
    mean = sum(batches) / len(batches)
    apart = [batch - mean for batch in batches]
    power = sum(each * each for each in apart)
    if power <= BATCHES * (1e-12 * max(map(abs, batches))) ** 2:  # rounding is no scatter
        return 0.0
    together: float = sum(map(mul, apart[1:], apart))
    return max(0.0, together / power + 1 / BATCHES)


@lru_cache(maxsize=4096)
def _lower_rank(n: int, level: float) -> int:
    """Largest k with P(Binomial(n, 1/2) < k) <= (1 - level) / 2; 0 when there is none.

    The k-th smallest and the k-th largest of n independent samples then enclose the median at `level`.
    """
    if n > _EXACT_RANKS:
        z = _quantile(level)
        return max(0, math.floor((n + 1 - z * math.sqrt(n)) / 2))
    allowed = (1 - level) / 2 * 2**n
    below, k = 0, 0
    while (below := below + math.comb(n, k)) <= allowed:
        k += 1
    return k


def _half_width(series: SignSeries) -> float:
    """Half the width of the 95 % interval of the median, over the median; infinite where there is no interval."""
    low, high = series.median_interval()
    if math.isnan(low):
        return math.inf
    if high == low:
        return 0.0
    return (high - low) / 2 / series.median if series.median > 0 else math.inf


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
    series = SignSeries(x)
    if series.size < _SHORTEST_BATCH * BATCHES or _half_width(series) > precision:
        return False
    allowed = precision * series.median
    medians = [median_of(series.values[start:stop]) for start, stop in batches_of(series.size)]
    r = min(_correlation(medians), _MOST_CORRELATED)
    error = math.sqrt(_variance(medians) / BATCHES) * math.sqrt((1 + r) / (1 - r))
    if _quantile(LEVEL) * _STUDENT * error > allowed:
        return False
    half = series.size // 2
    apart = abs(median_of(series.values[:half]) - median_of(series.values[half:]))
    return apart + 2 * error <= allowed


def _quantile(level: float) -> float:
    """How many standard deviations to either side hold a share of `level` of a normal distribution."""
    if level == LEVEL:
        return 1.959963984540054
    from statistics import NormalDist  # which loads much for one number

    return NormalDist().inv_cdf(0.5 + level / 2)


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
    series = sorted(_plain(values))
    if not series:
        raise ValueError("no values")
    return float(series[min(len(series), max(1, int(len(series) * p // 100))) - 1])


def supports(n: int, q: float) -> bool:
    """Whether `n` samples can say anything about quantile `q`: at least one is expected on either side of it.

    So the median needs 2 samples, p95 and p05 need 20, p99 needs 100, p99.9 needs 1000.
    """
    return n * min(q, 1 - q) >= 1 - 1e-9


def quantile_or_null(x: ArrayLike | SignSeries, q: float) -> float | None:
    """Quantile `q` (0 to 1), linear between the two nearest samples; None where :func:`supports` says no."""
    ordered = x.ordered if isinstance(x, SignSeries) else sorted(_plain(x))
    if not supports(len(ordered), q):
        return None
    place = (len(ordered) - 1) * q
    below = min(int(place), len(ordered) - 2) if len(ordered) > 1 else 0
    low, high, share = ordered[below], ordered[min(below + 1, len(ordered) - 1)], place - below
    # from the nearer end, so that quantile 1 is the largest sample itself
    return float(low + (high - low) * share if share < 0.5 else high - (high - low) * (1 - share))

"""Joint sign flips of paired differences: many questions at once, exact for any dependence.

A pair of launches gives one difference (NEW minus BASE, in logs) for each question. If the side makes no difference and
the order within each pair was drawn at random, the differences of a pair could as well have had the opposite sign, all
together. The test statistics of all these sign patterns are therefore the distribution of the observed ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # it loads scipy.special when that is first used: help pages need none of it
from numpy.typing import NDArray

from omb_py.results.statistics.order_statistics import median

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

ENUMERATED = 12
"""Most pairs of which all sign patterns are taken."""
PATTERNS = 1 << ENUMERATED
"""Sign patterns of more pairs, drawn at random, the observed one among them."""
SMALLEST = 1e-6
"""Smallest spread of a difference of logs: a millionth, since times have no more digits."""
_SEED = 20261123
_BITS = 60
"""Pairs whose signs one integer holds; further ones are drawn one by one."""
_CHUNK = 64
"""Questions whose statistics are in memory at once."""
_TIE = 1e-5
"""Statistics of which one is larger by less than this share are equal: sums in another order round otherwise."""
_MOST_SHARED = 3000.0
"""Most degrees of freedom that the common spread may count."""


@lru_cache(maxsize=64)
def patterns(pairs: int) -> Array:
    """Sign patterns of `pairs` pairs, without their negatives, which are meant too.

    Returns:
        A row a pattern, of 1 and -1; the first row is the observed one, all 1. With their negatives they are all
        patterns up to :data:`ENUMERATED` pairs, and :data:`PATTERNS` beyond: the observed one and draws with a fixed
        seed. p-values that count the observed pattern are valid for both (B. Phipson and G. Smyth, Statistical
        Applications in Genetics and Molecular Biology 9, 2010).
    """
    half = max(0, pairs - 1)  # the last pair keeps its sign: the rest are the negatives
    if pairs <= ENUMERATED:
        numbers = np.arange(1 << half)
    else:
        rng = np.random.default_rng(_SEED)
        numbers = np.concatenate([[0], 1 + rng.choice((1 << min(half, _BITS)) - 1, PATTERNS // 2 - 1, replace=False)])
    bits = (numbers[:, None] >> np.minimum(np.arange(pairs), _BITS)) & 1
    if half > _BITS:
        bits[1:, _BITS:half] = rng.integers(0, 2, (len(bits) - 1, half - _BITS))
    signs: Array = 1.0 - 2.0 * bits.astype(np.float64)
    signs.flags.writeable = False
    return signs


class Flips:
    """The statistics of all questions of a round of pairs, under all sign patterns.

    The statistic of a question is its mean difference over its standard error, whose variance is shared between the
    questions of a kind: own variance and common variance are averaged, weighted by degrees of freedom; the common one
    counts as much as the own variances agree (G. Smyth, Statistical Applications in Genetics and Molecular Biology 3,
    2004). All of this is computed anew under each pattern. What is tested is therefore a symmetric function of the
    pairs, and its p-value is exact whatever the weights are.
    """

    def __init__(self, differences: Array, kinds: Indices, floors: Array) -> None:
        """Prepare a round.

        Args:
            differences: a row a pair, a column a question, in logs; nan where a pair has no answer.
            kinds: kind of each question, from 0; those of a kind share a spread.
            floors: smallest standard deviation that each question's differences can have (the clock's resolution).
        """
        known = ~np.isnan(differences)
        values = np.where(known, differences, 0.0).T
        self.counts = known.sum(axis=0)
        """Pairs of each question."""
        signs = patterns(len(differences))
        self.size = 2 * len(signs)
        """Number of sign patterns, with the negatives."""
        self._kinds, self._freedom = kinds, np.maximum(self.counts - 1.0, 0.0)
        self._floors = np.maximum(floors, SMALLEST) ** 2
        # a row a question, a column a pattern: mean times the root of the count, sum of squares about the mean, and the
        # log of the variance, corrected for its degrees of freedom
        shape = len(values), len(signs)
        self._means, self._sums, self._logs = (np.empty(shape, np.float32) for _ in range(3))
        half = np.maximum(self._freedom, 1.0) / 2
        correction = scipy.special.psi(half) - np.log(half)
        for rows in _chunks(np.arange(len(values))):
            root = np.sqrt(np.maximum(self.counts[rows], 1.0))[:, None]
            means = values[rows] @ signs.T / root
            sums = (values[rows] ** 2).sum(axis=1)[:, None] - means**2
            freedom = self._freedom[rows][:, None]
            sums = np.maximum(sums, freedom * self._floors[rows][:, None])
            self._means[rows], self._sums[rows] = means, sums
            self._logs[rows] = np.log(np.maximum(sums, 1e-30) / np.maximum(freedom, 1.0)) - correction[rows][:, None]

    def statistics(self, family: Indices) -> tuple[Array, Array]:
        """The observed statistics of a family of questions, and what chance makes of the largest.

        Of n pairs with mean m and variance s² under a pattern the statistic is m √n over the square root of
        (d0 s0² + (n - 1) s²) / (d0 + n - 1), with s0² the variance that the family shares and d0 its degrees of
        freedom (G. Smyth 2004). Both are estimated anew under each pattern, which keeps the test exact.

        Args:
            family: columns of the questions; the spread is shared among them alone.

        Returns:
            The statistic of each question, positive where NEW is larger; and in ascending order the largest statistic
            of the family under each pattern (:attr:`size` of them). The smallest, with the sign changed, is alike.
        """
        if not family.size:
            return np.empty(0), np.full(self.size, -np.inf)
        common, weight = self._shared(family)
        shared = (common * weight).astype(np.float32)
        weight = weight.astype(np.float32)
        largest = np.full(common.shape[1], -np.inf, np.float32)
        smallest = -largest
        observed = []
        for rows in _chunks(family):
            kinds, freedom = self._kinds[rows], self._freedom[rows].astype(np.float32)[:, None]
            variance = (shared[kinds] + self._sums[rows]) / np.maximum(weight[kinds] + freedom, 1)
            values = self._means[rows] / np.sqrt(np.maximum(variance, self._floors[rows].astype(np.float32)[:, None]))
            observed.append(values[:, 0])
            np.maximum(largest, values.max(axis=0), out=largest)
            np.minimum(smallest, values.min(axis=0), out=smallest)
        extremes = np.concatenate([largest, -smallest]).astype(float)
        return np.concatenate(observed).astype(float), np.sort(extremes)

    def errors(self, family: Indices) -> tuple[Array, Array]:
        """Standard error of each question's mean difference as it was observed, and its degrees of freedom."""
        common, weight = self._shared(family, 1)
        weights = weight[self._kinds[family], 0]
        freedom = weights + self._freedom[family]
        variance = weights * common[self._kinds[family], 0] + self._sums[family, 0]
        variance = np.maximum(variance / np.maximum(freedom, 1.0), self._floors[family])
        return np.sqrt(variance / np.maximum(self.counts[family], 1)), freedom

    def _shared(self, family: Indices, count: int | None = None) -> tuple[Array, Array]:
        """Common variance of each kind under each pattern (or the first `count`), and the freedom that it counts as.

        The logs of estimated variances spread by trigamma(f/2), f being their degrees of freedom; what they spread
        beyond is how much the true variances differ.

        Returns:
            Two arrays with a row a kind and a column a pattern. The freedom is 0 where fewer than two questions tell.
        """
        family = family[self._freedom[family] > 0]
        kinds = int(self._kinds.max(initial=0)) + 1
        columns = self._logs[:, :count].shape[1]
        common, weight = np.ones((kinds, columns)), np.zeros((kinds, columns))
        for kind in range(kinds):
            of_kind = family[self._kinds[family] == kind]
            if of_kind.size < 2:
                continue
            sums, squares = np.zeros(columns), np.zeros(columns)
            for rows in _chunks(of_kind):
                logs = self._logs[rows, :count]
                sums += logs.sum(axis=0)
                squares += np.einsum("ij,ij->j", logs, logs)
            mean = sums / of_kind.size
            spread = (squares - of_kind.size * mean**2) / (of_kind.size - 1)
            expected = float(scipy.special.polygamma(1, self._freedom[of_kind] / 2).mean())
            weight[kind] = _freedom_of(spread - expected)
            common[kind] = np.exp(mean + scipy.special.psi(weight[kind] / 2) - np.log(weight[kind] / 2))
        return common, weight


_GRID = np.geomspace(0.3, _MOST_SHARED, 500)


def _freedom_of(variance: Array) -> Array:
    """Solve trigamma(d/2) = variance for d, at most :data:`_MOST_SHARED`."""
    table = scipy.special.polygamma(1, _GRID / 2)
    return np.asarray(np.interp(-variance, -table, _GRID))


def _chunks(columns: Indices) -> Iterator[Indices]:
    return (columns[first : first + _CHUNK] for first in range(0, len(columns), _CHUNK))


def share_above(values: Array, ascending: Array) -> Array:
    """The share of `ascending` that is at least each of `values`; ties but for rounding count."""
    low = values - _TIE * np.maximum(1.0, np.abs(values))
    return (len(ascending) - np.searchsorted(ascending, low, side="left")) / len(ascending)


@dataclass(frozen=True, slots=True)
class Alone:
    """What the sign flips of each question alone say; arrays have an entry a question."""

    p: Array
    """Two-sided p-value of "no difference"."""
    intervals: tuple[tuple[Array, Array], ...]
    """Lower and upper end of the mean difference for each level; infinite where there are too few pairs."""


def alone(differences: Array, levels: Sequence[float]) -> Alone:
    """Test each question by itself, and invert the test into confidence intervals.

    The means of all subsets of the pairs, in order, divide the line into parts that are equally likely to hold the
    centre of symmetric differences (J. Hartigan, Journal of the American Statistical Association 64, 1969).

    Args:
        differences: a row a pair, a column a question; none is nan.
        levels: confidence levels, as 0.99.
    """
    signs = patterns(len(differences))
    pairs, questions = differences.shape
    flipped = (signs < 0).sum(axis=1)
    count = 2 * len(signs) - 1
    ranks = [int(len(signs) * (1 - level) + 1e-9) for level in levels]
    ends = tuple((np.full(questions, -np.inf), np.full(questions, np.inf)) for _ in levels)
    places = [place for rank in ranks if rank for place in (rank - 1, count - rank)]
    p = np.ones(questions)
    for rows in _chunks(np.arange(questions)):
        of_signs = differences.T[rows] @ signs.T
        total = of_signs[:, :1]
        means = np.concatenate(
            [(total - of_signs[:, 1:]) / 2 / flipped[1:], (total + of_signs) / 2 / (pairs - flipped)], axis=1
        )
        tie = 1e-9 * np.abs(differences.T[rows]).max(axis=1, keepdims=True)
        beyond = np.minimum((means <= tie).sum(axis=1), (means >= -tie).sum(axis=1))
        p[rows] = np.minimum(1.0, 2 * (1 + beyond) / (count + 1))
        if places:
            means.partition(places, axis=1)
        for rank, (low, high) in zip(ranks, ends, strict=True):
            if rank:
                low[rows], high[rows] = means[:, rank - 1], means[:, count - rank]
    return Alone(p, ends)


def fewest_pairs(level: float) -> int:
    """Fewest pairs whose sign flips can reach a two-sided level: 8 for 1 %.

    >>> fewest_pairs(0.01), fewest_pairs(0.002)
    (8, 10)
    """
    return int(np.ceil(np.log2(2 / level) - 1e-9))


FAR = 2.5
"""Spreads from the median at which a launch is bounded."""
TO_SPREAD = 1.4826
"""A standard deviation over the median distance from the median, of normal numbers."""


def bounded(base: Sequence[float], new: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Bound both sides of the pairs of one question in one round.

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
    larger = [max(pair) for pair in zip(base, new, strict=True)]
    smaller = [min(pair) for pair in zip(base, new, strict=True)]
    high = median(larger) + FAR * spread(larger)
    low = median(smaller) - FAR * spread(smaller)
    first, second = (tuple(min(max(log, low), high) for log in side) for side in (base, new))
    return first, second


def spread(logs: Sequence[float]) -> float:
    """A standard deviation from the median distance to the median, which a few strange launches hardly change."""
    middle = median(list(logs))
    return max(SMALLEST, TO_SPREAD * median([abs(log - middle) for log in logs]))

"""Joint rotations of paired differences: a test of many questions at once that knows how they depend on each other.

A pair of launches gives one difference (NEW minus BASE, in logs) for each question. If the side makes no difference,
the differences of a question scatter about 0 alike in every direction, and those of all questions turn together. The
statistics under random rotations are therefore the distribution of the observed ones (O. Langsrud, Statistics and
Computing 15, 2005). Exact for normal differences of any dependence; launches far from the others are bounded before
(:mod:`.launch_kinds`). Beside them stands an exchange of the sides of pairs, which is exact for all differences, since
the order in a pair was drawn; it is too coarse alone, as ten pairs have but 512 exchanges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import scipy  # it loads scipy.special when that is first used: help pages need none of it
from numpy.typing import NDArray

from omb_py.results.statistics.launch_kinds import SMALLEST

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

ROTATIONS = 1 << 12
"""Rotations, the observed differences among them."""
_SEED = 20261123
_CHUNK = 64
"""Questions whose statistics are in memory at once."""
_TIE = 1e-5
"""Statistics of which one is larger by less than this share are equal: sums in another order round otherwise."""
_MOST_SHARED = 3000.0
"""Most degrees of freedom that the common spread may count."""


@lru_cache(maxsize=64)
def directions(pairs: int) -> Array:
    """Directions in which the mean of the differences is taken, without their negatives, which are meant too.

    Returns:
        A row a direction, whose squares sum to the number of pairs; the first row is the observed one, all 1. p-values
        that count the observed one are valid (B. Phipson and G. Smyth, Statistical Applications in Genetics and
        Molecular Biology 9, 2010).
    """
    drawn: Array = np.random.default_rng(_SEED).standard_normal((ROTATIONS // 2, pairs))
    drawn *= np.sqrt(pairs) / np.linalg.norm(drawn, axis=1, keepdims=True)
    drawn[0] = 1.0
    drawn.flags.writeable = False
    return drawn


@lru_cache(maxsize=64)
def exchanges(pairs: int) -> Array:
    """As :func:`directions`, where the sides of some pairs are exchanged: all ways of it, or as many as are drawn."""
    if 1 << pairs <= ROTATIONS:
        drawn: Array = np.array([(1.0, *signs) for signs in product((1.0, -1.0), repeat=pairs - 1)])
    else:
        drawn = np.sign(directions(pairs))
    drawn.flags.writeable = False
    return drawn


class Rotations:
    """The statistics of all questions of a set of pairs, under all rotations.

    The statistic of a question is its mean difference over its standard error, whose variance is shared between the
    questions of a kind: own variance and common variance are averaged, weighted by degrees of freedom; the common one
    counts as much as the own variances agree (G. Smyth, Statistical Applications in Genetics and Molecular Biology 3,
    2004). All of this is computed anew under each rotation, so the p-value is exact whatever the weights are.
    """

    def __init__(
        self, differences: Array, kinds: Indices, floors: Array, turns: Callable[[int], Array] = directions
    ) -> None:
        """Prepare the pairs.

        Args:
            differences: a row a pair, a column a question, in logs; nan where a pair has no answer.
            kinds: kind of each question, from 0; those of a kind share a spread.
            floors: smallest standard deviation that each question's differences can have (the clock's resolution).
            turns: :func:`directions` or :func:`exchanges`.
        """
        known = ~np.isnan(differences)
        values = np.where(known, differences, 0.0).T
        self.counts = known.sum(axis=0)
        """Pairs of each question."""
        turned = turns(len(differences))
        self._kinds, self._freedom = kinds, np.maximum(self.counts - 1.0, 0.0)
        self._floors = np.maximum(floors, SMALLEST) ** 2
        # a row a question, a column a rotation: mean times root of the count, sum of squares about the mean, and the
        # log of the variance, corrected for its degrees of freedom
        shape = len(values), len(turned)
        self._means, self._sums, self._logs = (np.empty(shape, np.float32) for _ in range(3))
        half = np.maximum(self._freedom, 1.0) / 2
        correction = scipy.special.psi(half) - np.log(half)
        for rows in _chunks(np.arange(len(values))):
            lengths = known.T[rows].astype(float) @ (turned.T**2)  # of the direction, within the pairs of a question
            means = values[rows] @ turned.T / np.sqrt(np.maximum(lengths, 1e-12))
            sums = (values[rows] ** 2).sum(axis=1)[:, None] - means**2
            freedom = self._freedom[rows][:, None]
            sums = np.maximum(sums, freedom * self._floors[rows][:, None])
            self._means[rows], self._sums[rows] = means, sums
            self._logs[rows] = np.log(np.maximum(sums, 1e-30) / np.maximum(freedom, 1.0)) - correction[rows][:, None]

    def statistics(self, family: Indices) -> tuple[Array, Array]:
        """The observed statistics of a family of questions, and what chance makes of the largest.

        Of n pairs with mean m and variance s² under a rotation the statistic is m √n over the square root of
        (d0 s0² + (n - 1) s²) / (d0 + n - 1), with s0² the variance that the family shares and d0 its degrees of
        freedom (G. Smyth 2004). Both are estimated anew under each rotation.

        Args:
            family: columns of the questions; the spread is shared among them alone.

        Returns:
            The statistic of each question, positive where NEW is larger; and in ascending order the largest statistic
            of the family under each turn (at most :data:`ROTATIONS`). The smallest, with the sign changed, is alike.
        """
        if not family.size:
            return np.empty(0), np.full(2 * self._means.shape[1], -np.inf)
        common, weight = self._share_variance(family)
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
        common, weight = self._share_variance(family, 1)
        weights = weight[self._kinds[family], 0]
        freedom = weights + self._freedom[family]
        variance = weights * common[self._kinds[family], 0] + self._sums[family, 0]
        variance = np.maximum(variance / np.maximum(freedom, 1.0), self._floors[family])
        return np.sqrt(variance / np.maximum(self.counts[family], 1)), freedom

    def _share_variance(self, family: Indices, count: int | None = None) -> tuple[Array, Array]:
        """Common variance of each kind under each rotation (or the first `count`), and the freedom that it counts as.

        The logs of estimated variances spread by trigamma(f/2), f being their degrees of freedom; what they spread
        beyond is how much the true variances differ.

        Returns:
            Two arrays with a row a kind and a column a rotation. The freedom is 0 where fewer than two questions tell.
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
class FamilyOutcome:
    """What one look says of each question of a family; arrays have an entry a question."""

    direction: Indices
    """1 where NEW is larger, -1 where it is smaller, 0 where nothing is shown."""
    adjusted: Array
    """Two-sided p-value among all questions."""


def judge_family(
    rotations: Rotations,
    exchanged: Callable[[], Rotations],
    open_ones: NDArray[np.bool_],
    asked: NDArray[np.bool_],
    level: float,
) -> FamilyOutcome:
    """Judge questions by the largest statistic of their family, step by step.

    The clearest questions are rejected and leave the family, and those that are left are judged anew among themselves
    (P. Westfall and S. Young, Resampling-Based Multiple Testing, 1993).

    Args:
        exchanged: gives the same pairs under :func:`exchanges`, which must agree as far as their number can tell: times
            of few values, as of two kinds of launches, are clear to rotations too often.
        open_ones: the family: questions of which nothing was shown before.
        asked: those of the family that are judged; the others stay in it, so no look chooses its own family.
        level: chance of any false direction.
    """
    direction = np.zeros(len(asked), dtype=np.intp)
    adjusted = np.ones(len(asked))
    while (judged := np.flatnonzero(asked & (direction == 0))).size:
        family = np.flatnonzero(open_ones & (direction == 0))
        places = np.searchsorted(family, judged)
        observed, largest = rotations.statistics(family)
        observed = observed[places]
        p = np.minimum(1.0, 2 * share_above(np.abs(observed), largest))
        beyond = p <= 2 / ROTATIONS  # no rotation is as far: Student's tail says how far that is
        if beyond.any():
            _, freedom = rotations.errors(family)
            tail = scipy.special.stdtr(np.maximum(1.0, freedom[places]), -np.abs(observed))
            p = np.where(beyond, np.minimum(p, 2 * family.size * tail), p)
        if (p <= level).any():
            alike, largest = exchanged().statistics(family)
            exact = np.minimum(1.0, 2 * share_above(np.abs(alike[places]), largest))
            p = np.where(exact <= max(level, 2 / len(largest)), p, np.maximum(p, exact))
        adjusted[judged] = p
        clear = np.flatnonzero(p <= level)
        if not clear.size:
            break
        # half of the clear ones at a time: the others are then judged by a spread without these
        clear = clear[np.argsort(-np.abs(observed[clear]), kind="stable")][: (clear.size + 1) // 2]
        direction[judged[clear]] = np.sign(observed[clear]).astype(np.intp)
    return FamilyOutcome(direction, adjusted)

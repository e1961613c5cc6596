"""Change points of a series of launches: energy distances of stretches, gated by a permutation test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omb_py.results.statistics.dependence import correlation_at_most, whitened

ALPHA = 0.01
"""Chance that a change is reported in a series that has none."""
DELTA = 0.03
"""Smallest relative change of the level that is reported."""
SHORTEST = 3
LEAST = 10
"""Fewest values that are judged: 5 against 5 have 252 arrangements, and the two extremes are 0.8 % of them."""
MOST = 400
"""Most values that are judged together; the test takes time with their square."""
PERMUTATIONS = 999
FAR = 3.0
"""Times the range of the middle half of the values, beyond which a value is far from the others (J. W. Tukey, 1977)."""
Fences = tuple[float, float]
_BATCH = 200_000
"""Most distances that are in memory at once."""


@dataclass(frozen=True, slots=True)
class Change:
    """A step between two levels."""

    at: int
    """Index of the first value of the new level."""
    ratio: float
    """Median after the change over median before it, each over its whole level."""
    p: float
    """p-value of the permutation test that found the change."""


def change_points(
    x: ArrayLike, *, alpha: float = ALPHA, delta: float = DELTA, shortest: int = SHORTEST, seed: int = 0
) -> list[Change]:
    """Find the changes of a series of log times, in order.

    Nights far from the others, fewer than `shortest` in a row, are no level and hide none: those beside them stand for
    them, in the series and in each random order.

    A segment is split at its best edge, or around its best inner stretch, when fewer than `alpha` of its random orders
    have one as good. Then its parts are searched in the same way. What is found that way must be found again once the
    dependence of successive values is taken out (:mod:`~omb_py.results.statistics.dependence`): those changes count.
    At the end, neighbouring levels that differ by less than `delta` are joined. The random orders are drawn from
    `seed`, so the answer is the same every time.

    Args:
        x: logs of the times of runs or nights in order, shape (n,); finite. Under :data:`LEAST` values there is never
            a change.
        alpha: chance that a series without a change is split.
        delta: smallest relative step.
        shortest: fewest values of a level.
        seed: seed of the random orders.

    Raises:
        ValueError: a value is not finite, or there are more than :data:`MOST`.
    """
    values = np.asarray(x, dtype=np.float64).ravel()
    if not np.isfinite(values).all() or values.size > MOST:
        raise ValueError(f"a series of at most {MOST} finite values is needed")
    splitting = _Splitting(alpha, shortest, seed, _fences(values))
    p_of, calm = splitting.search(values), splitting.calmed(values[None, :])[0]
    if p_of and (rho := correlation_at_most(calm, sorted(p_of))):
        p_of = _Splitting(alpha, shortest, seed).search(whitened(calm, rho, sorted(p_of)))
    if not p_of:
        return []
    edges = _join(values, sorted(p_of), delta)
    levels = [float(np.median(part)) for part in np.split(values, edges)]
    return [Change(at, math.exp(b - a), p_of[at]) for at, a, b in zip(edges, levels, levels[1:], strict=False)]


def _fences(values: NDArray[np.float64]) -> Fences:
    """Limits of what is not far from the others: :data:`FAR` times the range of the middle half beyond it."""
    low, high = np.quantile(values, [0.25, 0.75]) if values.size else (0.0, 0.0)
    return float(low - FAR * (high - low)), float(high + FAR * (high - low))


@dataclass(frozen=True, slots=True)
class _Splitting:
    """The search for the edges of a series."""

    alpha: float
    shortest: int
    seed: int
    fences: Fences = (-math.inf, math.inf)

    def calmed(self, series: NDArray[np.float64]) -> NDArray[np.float64]:
        """Replace values beyond a fence, fewer than `shortest` in a row, by the mean of those beside them: (k, n)."""
        side = (series > self.fences[1]).astype(np.int8) - (series < self.fences[0])
        if not side.any():
            return series
        count, n = series.shape
        lengths = np.zeros((count, n), np.intp)  # of the row of far values on one side that ends here
        for at in range(n):
            goes_on = (side[:, at] == side[:, at - 1]) if at else np.zeros(count, bool)
            lengths[:, at] = np.where(side[:, at] == 0, 0, 1 + np.where(goes_on, lengths[:, at - 1], 0))
        for at in range(n - 2, -1, -1):  # every value of a row gets the length of the whole
            goes_on = (side[:, at] != 0) & (side[:, at] == side[:, at + 1])
            lengths[:, at] = np.where(goes_on, lengths[:, at + 1], lengths[:, at])
        usual = (lengths == 0) | (lengths >= self.shortest)
        places = np.arange(n)
        before = np.maximum.accumulate(np.where(usual, places, -1), axis=1)
        after = np.minimum.accumulate(np.where(usual, places, n)[:, ::-1], axis=1)[:, ::-1]
        before, after = np.where(before < 0, after, before), np.where(after == n, before, after)
        if (before == n).any() or (after < 0).any():
            return series
        rows = np.arange(count)[:, None]
        return np.where(usual, series, (series[rows, before] + series[rows, after]) / 2)

    def search(self, values: NDArray[np.float64]) -> dict[int, float]:
        """Find the edges of a series of independent values, each with its p-value."""
        p_of: dict[int, float] = {}
        todo = [(0, values.size)]
        while todo:
            start, end = todo.pop()
            draw = np.random.default_rng([self.seed, start, end])
            edges, p = self._edges(values[start:end], draw)
            p_of.update(dict.fromkeys((start + edge for edge in edges), p))
            if edges:
                bounds = [start, *(start + edge for edge in edges), end]
                todo += itertools.pairwise(bounds)
        return p_of

    def _edges(self, values: NDArray[np.float64], rng: np.random.Generator) -> tuple[list[int], float]:
        """Find the one or two edges of the best stretch and its p-value; no edge when it is not significant."""
        n = values.size
        if n < max(LEAST, 2 * self.shortest):
            return [], 1.0
        a, b = _stretches(n, self.shortest)
        calm = self.calmed(values[None, :])
        q = _divergence(calm, a, b)[0]
        best = int(np.argmax(q))
        # a series of equal values has no spread to test, only rounding errors
        if not q[best] > 1e-12 * float(np.ptp(values)):
            return [], 1.0
        p = self._p(values, a, b, float(q[best]), rng)
        if p > self.alpha:
            return [], p
        start, end = int(a[best]), int(b[best])
        if start == 0:
            return [end], p
        # either edge must be one by itself: a single step may look like a stretch
        kept = []
        for edge, low, high in ((start, 0, end), (end, start, n)):
            part, zero, at = values[low:high], np.array([0]), np.array([edge - low])
            of_part = float(_divergence(calm[:, low:high], zero, at)[0, 0])
            if self._p(part, zero, at, of_part, rng) <= self.alpha:
                kept.append(edge)
        return kept, p

    def _p(
        self,
        values: NDArray[np.float64],
        a: NDArray[np.int64],
        b: NDArray[np.int64],
        q: float,
        rng: np.random.Generator,
    ) -> float:
        """Share of random orders in which some stretch is as good as `q`; above alpha only a lower bound of it."""
        as_good = drawn = 0
        # most series have no change: small batches first, so that the loop soon sees p pass alpha and stops
        while drawn < PERMUTATIONS and (1 + as_good) / (1 + PERMUTATIONS) <= self.alpha:
            batch = min(PERMUTATIONS - drawn, max(1, _BATCH // values.size**2), 10 + drawn)
            orders = rng.permuted(np.tile(values, (batch, 1)), axis=1)
            # the same sum in another order may differ in its last digits
            orders = self.calmed(orders)
            as_good += int((_divergence(orders, a, b).max(axis=1) >= q * (1 - 1e-9)).sum())
            drawn += batch
        return (1 + as_good) / (1 + PERMUTATIONS)


def _divergence(series: NDArray[np.float64], a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.float64]:
    """Q of each stretch [a, b) against the rest, for many series at once: (k, n) gives (k, len(a)).

    Q = m n / (m + n) · (2 mean|X - Y| - mean|X - X'| - mean|Y - Y'|) with X the m values of the stretch and Y the n
    others: m n / (m + n) times the squared energy distance (Matteson and James 2014, alpha = 1; means over all pairs).
    """
    count, n = series.shape
    # sums[:, i, j] is the sum of distances among the first i and the first j values, so the distances within and
    # between any stretches are differences of a few sums
    sums = np.zeros((count, n + 1, n + 1))
    np.abs(series[:, :, None] - series[:, None, :], out=sums[:, 1:, 1:])
    sums.cumsum(axis=1, out=sums).cumsum(axis=2, out=sums)
    inside = sums[:, b, b] - 2 * sums[:, a, b] + sums[:, a, a]
    cross = sums[:, b, n] - sums[:, a, n] - inside
    outside = sums[:, n, n, None] - inside - 2 * cross
    m = (b - a).astype(np.float64)
    k = n - m
    q: NDArray[np.float64] = m * k / n * (2 * cross / (m * k) - inside / m**2 - outside / k**2)
    return q


def _stretches(n: int, shortest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the begins and ends of all stretches that are long enough and leave nothing that is too short.

    Stretches up to the end of the series are left out: a stretch from the beginning is the same split.
    """
    a, b = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    fits = (b - a >= shortest) & (n - b >= shortest) & ((a == 0) | (a >= shortest))
    return a[fits], b[fits]


def _join(values: NDArray[np.float64], edges: Sequence[int], delta: float) -> list[int]:
    """Drop the edges between levels that differ by less than delta, the smallest step first."""
    kept = list(edges)
    while kept:
        levels = [float(np.median(part)) for part in np.split(values, kept)]
        steps = [abs(b - a) for a, b in itertools.pairwise(levels)]
        smallest = int(np.argmin(steps))
        if steps[smallest] >= math.log1p(delta):
            break
        del kept[smallest]
    return kept

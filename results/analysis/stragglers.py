"""Stragglers: ranks that finish last more often than chance explains. Pure functions.

Each sweep of a collective ends with this question, so it is answered without NumPy and SciPy, which take longer to load
than the sweep may have taken.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from omb_py.results.statistics.holm import holm

ALPHA = 0.01
"""Chance that any rank is named although all are alike."""
MANY = 3.0
"""A straggler is last this many times as often as by chance, or half way from chance to always if that is less."""
_NEGLIGIBLE = 1e-14
STICKY = 0.99
"""The same rank is last again with up to this probability where all ranks are alike."""


@dataclass(frozen=True, slots=True)
class Last:
    """How often each rank finished last in one cell."""

    shares: Sequence[float]
    """Share of the calls by rank, 0 to 1. Ranks that finish together all count, so the sum may exceed 1."""
    calls: int
    changes: float
    """Number of calls at which another rank was last than in the call before."""

    @property
    def trials(self) -> float:
        """Number of independent draws of the last rank that tell as much as the calls.

        Let the last rank stay with probability q and else be drawn anew among all p. It changes with probability
        w = (1 - q) (p - 1) / p, and the autocorrelation of "rank r is last" is q^k at lag k, so n calls are worth
        n (1 - q) / (1 + q), of which one is taken off: few draws are counted badly, and one long stay of a rank makes
        both its share larger and the draws fewer. At least 1, at most n.
        """
        ranks = len(self.shares)
        if ranks < 2 or self.calls < 2:
            return float(self.calls)
        drawn = self.changes / (self.calls - 1) * ranks / (ranks - 1)
        drawn = min(1.0, max(drawn, 1 - STICKY))
        return max(1.0, self.calls * drawn / (2 - drawn) - 1)


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that is last too often."""

    rank: int
    share: float
    """Mean share over the cells."""
    chance: float
    """Share that a rank would have if all were alike."""
    cells: int
    """Number of cells in which it is last too often."""


def stragglers(cells: Sequence[Last]) -> list[Straggler]:
    """Find the ranks that are last too often, over all cells and in half of them or more, the most frequent first.

    Its mean share over the cells is at least half way from chance to what one cell must show. Two ranks of which
    each is last at every other size are no stragglers.

    If all ranks are alike, the number of independent draws in which a rank is last is binomial with probability 1/p
    for p ranks. The draws of all cells are added up, and Holm's method keeps the chance of naming any rank at
    :data:`ALPHA`.

    Raises:
        ValueError: the cells have different numbers of ranks.
    """
    counts = {len(cell.shares) for cell in cells}
    if len(counts) > 1:
        raise ValueError(f"cells of {sorted(counts)} ranks")
    ranks = counts.pop() if counts else 0
    if ranks < 2:
        return []
    chance = 1 / ranks
    least = min(MANY * chance, (1 + chance) / 2)
    by_rank = list(zip(*map(_whole, cells), strict=True))
    trials = [cell.trials for cell in cells]
    means = [sum(of_rank) / len(cells) for of_rank in by_rank]
    late_cells = [sum(share >= least for share in of_rank) for of_rank in by_rank]
    often = [
        2 * late >= len(cells) and mean >= (chance + least) / 2 for late, mean in zip(late_cells, means, strict=True)
    ]
    if not any(often):
        return []
    counts_last = [sum(map(operator.mul, trials, of_rank)) for of_rank in by_rank]
    adjusted = holm([_tail(count, sum(trials), chance) for count in counts_last])
    late_ranks = [
        Straggler(rank, means[rank], chance, late_cells[rank])
        for rank in range(ranks)
        if often[rank] and adjusted[rank] <= ALPHA
    ]
    return sorted(late_ranks, key=lambda straggler: -straggler.share)


def _whole(cell: Last) -> list[float]:
    """The shares of a cell, which sum up to 1: where ranks finish together all of them count."""
    total = max(sum(cell.shares), 1.0)
    return [share / total for share in cell.shares]


def _tail(times: float, trials: float, chance: float) -> float:
    """P(at least so many of the trials), which need not be whole: the binomial tail as an incomplete beta function."""
    if times <= 0:
        return 1.0
    return incomplete_beta(times, max(trials - times, 0.0) + 1, chance)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b) for 0 < x < 1, to eight digits.

    Its continued fraction (Abramowitz and Stegun 26.5.8) by Lentz's method converges quickly below the mean of the
    distribution; above it I_x(a, b) = 1 - I_(1-x)(b, a).
    """
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    log_scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    ahead, behind = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value, step, m = behind, 0.0, 0
    while abs(step - 1) > _NEGLIGIBLE:
        m += 1
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            ahead, behind = 1 + term / ahead, 1 / (1 + term * behind)
            step = ahead * behind
            value *= step
    return math.exp(log_scale) * value / a

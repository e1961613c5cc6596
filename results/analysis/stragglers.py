"""Stragglers: ranks that finish last more often than chance explains. Pure functions, derived in docs/statistics.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import scipy

from omb_py.results.statistics.multiple_testing import holm

ALPHA = 0.01
"""Chance that any rank is named although all are alike."""
MANY = 3.0
"""A straggler is last this many times as often as by chance, or half way from chance to always if that is less."""


@dataclass(frozen=True, slots=True)
class Last:
    """How often each rank finished last in one cell."""

    shares: Sequence[float]
    """Share of the calls by rank, 0 to 1. Ranks that finish together all count, so the sum may exceed 1."""
    trials: float
    """Number of independent calls: the effective number of samples."""


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
    """Find the ranks that are last too often in half of the cells or more, the most frequent first.

    Its mean share over the cells is at least half way from chance to what one cell must show. Two ranks of which
    each is last at every other size are no stragglers.

    If all ranks are alike, the number of calls in which a rank is last is binomial with probability 1/p for p ranks.
    Holm's method keeps the chance of naming any rank, over all ranks and cells, at :data:`ALPHA`.

    Args:
        cells: cells of the same ranks.

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
    shares = [[share / max(sum(cell.shares), 1.0) for share in cell.shares] for cell in cells]
    tests = [_tail(share, int(cell.trials), chance) for row, cell in zip(shares, cells, strict=True) for share in row]
    adjusted = holm(tests)
    late_ranks = []
    for rank in range(ranks):
        own = [row[rank] for row in shares]
        late_cells = sum(share >= least and adjusted[k * ranks + rank] <= ALPHA for k, share in enumerate(own))
        mean = sum(own) / len(own)
        if 2 * late_cells >= len(cells) and mean >= (chance + least) / 2:
            late_ranks.append(Straggler(rank, mean, chance, late_cells))
    return sorted(late_ranks, key=lambda straggler: -straggler.share)


def _tail(share: float, trials: int, chance: float) -> float:
    """P(at least this share of the trials)."""
    times = int(share * trials)
    return 1.0 if times < 1 else float(scipy.special.bdtrc(times - 1, trials, chance))

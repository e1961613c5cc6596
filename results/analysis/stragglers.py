"""Which rank is the last to finish more often than chance explains: pure functions, derived in docs/statistics.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

from omb_py.results.statistics.multiple_testing import holm

ALPHA = 0.01
"""At most this share of the runs over ranks that are all alike names anyone."""
MANY = 3.0
"""A straggler is the last so many times as often as chance has it, or half way from chance to always."""


@dataclass(frozen=True, slots=True)
class Last:
    """Of a cell: how often each rank was the last."""

    shares: Sequence[float]
    """By rank, 0 to 1. Ranks that finish together all count, so they may add up to more than 1."""
    trials: float
    """Calls that tell something of their own: the effective number of samples."""


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that is last too often."""

    rank: int
    share: float
    """Mean over the cells."""
    chance: float
    cells: int
    """In how many it is."""


def stragglers(cells: Sequence[Last]) -> list[Straggler]:
    """The ranks that are last too often in half of the cells or more, the most often first.

    In a cell with p ranks and n calls the number of times that a rank is last is binomial with 1/p where all are alike;
    Holm's method holds the chance of naming anyone, over all ranks and cells, at :data:`ALPHA`.

    Args:
        cells: of the same ranks.

    Raises ValueError when the cells have different numbers of ranks.
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
        if 2 * late_cells >= len(cells):
            late_ranks.append(Straggler(rank, sum(own) / len(own), chance, late_cells))
    return sorted(late_ranks, key=lambda straggler: -straggler.share)


def _tail(share: float, trials: int, chance: float) -> float:
    """P(at least this share of the trials)."""
    times = int(share * trials)
    return 1.0 if times < 1 else float(special.bdtrc(times - 1, trials, chance))

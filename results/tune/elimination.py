"""Which candidates cannot win at a size: a sequential rule on differences of launches of one block. Pure.

Derived in docs/statistics.md. Two launches of a block ran next to each other in an order that was drawn, so what both
share falls out of their difference. The spread is shared between all questions as far as they agree, as in compare.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from omb_py.results.statistics.order_statistics import median
from omb_py.results.statistics.sides.bounded_launches import TO_SPREAD
from omb_py.results.statistics.sides.sign_flips import Flips
from omb_py.results.statistics.t_test import quantile, rounding
from omb_py.results.tune.design import Design

DEFAULT_CANDIDATE = 0
"""Number of the default among the candidates."""
_TIE_LEVEL = 0.98
_FAR_BELOW, _FAR_ABOVE = 4.0, 3.0
"""Spreads below the median and above the fast end at which a launch is bounded."""
_FAST_SHARE = 8
"""One launch in so many may be faster than the fast end."""
_SLOW_LAUNCHES = 2
"""So many launches alone drop nobody."""

Times = Mapping[int, Mapping[int, float]]
"""Candidate -> block -> log of the median of its launch, at one size."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How the candidates of one size stand after a check."""

    leader: int
    """The fastest, if every candidate but the default is taken for slower by the margin."""
    behind: Mapping[int, float]
    """Every other candidate -> its penalised time over the leader's, as a difference of logs."""
    slower: frozenset[int]
    """Those that are shown to be slower than the leader: they cannot win here."""
    alike: frozenset[int]
    """Those that are shown to be as fast as the leader, but for less than matters."""

    @property
    def settled(self) -> bool:
        """Whether more launches would change nothing that matters."""
        return set(self.behind) <= self.slower | self.alike


def stand(sizes: Sequence[Times], design: Design, candidates: int) -> list[Standing]:
    """Judge the candidates of several sizes.

    Args:
        sizes: of each size the times of the candidates that are left there; every one has a launch in some block in
            which each other has one too.
        design: the declared levels.
        candidates: number of all candidates of the search, by which the level is divided.

    Returns:
        The standing at each size.
    """
    sizes = _clipped(sizes)
    leaders = [_leader(times, design) for times in sizes]
    asked = [(n, c) for n, times in enumerate(sizes) for c in times if c != leaders[n]]
    differences = {(n, c): _differences(sizes[n], c, leaders[n], design) for n, c in asked}
    errors, freedoms = _errors(sizes, leaders, asked, differences)
    level = 1 - design.alpha / (len(design.checks) * max(1, candidates - 1))
    standings = []
    for n, leader in enumerate(leaders):
        behind, slower, alike = {}, set(), set()
        for place, (of_size, candidate) in enumerate(asked):
            if of_size != n:
                continue
            values = list(differences[n, candidate].values())
            behind[candidate] = math.fsum(values) / len(values)
            error, freedom = float(errors[place]), float(freedoms[place])
            if freedom <= 0:
                continue
            spare = design.tie if candidate == DEFAULT_CANDIDATE else 0.0  # it is taken unless it is behind by a tie
            half = quantile(0.5 + _TIE_LEVEL / 2, freedom) * error
            if _guarded_mean(values) > quantile(level, freedom) * error + spare:
                slower.add(candidate)
            elif _alike(candidate, leader, behind[candidate], half, design):
                alike.add(candidate)
        standings.append(Standing(leader, behind, frozenset(slower), frozenset(alike)))
    return standings


def _guarded_mean(differences: Sequence[float]) -> float:
    """The mean, with the two largest differences as large as the third: it needs more than two slow launches."""
    ordered = sorted(differences)
    third = ordered[max(0, len(ordered) - _SLOW_LAUNCHES - 1)]
    return math.fsum(min(value, third) for value in ordered) / len(ordered)


def _alike(candidate: int, leader: int, behind: float, half: float, design: Design) -> bool:
    """Whether more launches would hardly change what is set, by the interval `behind` ± `half`.

    Another setting is proposed only where it is before the default by a tie.
    """
    if leader == DEFAULT_CANDIDATE:
        return half - behind < design.tie
    if candidate == DEFAULT_CANDIDATE:
        return behind + half < design.tie
    return abs(behind) + half < design.penalty


def _clipped(sizes: Sequence[Times]) -> list[dict[int, dict[int, float]]]:
    """The same times, none far above the fast end of its candidate at its size, or far below the median.

    Disturbances make launches slower, never faster: of three launches of which two are slow the fast one shows what the
    candidate takes. The spread is that of all candidates and sizes, by the median of the distances.
    """
    middles = [{c: median(list(blocks.values())) for c, blocks in times.items()} for times in sizes]
    distances = [
        abs(log - middle[c])
        for times, middle in zip(sizes, middles, strict=True)
        for c, blocks in times.items()
        for log in blocks.values()
        if log != middle[c]
    ]
    spread = TO_SPREAD * median(distances) if distances else 0.0
    return [
        {c: _within(blocks, middle[c] - _FAR_BELOW * spread, _FAR_ABOVE * spread) for c, blocks in times.items()}
        for times, middle in zip(sizes, middles, strict=True)
    ]


def _within(blocks: Mapping[int, float], low: float, above: float) -> dict[int, float]:
    high = sorted(blocks.values())[len(blocks) // _FAST_SHARE] + above
    return {block: min(max(log, low), high) for block, log in blocks.items()}


def _penalised(candidate: int, log: float, design: Design) -> float:
    return log if candidate == DEFAULT_CANDIDATE else log + design.penalty


def _leader(times: Times, design: Design) -> int:
    shared = set.intersection(*(set(blocks) for blocks in times.values()))
    means = {
        c: math.fsum(_penalised(c, blocks[b], design) for b in shared) / len(shared) for c, blocks in times.items()
    }
    return min(means, key=lambda c: (means[c], c))


def _differences(times: Times, candidate: int, leader: int, design: Design) -> dict[int, float]:
    """Block -> penalised time of a candidate less the leader's."""
    return {
        block: _penalised(candidate, log, design) - _penalised(leader, times[leader][block], design)
        for block, log in times[candidate].items()
        if block in times[leader]
    }


def _errors(
    sizes: Sequence[Times],
    leaders: Sequence[int],
    asked: Sequence[tuple[int, int]],
    differences: Mapping[tuple[int, int], Mapping[int, float]],
) -> tuple[np.ndarray, np.ndarray]:
    """Standard error of each mean difference with a shared spread, and its degrees of freedom."""
    if not asked:
        return np.empty(0), np.empty(0)
    blocks = sorted({block for of_one in differences.values() for block in of_one})
    rows = {block: row for row, block in enumerate(blocks)}
    table = np.full((len(blocks), len(asked)), np.nan)
    floors = np.empty(len(asked))
    for column, key in enumerate(asked):
        for block, difference in differences[key].items():
            table[rows[block], column] = difference
        times = sizes[key[0]]
        floors[column] = math.hypot(*(rounding(list(times[c].values())) for c in (key[1], leaders[key[0]])))
    return _shared_spread(table, floors)


def _shared_spread(table: np.ndarray, floors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As :meth:`Flips.errors`. Rows without sign patterns are enough: only the observed differences are asked for."""
    columns = np.arange(table.shape[1])
    return Flips(table, np.zeros(len(columns), dtype=np.intp), floors).errors(columns)

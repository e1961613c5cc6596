"""Which candidates cannot win at a size: a sequential rule on differences of launches of one block. Pure.

Two launches of a block ran next to each other in an order that was drawn, so what both
share falls out of their difference. The spread is shared between all questions as far as they agree, as in compare.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from omb_py.results.statistics.launch_kinds import TO_SPREAD, bounded
from omb_py.results.statistics.order_statistics import median
from omb_py.results.statistics.rotations import Rotations
from omb_py.results.statistics.t_test import quantile, rounding


@dataclass(frozen=True, slots=True)
class SearchDesign:
    """Levels and sizes of steps of a search (docs/tune.md)."""

    margin: float = 0.03
    """A setting must be faster than the default by more than this share; else nothing is set."""
    alpha: float = 0.01
    """Chance that the best candidate of a size is dropped there, over all checks."""
    checks: tuple[int, ...] = (3, 5, 8, 12, 18, 27, 40)
    """Launches of each candidate after which candidates are dropped; the last one ends the search of a size."""
    step: int = 4
    """The first sizes are so many places of the list apart."""
    far: float = 2.0
    """A candidate that took so many times as long as the fastest at two sizes is not measured between them."""
    seed: int = 0
    """Seed of the order of launches within a block, and of the sizes within a launch."""

    @property
    def penalty(self) -> float:
        """What is added to the log of every time but the default's, so that the default wins ties."""
        return math.log1p(self.margin)

    @property
    def tie(self) -> float:
        """Difference of logs up to which two settings are alike: the setting of the neighbor is then kept."""
        return self.penalty / 2


FEWEST_PAIRS, MOST_PAIRS = 10, 24
"""Pairs of launches in each round of a proof."""
_SMALLEST_GAIN = 0.06
"""Smaller gains are not what the number of pairs is for."""
_SCORES = 0.67 + 2.33
"""Normal scores: a gain is taken into the second round (two-sided p of 0.5) in 99 of 100 proofs."""


def pairs_for(gains: Sequence[Sequence[float]]) -> int:
    """The pairs of launches that each round of a proof needs, by what the search has measured.

    Args:
        gains: for each proposed size the log of the default's time less that of the setting, in each block.

    Returns:
        (scores · spread / smallest gain)², between :data:`FEWEST_PAIRS` and :data:`MOST_PAIRS`.
    """
    sums = freedom = 0.0
    for of_size in gains:
        gain, _ = bounded(of_size, of_size)
        mean = math.fsum(gain) / len(gain)
        sums += math.fsum((value - mean) ** 2 for value in gain)
        freedom += len(gain) - 1
    if freedom <= 0:
        return FEWEST_PAIRS
    smallest = _SMALLEST_GAIN
    needed = math.ceil((_SCORES * math.sqrt(sums / freedom) / smallest) ** 2)
    return min(MOST_PAIRS, max(FEWEST_PAIRS, needed))


@dataclass(frozen=True, slots=True)
class WantedLaunch:
    """One launch that is asked for."""

    block: int
    """The launches of a block are made one after the other, in an order that was drawn."""
    candidate: int
    """0 is the default."""
    places: tuple[int, ...]
    """Places of the sizes in the list of all sizes, in the order in which they are measured."""


def block_of(number: int, places: dict[int, list[int]], seed: int) -> tuple[WantedLaunch, ...]:
    """Draw the order of the launches of a block.

    Args:
        places: candidate -> places of the sizes that it measures.

    Returns:
        The launches. All measure the sizes that they share in one order, since a size may inherit caches from the one
        before.
    """
    drawn = random.Random(f"{seed}:block:{number}")
    order = sorted({place for of_one in places.values() for place in of_one})
    drawn.shuffle(order)
    candidates = sorted(candidate for candidate, of_one in places.items() if of_one)
    drawn.shuffle(candidates)
    return tuple(WantedLaunch(number, c, tuple(p for p in order if p in places[c])) for c in candidates)


def first_places(count: int, step: int) -> list[int]:
    """The first places to measure in a list of sizes: every `step`-th, and the last.

    >>> first_places(10, 4), first_places(1, 4)
    ([0, 4, 8, 9], [0])
    """
    places = list(range(0, count, step))
    return places if not places or places[-1] == count - 1 else [*places, count - 1]


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


def stand(sizes: Sequence[Times], design: SearchDesign, candidates: int) -> list[Standing]:
    """Judge the candidates of several sizes.

    A candidate is dropped where its mean difference from the leader exceeds t(1 - alpha / (L (C - 1))) standard errors,
    with L checks and C candidates: then the best one of a size is dropped with a chance of at most alpha.

    Args:
        sizes: of each size the times of the candidates that are left there; every one has a launch in some block in
            which each other has one too.
        candidates: number of all candidates of the search, by which the level is divided.

    Returns:
        The standing at each size.
    """
    sizes = _clip(sizes)
    leaders = [_leader(times, design) for times in sizes]
    asked = [(n, c) for n, times in enumerate(sizes) for c in times if c != leaders[n]]
    differences = {(n, c): _subtract_leader(sizes[n], c, leaders[n], design) for n, c in asked}
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
            elif _would_hardly_change(candidate, leader, behind[candidate], half, design):
                alike.add(candidate)
        standings.append(Standing(leader, behind, frozenset(slower), frozenset(alike)))
    return standings


def _guarded_mean(differences: Sequence[float]) -> float:
    """The mean, with the two largest differences as large as the third: it needs more than two slow launches."""
    ordered = sorted(differences)
    third = ordered[max(0, len(ordered) - _SLOW_LAUNCHES - 1)]
    return math.fsum(min(value, third) for value in ordered) / len(ordered)


def _would_hardly_change(candidate: int, leader: int, behind: float, half: float, design: SearchDesign) -> bool:
    """Whether more launches would hardly change what is set, by the interval `behind` ± `half`.

    Another setting is proposed only where it is before the default by a tie.
    """
    if leader == DEFAULT_CANDIDATE:
        return half - behind < design.tie
    if candidate == DEFAULT_CANDIDATE:
        return behind + half < design.tie
    return abs(behind) + half < design.penalty


def _clip(sizes: Sequence[Times]) -> list[dict[int, dict[int, float]]]:
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
        {c: _clip_block(blocks, middle[c] - _FAR_BELOW * spread, _FAR_ABOVE * spread) for c, blocks in times.items()}
        for times, middle in zip(sizes, middles, strict=True)
    ]


def _clip_block(blocks: Mapping[int, float], low: float, above: float) -> dict[int, float]:
    high = sorted(blocks.values())[len(blocks) // _FAST_SHARE] + above
    return {block: min(max(log, low), high) for block, log in blocks.items()}


def _penalise(candidate: int, log: float, design: SearchDesign) -> float:
    return log if candidate == DEFAULT_CANDIDATE else log + design.penalty


def _leader(times: Times, design: SearchDesign) -> int:
    shared = set.intersection(*(set(blocks) for blocks in times.values()))
    means = {c: math.fsum(_penalise(c, blocks[b], design) for b in shared) / len(shared) for c, blocks in times.items()}
    return min(means, key=lambda c: (means[c], c))


def _subtract_leader(times: Times, candidate: int, leader: int, design: SearchDesign) -> dict[int, float]:
    """Block -> penalised time of a candidate less the leader's."""
    return {
        block: _penalise(candidate, log, design) - _penalise(leader, times[leader][block], design)
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
    return _share_spread(table, floors)


def _share_spread(table: np.ndarray, floors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As :meth:`Rotations.errors`: only the observed differences are asked for."""
    columns = np.arange(table.shape[1])
    return Rotations(table, np.zeros(len(columns), dtype=np.intp), floors).errors(columns)

"""The design of a search, declared before the first launch, and what it asks to be launched."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from omb_py.results.statistics.sides.bounded_launches import bounded


@dataclass(frozen=True, slots=True)
class Design:
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
SCREEN = 0.5
"""Uncorrected p-value up to which a size of a proof is measured again while it is UNCLEAR."""
_SCORES = 0.67 + 2.33
"""Normal scores: a gain is taken into the second round (two-sided p of :data:`SCREEN`) in 99 of 100 proofs."""


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
class Wanted:
    """One launch that is asked for."""

    block: int
    """The launches of a block are made one after the other, in an order that was drawn."""
    candidate: int
    """0 is the default."""
    places: tuple[int, ...]
    """Places of the sizes in the list of all sizes, in the order in which they are measured."""


def block_of(number: int, places: dict[int, list[int]], seed: int) -> tuple[Wanted, ...]:
    """Draw the order of the launches of a block.

    Args:
        number: number of the block.
        places: candidate -> places of the sizes that it measures.
        seed: seed of the search.

    Returns:
        The launches. All measure the sizes that they share in one order, since a size may inherit caches from the one
        before.
    """
    drawn = random.Random(f"{seed}:block:{number}")
    order = sorted({place for of_one in places.values() for place in of_one})
    drawn.shuffle(order)
    candidates = sorted(candidate for candidate, of_one in places.items() if of_one)
    drawn.shuffle(candidates)
    return tuple(Wanted(number, c, tuple(p for p in order if p in places[c])) for c in candidates)


def first_places(count: int, step: int) -> list[int]:
    """The first places to measure in a list of sizes: every `step`-th, and the last.

    >>> first_places(10, 4), first_places(1, 4)
    ([0, 4, 8, 9], [0])
    """
    places = list(range(0, count, step))
    return places if not places or places[-1] == count - 1 else [*places, count - 1]

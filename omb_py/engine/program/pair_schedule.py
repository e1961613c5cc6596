"""Schedules of all pairs of some ranks in rounds of disjoint pairs (the circle method). Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

Pair = tuple[int, int]

KINDS = ("parallel", "serial")
"""All pairs of a round at once, or one pair at a time."""
DIRECTIONS = ("forward", "back")
"""Direction of a pair: the rank with the smaller number plays rank 0, or the other one does."""


def circle(count: int) -> Iterator[list[Pair]]:
    """Every pair of ``range(count)`` once, in rounds in which no member occurs twice.

    One stays where it is, the others move on by one place around a circle, and those that face each other meet: with an
    even number n - 1 rounds of n / 2 pairs, with an odd one n rounds of (n - 1) / 2, in each of which another one rests
    (T. P. Kirkman's schedule of 1847). A round is made when it is asked for: nothing grows with the square of `count`.
    """
    places = count + count % 2
    for turn in range(places - 1 if count > 1 else 0):
        ring = [0, *((k + turn) % (places - 1) + 1 for k in range(places - 1))]
        facing = ((ring[k], ring[-1 - k]) for k in range(places // 2))
        yield [(min(pair), max(pair)) for pair in facing if max(pair) < count]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The pairs to measure, and their order; as text it is a part of a cell."""

    seed: int = 0
    """Seed of the order: it changes the rounds, so that a pair does not always run beside the same other pairs."""
    kind: str = "parallel"
    direction: str = "forward"
    ranks: tuple[int, ...] = ()
    """Only these; ``()``: all."""

    def rounds(self, size: int) -> Iterator[tuple[int, list[Pair]]]:
        """(number of the round, pairs that are measured at once), in order; a pair is (who sends first, who answers).

        With ``serial`` a round comes in pieces of one pair.
        """
        members = list(self.ranks or range(size))
        random.Random(self.seed).shuffle(members)
        for number, pairs in enumerate(circle(len(members))):
            named = [self._directed(members[a], members[b]) for a, b in pairs]
            for piece in [named] if self.kind == "parallel" else [[pair] for pair in named]:
                yield number, piece

    def _directed(self, a: int, b: int) -> Pair:
        low, high = min(a, b), max(a, b)
        return (low, high) if self.direction == "forward" else (high, low)

    def text(self) -> str:
        """``seed:kind:direction:ranks``, the last empty for all."""
        return f"{self.seed}:{self.kind}:{self.direction}:{','.join(map(str, self.ranks))}"


def parse_schedule(text: str) -> Schedule:
    """The schedule of :meth:`Schedule.text`. Raises ValueError."""
    seed, kind, direction, ranks = text.split(":")
    if kind not in KINDS or direction not in DIRECTIONS:
        raise ValueError(text)
    return Schedule(int(seed), kind, direction, tuple(map(int, filter(None, ranks.split(",")))))

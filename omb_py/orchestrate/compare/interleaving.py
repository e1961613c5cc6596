"""The order of a comparison: which side is launched when, with which cells, and what is measured again.

Knows nothing of what a launch is: real ranks, simulated ones and synthetic numbers all come through here, so that
the rate of false alarms is simulated through the code that makes real reports.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from omb_py.results.compare.judge import Judged, Launched, Round, Rules, judge
from omb_py.results.compare.match import SIDES, Side

Launch = Callable[[Side, Sequence[int], int], Mapping[int, Launched]]
"""Makes one launch: (side, cells in the order in which they are to be measured, number of the round). Returns what it
measured; a cell may be missing."""
Told = Callable[[int, Sequence[int]], None]


@dataclass(frozen=True, slots=True)
class Design:
    """Declared before the first launch."""

    rules: Rules
    launches: int
    """Of each side, in each round."""
    seed: int
    """Of the order of cells."""


@dataclass(slots=True)
class Conducted:
    """What a comparison has found."""

    cells: list[list[Round]]
    judged: list[Judged]
    order: list[tuple[Side, int]] = field(default_factory=list)
    """Side and round of each launch, as they were made."""


def sides_of(pair: int) -> tuple[Side, Side]:
    """The order of the two launches of a pair: BASE NEW, NEW BASE, and so on, which reads ABBA ABBA …

    A steady drift then favours each side in turn, and cancels.
    """
    first, second = SIDES
    return (first, second) if pair % 2 == 0 else (second, first)


def shuffled(cells: Sequence[int], seed: int, pair: int) -> list[int]:
    """The cells in the order of one pair of launches, alike for both: a cell may inherit from the one before."""
    order = list(cells)
    random.Random(f"{seed}:{pair}").shuffle(order)
    return order


def conduct(groups: Sequence[Sequence[int]], design: Design, launch: Launch, told: Told | None = None) -> Conducted:
    """Measure and judge.

    Args:
        groups: the cells 0 … n-1, those together that share a launch.
        design: as declared.
        launch: makes one launch.
        told: called before each round, with its number and cells.

    Returns:
        Rounds and verdicts of all cells. Whatever `launch` raises comes through.
    """
    count = sum(map(len, groups))
    found = Conducted([[] for _ in range(count)], [])
    chosen: Sequence[int] = range(count)
    pair = 0
    for number in range(1, design.rules.rounds + 1):
        if told is not None:
            told(number, chosen)
        wanted = set(chosen)
        values: dict[Side, dict[int, list[Launched]]] = {side: {cell: [] for cell in chosen} for side in SIDES}
        for _ in range(design.launches):
            for group in groups:
                cells = shuffled([cell for cell in group if cell in wanted], design.seed, pair)
                if not cells:
                    continue
                got = {}
                for side in sides_of(pair):
                    got[side] = launch(side, cells, number)
                    found.order.append((side, number))
                for cell in set(got["BASE"]) & set(got["NEW"]):  # half a pair tells nothing
                    for side in SIDES:
                        values[side][cell].append(got[side][cell])
            pair += 1
        for cell in chosen:
            if values["BASE"][cell]:
                base, new = (tuple(values[side][cell]) for side in SIDES)
                found.cells[cell].append(Round(base, new, paired=True))
        found.judged = judge(found.cells, design.rules)
        chosen = [cell for cell in chosen if found.judged[cell].flagged]
        if not chosen:
            break
    return found

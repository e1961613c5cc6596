"""Interleave the launches of a comparison: the order of sides and cells, and the cells that are measured again.

This module does not know how a launch is made: real ranks, simulated ranks and synthetic numbers all pass through it,
so the rate of false alarms is simulated with the code that makes real reports.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from omb_py.results.compare.judge import CompareRound, CompareRules, JudgedCell, Launched, judge
from omb_py.results.compare.match import SIDES, Side

Launch = Callable[[Side, Sequence[int], int, int], Mapping[int, Launched]]
"""Makes one launch: (side, cells in the order of measuring, number of the round, number of the pair) -> results.

A cell may be missing."""
Announce = Callable[[int, Sequence[int]], None]


@dataclass(frozen=True, slots=True)
class CompareDesign:
    """The design of a comparison, declared before the first launch."""

    rules: CompareRules
    launches: int
    seed: int
    """Seed of the order of cells, and of the sides of each pair."""


@dataclass(slots=True)
class Conducted:
    """Rounds and verdicts of a comparison."""

    cells: list[list[CompareRound]]
    judged: list[JudgedCell]
    order: list[tuple[Side, int]] = field(default_factory=list)
    """Side and round of each launch, in the order in which they were made."""


def sides_of(seed: int, pair: int) -> tuple[Side, Side]:
    """Draw the order of the two launches of a pair.

    A library compared with itself then gives each difference with either sign equally often, whatever the machine does
    meanwhile. The verdicts rest on this alone. A fixed order, such as BASE NEW NEW BASE, may follow a rhythm of the
    machine.
    """
    first, second = SIDES
    return (first, second) if random.Random(f"{seed}:sides:{pair}").random() < 0.5 else (second, first)


def shuffled(cells: Sequence[int], seed: int, pair: int) -> list[int]:
    """Shuffle the cells for one pair of launches.

    Both launches have the same order, since a cell may inherit caches and connections from the one before.
    """
    order = list(cells)
    random.Random(f"{seed}:{pair}").shuffle(order)
    return order


def conduct(
    groups: Sequence[Sequence[int]], design: CompareDesign, launch: Launch, announce: Announce | None = None
) -> Conducted:
    """Measure both sides in turn and judge, round after round, until no cell is unclear.

    Args:
        groups: the cells 0 … n-1; the cells of a group share a launch.
        announce: called before each round, with its number and cells.

    Returns:
        Rounds and verdicts of all cells. Errors of `launch` are not caught.
    """
    count = sum(map(len, groups))
    conducted = Conducted([[] for _ in range(count)], [])
    chosen: Sequence[int] = range(count)
    pair = 0
    for number in range(1, design.rules.rounds + 1):
        if announce is not None:
            announce(number, chosen)
        wanted = set(chosen)
        values: dict[Side, dict[int, list[Launched]]] = {side: {cell: [] for cell in chosen} for side in SIDES}
        pairs: dict[int, list[str]] = {cell: [] for cell in chosen}
        for _ in range(design.launches):
            for group in groups:
                cells = shuffled([cell for cell in group if cell in wanted], design.seed, pair)
                if not cells:
                    continue
                launched = {}
                for side in sides_of(design.seed, pair):
                    launched[side] = launch(side, cells, number, pair)
                    conducted.order.append((side, number))
                for cell in set(launched["BASE"]) & set(launched["NEW"]):  # half a pair tells nothing
                    pairs[cell].append(str(pair))
                    for side in SIDES:
                        values[side][cell].append(launched[side][cell])
            pair += 1
        for cell in chosen:
            if values["BASE"][cell]:
                base, new = (tuple(values[side][cell]) for side in SIDES)
                conducted.cells[cell].append(CompareRound(base, new, paired=True, pairs=tuple(pairs[cell])))
        conducted.judged = judge(conducted.cells, design.rules)
        chosen = [cell for cell in chosen if conducted.judged[cell].flagged]
        if not chosen:
            break
    return conducted

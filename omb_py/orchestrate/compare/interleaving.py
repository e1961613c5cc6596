"""Interleave the launches of a comparison: the order of sides and cells, and the cells that are measured again.

This module does not know how a launch is made: real ranks, simulated ranks and synthetic numbers all pass through it,
so the rate of false alarms is simulated with the code that makes real reports.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from omb_py.orchestrate.compare.pilot import PAIRS, Pilot, pilot_of
from omb_py.results.compare.judge import CompareRound, CompareRules, JudgedCell, Launched, judge
from omb_py.results.compare.match import PILOT_ROUND, SIDES, Side

Launch = Callable[[Side, Sequence[int], int, int], Mapping[int, Launched]]
"""Makes one launch: (side, cells in the order of measuring, number of the round, number of the pair) -> results.

A cell may be missing."""


@dataclass(frozen=True, slots=True)
class CompareDesign:
    """The design of a comparison, declared before the first launch that is judged."""

    rules: CompareRules
    launches: int
    """Of each side in each round."""
    seed: int
    """Seed of the order of cells, and of the sides of each pair."""
    budget_s: float | None = None
    """Time for all launches: a few pairs that are not judged then choose rounds and launches. None: those above."""
    first_pair: int = 0
    """Number of the first pair that is judged: those of a pilot come before."""


class CompareListener:
    """Is told how a comparison goes on. This one does nothing with it."""

    def planned(self, pilot: Pilot, design: CompareDesign) -> None:
        """Take what the first pairs say, and the design that holds from now on."""

    def begins(self, design: CompareDesign, number: int, cells: Sequence[int]) -> None:
        """Take the number of the round that begins now, and its cells."""


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
    groups: Sequence[Sequence[int]],
    design: CompareDesign,
    launch: Launch,
    listener: CompareListener | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Conducted:
    """Measure both sides in turn and judge, round after round, until no cell is unclear.

    Args:
        groups: the cells 0 … n-1; the cells of a group share a launch.
        listener: is told how it goes on.
        clock: gives seconds, for the time that a pair takes.

    Returns:
        Rounds and verdicts of all cells.

    Raises:
        UsageError: the budget is too short for a change to be shown. Errors of `launch` are not caught.
    """
    listener, count = listener or CompareListener(), sum(map(len, groups))
    conducted = Conducted([[] for _ in range(count)], [])
    chosen: Sequence[int] = range(count)
    began = clock()
    if design.budget_s is not None:
        listener.begins(replace(design, launches=PAIRS), PILOT_ROUND, chosen)
        measured = _Round(groups, chosen, PILOT_ROUND, 0)
        measured.make(PAIRS, design, launch, conducted)
        spent_s = clock() - began
        rules, launches = design.rules, design.launches
        if (pilot := measured.pilot(spent_s / PAIRS)) is not None:
            rules, launches = pilot.within(design.budget_s - spent_s, design.rules)
        design = CompareDesign(rules, launches, design.seed, first_pair=PAIRS)
        if pilot is not None:
            listener.planned(pilot, design)
    first = design.first_pair
    for number in range(1, design.rules.rounds + 1):
        listener.begins(design, number, chosen)
        measured = _Round(groups, chosen, number, first)
        if number == 1 and not first and design.launches > PAIRS:
            measured.make(PAIRS, design, launch, conducted)
            if (pilot := measured.pilot((clock() - began) / PAIRS)) is not None:
                listener.planned(pilot, design)
        measured.make(design.launches, design, launch, conducted)
        first += design.launches
        measured.add_to(conducted)
        conducted.judged = judge(conducted.cells, design.rules)
        chosen = [cell for cell in chosen if conducted.judged[cell].flagged]
        if not chosen:
            break
    return conducted


class _Round:
    def __init__(self, groups: Sequence[Sequence[int]], cells: Sequence[int], number: int, first: int) -> None:
        self._cells, self._number, self._first, self._made = cells, number, first, 0
        wanted = set(cells)
        self._groups = [own for group in groups if (own := [cell for cell in group if cell in wanted])]
        self._values: dict[Side, dict[int, list[Launched]]] = {side: {cell: [] for cell in cells} for side in SIDES}
        self._pairs: dict[int, list[str]] = {cell: [] for cell in cells}

    def make(self, launches: int, design: CompareDesign, launch: Launch, conducted: Conducted) -> None:
        """Make launches of each side, until the round has so many."""
        for pair in range(self._first + self._made, self._first + launches):
            for group in self._groups:
                cells = shuffled(group, design.seed, pair)
                launched = {}
                for side in sides_of(design.seed, pair):
                    launched[side] = launch(side, cells, self._number, pair)
                    conducted.order.append((side, self._number))
                for cell in set(launched["BASE"]) & set(launched["NEW"]):  # half a pair tells nothing
                    self._pairs[cell].append(str(pair))
                    for side in SIDES:
                        self._values[side][cell].append(launched[side][cell])
        self._made = launches

    def pilot(self, pair_s: float) -> Pilot | None:
        """What the launches so far say of all that will be made; None where they say nothing."""
        base, new = (list(self._values[side].values()) for side in SIDES)
        return pilot_of(base, new, pair_s)

    def add_to(self, conducted: Conducted) -> None:
        """Add the round to its cells; one that no launch has gets none."""
        for cell in self._cells:
            base, new = (tuple(self._values[side][cell]) for side in SIDES)
            if base:
                conducted.cells[cell].append(CompareRound(base, new, paired=True, pairs=tuple(self._pairs[cell])))

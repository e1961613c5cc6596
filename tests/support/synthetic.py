"""Synthetic launches, for the rate of false alarms and the power of comparisons: seeded, so the rates are exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from omb_py.orchestrate.compare.interleaving import CompareDesign, conduct
from omb_py.results.compare.judge import CompareRound, CompareRules, JudgedCell, Launched, judge
from omb_py.results.compare.match import Side

KINDS = ("normal", "t3", "bimodal", "AR 0.3", "AR 0.5", "AR 0.9", "night", "drift", "unequal", "ties")
SHARED = 0.5
"""Part of the variance of a launch effect that all its cells share, as in real launches."""
DRIFT, TICK, LOST, SLOW = 0.005, 0.05, 0.15, 0.1
"""Log a launch; step of quantised times; share of cells that a launch lacks; share of launches that take twice as long.
"""
LAUNCHES_A_NIGHT = 5


@dataclass
class Machine:
    """Makes launches as a real machine would: its state wanders, nights differ, launches have modes."""

    kind: str
    cells: int
    rng: np.random.Generator
    spread: float = 0.02
    """Standard deviation of the log of launch medians (of the normal kind)."""
    change: Mapping[int, float] = field(default_factory=dict)
    """Cell -> the factor by which NEW is slower."""
    shared: float = SHARED
    """Part of the variance of a launch effect that all cells share."""
    tails: bool = True
    """Whether launches have medians and tails; else one number, so that a cell is one question."""
    number: int = 0
    _state: NDArray[np.float64] | None = None
    _night: NDArray[np.float64] | None = None

    def __call__(self, side: Side, cells: Sequence[int], number: int, pair: int) -> dict[int, Launched]:
        """One launch."""
        if self.number % LAUNCHES_A_NIGHT == 0 and self.kind == "night":
            self.new_night()
        logs = self._logs()
        tails = logs + self.spread * self.rng.standard_normal(self.cells)  # a p99 moves more
        if self.kind == "ties":
            logs, tails = (np.round(values / TICK) * TICK for values in (logs, tails))
        here = self.rng.random(self.cells) >= (LOST if self.kind == "unequal" else 0)
        self.number += 1
        medians, tails = 10 * np.exp(logs), 20 * np.exp(tails)
        launched = {}
        for cell in cells:
            if here[cell]:
                factor = self.change.get(cell, 1.0) if side == "NEW" else 1.0
                median = float(medians[cell]) * factor
                whole = Launched(median, 1.1 * median, float(tails[cell]) * factor)
                launched[cell] = whole if self.tails else Launched(None, median)
        return launched

    def new_night(self) -> None:
        """Hours pass: the machine forgets its state, and the night has an effect of its own."""
        self._state = None
        self._night = self.spread * self._mixed(lambda *shape: self.rng.standard_normal(shape))

    def _logs(self) -> NDArray[np.float64]:
        if self.kind == "t3":
            return self.spread * self._mixed(lambda *shape: self.rng.standard_t(3, shape))
        if self.kind == "bimodal":  # half of the cells are slow in the same launches
            slow = self.rng.random(self.cells) < SLOW
            slow[::2] = self.rng.random() < SLOW
            return np.log(2) * slow + 0.25 * self.spread * self.rng.standard_normal(self.cells)
        drawn = self._mixed(lambda *shape: self.rng.standard_normal(shape))
        if self.kind.startswith("AR "):
            rho = float(self.kind.removeprefix("AR "))
            self._state = drawn if self._state is None else rho * self._state + np.sqrt(1 - rho**2) * drawn
            return self.spread * self._state
        night = self._night if self.kind == "night" and self._night is not None else 0.0
        drift = DRIFT * self.number if self.kind == "drift" else 0.0
        return self.spread * drawn + night + drift

    def _mixed(self, draw) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
        return np.sqrt(self.shared) * draw(1) + np.sqrt(1 - self.shared) * draw(self.cells)


@dataclass
class Rates:
    """Counts of a simulation."""

    cells: int = 0
    alarms: int = 0
    """Cells with any SLOWER or FASTER."""
    reports: int = 0
    false_reports: int = 0
    """Reports in which a cell that has not changed is SLOWER or FASTER."""
    found: int = 0
    changed: int = 0
    launches: int = 0
    words: Counter[str] = field(default_factory=Counter)

    def count(self, judged: Sequence[JudgedCell], change: Mapping[int, float], launches: int = 0) -> None:
        """Count one report."""
        self.cells += len(judged)
        self.reports += 1
        self.launches += launches
        self.alarms += sum(one.alarm for one in judged)
        self.false_reports += any(one.alarm for cell, one in enumerate(judged) if cell not in change)
        self.changed += len(change)
        self.found += sum(judged[cell].answers["median"].verdict == "SLOWER" for cell in change)
        self.words.update(one.verdict for one in judged if one.answers)


def upper(events: int, trials: int, level: float = 0.95) -> float:
    """One-sided upper bound of a rate, by Clopper and Pearson."""
    from scipy import special

    return 1.0 if events >= trials else float(special.betaincinv(events + 1, trials - events, level))


def lower(events: int, trials: int, level: float = 0.95) -> float:
    """One-sided lower bound of a rate, by Clopper and Pearson."""
    from scipy import special

    return 0.0 if not events else float(special.betaincinv(events, trials - events + 1, 1 - level))


def simulate(
    kind: str,
    family: int,
    cells: int,
    rules: CompareRules,
    launches: int = 10,
    seed: int = 1,
    change: float = 1.0,
    spread: float = 0.02,
    changed: float = 1.0,
    shared: float = SHARED,
    tails: bool = True,
) -> Rates:
    """`cells` cells in reports of `family` cells each, measured in turn through the whole of a comparison.

    Args:
        kind: of :data:`KINDS`.
        family: cells of a report.
        cells: of all reports together.
        rules: of the comparison.
        launches: a side and round.
        seed: of everything random.
        change: factor by which NEW is slower in changed cells; 1 for A against A.
        spread: standard deviation of the log of launch medians.
        changed: share of the cells that are changed, at least one.
        shared: part of the variance of a launch effect that all cells share.
        tails: whether a cell has two questions, its median and its tail, or one.
    """
    rates = Rates()
    slower = dict.fromkeys(range(max(1, round(changed * family))), change) if change != 1 else {}
    for report in range(cells // family):
        rng = np.random.default_rng([seed, KINDS.index(kind), family, report])
        machine = Machine(kind, family, rng, spread=spread, change=slower, shared=shared, tails=tails)
        conducted = conduct([range(family)], CompareDesign(rules, launches, report), machine)
        rates.count(conducted.judged, slower, len(conducted.order))
    return rates


def stored(kind: str, family: int, cells: int, order: str, rules: CompareRules, seed: int = 1) -> Rates:
    """Cells of launches that were made in an order of their own, A against A, as :func:`simulate`.

    Args:
        kind: of :data:`KINDS`.
        family: cells of a report.
        cells: of all reports together.
        order: a letter (B or N) a launch, nights apart by a space.
        rules: of the comparison.
        seed: of everything random.
    """
    rates = Rates()
    interleaved = " " not in order
    for report in range(cells // family):
        machine = Machine(kind, family, np.random.default_rng([seed, KINDS.index(kind), family, report]))
        values: dict[str, list[tuple[float, dict[int, Launched]]]] = {"B": [], "N": []}
        for night, letters in enumerate(order.split()):
            machine.new_night()
            for letter in letters:
                side: Side = "BASE" if letter == "B" else "NEW"
                values[letter].append((float(night), machine(side, range(family), 1, 0)))
        judged = []
        for cell in range(family):
            sides = [[(night, here[cell]) for night, here in values[letter] if cell in here] for letter in "BN"]
            paired = interleaved and len(sides[0]) == len(sides[1]) == len(values["B"])
            launches = [tuple(launched for _, launched in side) for side in sides]
            nights = [tuple(night for night, _ in side) for side in sides]
            judged.append([CompareRound(launches[0], launches[1], paired, nights=(nights[0], nights[1]))])
        rates.count(judge(judged, rules), {})
    return rates

"""Synthetic launches, for the rate of false alarms and the power of comparisons: seeded, so the rates are exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from omb_py.orchestrate.compare.interleaving import Design, conduct
from omb_py.results.compare.judge import Judged, Launched, Rules, judge
from omb_py.results.compare.match import Side

KINDS = ("normal", "bimodal", "heavy")
FAMILIES = (1, 10, 60)
SHARED = 0.7
"""Part of the variance of a launch effect that all its cells share: cells of real launches correlate (0.5)."""


@dataclass
class Machine:
    """Makes launches as a real machine would: with an effect of the launch, drift, and noise of each cell."""

    kind: str
    cells: int
    rng: np.random.Generator
    spread: float = 0.02
    """Standard deviation of the log of launch medians (of the normal kind)."""
    drift: float = 0.001
    """Each launch is slower than the one before."""
    wander: float = 0.5
    """Autocorrelation of the wandering part, which has a quarter of the variance."""
    change: Mapping[int, float] = field(default_factory=dict)
    """Cell -> the factor by which NEW is slower."""
    tail_change: Mapping[int, float] = field(default_factory=dict)
    number: int = 0
    _state: float = 0.0

    def __call__(self, side: Side, cells: Sequence[int], number: int) -> dict[int, Launched]:
        """One launch."""
        self._state = self.wander * self._state + np.sqrt(1 - self.wander**2) * self.rng.normal()
        shared, own = self._effects(1)[0], self._effects(self.cells)
        logs = np.sqrt(SHARED * 0.75) * shared + np.sqrt(1 - SHARED) * own
        logs += 0.5 * np.sqrt(SHARED) * self.spread * self._state + self.drift * self.number
        tails = logs + self._effects(self.cells)  # a p99 moves more
        self.number += 1
        out = {}
        for cell in cells:
            slower = self.change.get(cell, 1.0) if side == "NEW" else 1.0
            tail = slower * self.tail_change.get(cell, 1.0) if side == "NEW" else 1.0
            median = float(np.exp(logs[cell])) * slower
            out[cell] = Launched(10 * median, 11 * median, 20 * float(np.exp(tails[cell])) * tail)
        return out

    def _effects(self, n: int) -> NDArray[np.float64]:
        if self.kind == "normal":
            return self.spread * self.rng.standard_normal(n)
        if self.kind == "heavy":
            return self.spread * self.rng.standard_t(3, n)
        if self.kind == "bimodal":  # three launches in ten are 5 % slower
            return 0.05 * (self.rng.random(n) < 0.3) + 0.25 * self.spread * self.rng.standard_normal(n)
        raise ValueError(self.kind)


@dataclass
class Rates:
    """Counts of a simulation."""

    cells: int = 0
    alarms: int = 0
    """Cells that would be called changed if each were a report of its own."""
    reports: int = 0
    false_reports: int = 0
    """Reports with any SLOWER or FASTER."""
    words: Counter[str] = field(default_factory=Counter)
    rounds: Counter[int] = field(default_factory=Counter)

    def line(self) -> str:
        """For a reader."""
        words = ", ".join(f"{word} {count}" for word, count in self.words.most_common())
        return (
            f"{self.alarms} of {self.cells} cells ({self.alarms / self.cells:.2%}), at most "
            f"{upper(self.alarms, self.cells):.2%} with 95 % confidence; {self.false_reports} of {self.reports} "
            f"reports ({self.false_reports / self.reports:.2%}); {words}"
        )


def upper(events: int, trials: int, level: float = 0.95) -> float:
    """One-sided upper bound of a rate, by Clopper and Pearson."""
    from scipy import special

    return 1.0 if events >= trials else float(special.betaincinv(events + 1, trials - events, level))


def simulate(
    kind: str,
    family: int,
    cells: int,
    rules: Rules,
    launches: int = 10,
    seed: int = 1,
    change: float = 1.0,
    spread: float = 0.02,
) -> Rates:
    """`cells` cells in reports of `family` cells each, through the whole of a comparison.

    Args:
        kind: of :data:`KINDS`.
        family: cells of a report.
        cells: of all reports together.
        rules: of the comparison.
        launches: a side and round.
        seed: of everything random.
        change: factor by which NEW is slower in every cell; 1 for A against A.
        spread: standard deviation of the log of launch medians.
    """
    rates = Rates()
    for report in range(cells // family):
        rng = np.random.default_rng([seed, KINDS.index(kind), family, report])
        machine = Machine(kind, family, rng, spread=spread, change=dict.fromkeys(range(family), change))
        found = conduct([range(family)], Design(rules, launches, seed), machine)
        rates.cells += family
        rates.reports += 1
        rates.false_reports += any(one.alarm for one in found.judged)
        alone: list[Judged] = [judge([rounds], rules)[0] for rounds in found.cells]
        rates.alarms += sum(one.alarm for one in alone)
        rates.words.update(one.verdict for one in found.judged)
        rates.rounds.update(len(rounds) for rounds in found.cells)
    return rates


def found_at_spread(spread: float, launches: int) -> float:
    """The change that a paired test at 1 % finds with 90 %, roughly: for choosing what to plant."""
    z = NormalDist().inv_cdf
    return float(np.exp((z(0.995) + z(0.9)) * spread * np.sqrt(2 / launches)))

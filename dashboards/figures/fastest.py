"""Who is fastest where, beyond the noise of launches: one way for every figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from omb_py.dashboards.base import theme
from omb_py.results.analysis.crossover import fastest_of, stretches

if TYPE_CHECKING:
    from omb_py.dashboards.figures.curves import PanelGrid, Points

UNITS = {"time": "µs", "bandwidth": "MB/s", "algbw": "GB/s", "busbw": "GB/s", "ratio": "×", "kept": "%"}
"""What panels can show, with its unit."""
RATES = ("bandwidth", "algbw", "busbw", "kept")
"""Quantities of which more is better."""


Verdicts = Mapping[tuple[int, int], str]
"""(number of ranks or GPUs, message size) -> ``slower``, ``faster`` or "", of the second of two sides."""


@dataclass(frozen=True)
class JudgedPair:
    """Two sides whose cells were judged, so that no figure of them has a second opinion."""

    base: str
    new: str
    verdicts: Verdicts

    def applied(self, fastest: Mapping[int, str | None], known: Points, panel: int) -> dict[int, str | None]:
        """Who is fastest in a panel, by the verdicts where these two sides are the first two."""
        grid, middles = known.grid, known.middles(panel)
        several: dict[int, str | None] = {}
        for x, side in fastest.items():
            there = sorted((values[x], name) for name, values in middles.items() if x in values)
            first = [name for _, name in (reversed(there) if grid.quantity in RATES else there)][:2]
            verdict = self.verdicts.get((panel, x) if grid.across == "size_bytes" else (x, panel))
            if {*first} != {self.base, self.new} or verdict is None:
                several[x] = side
            else:
                is_sure = len(there) == 2 or side is not None
                best = {"slower": self.base, "faster": self.new}.get(verdict) if is_sure else None
                several[x] = best if best == first[0] else None
        return several


def fastest_at(known: Points, panel: int, judged: JudgedPair | None = None) -> dict[int, str | None]:
    """Value on the x axis -> who is fastest, where two sides or more have it; None where the launches do not tell."""
    launches: dict[int, dict[str, list[float]]] = {}
    for side, table in known.of(panel).items():
        for x, values in zip(map(int, table.index), table["values"], strict=True):
            launches.setdefault(x, {})[side] = values
    best = fastest_of(dict(sorted(launches.items())), rate=known.grid.quantity in RATES)
    return best if judged is None or known.grid.quantity == "kept" else judged.applied(best, known, panel)


def crossovers(fastest: Mapping[int, str | None], grid: PanelGrid) -> list[tuple[float, str]]:
    """Where another side becomes the fastest: the first value at which it is."""
    decided = [(x, side) for x, side in fastest.items() if side is not None]
    return [(float(x), f"from {grid.text(grid.across, x)}") for (_, a), (x, b) in pairwise(decided) if a != b]


def title(name: str, known: Points, fastest: Mapping[int, Mapping[int, str | None]]) -> str:
    """The finding, of the largest panel: who is fastest where, and how far apart they are."""
    grid = known.grid
    panel = max((at for at, places in fastest.items() if crossovers(places, grid)), default=max(fastest))
    subject = f"{name}, {grid.text(grid.panel, panel)}"
    middles = known.middles(panel)
    if grid.quantity == "kept":
        kept = {side: (max(values), values[max(values)]) for side, values in middles.items()}
        return f"{subject}, bus bandwidth that is kept: " + ", ".join(
            f"{value:.0f} % at {grid.text(grid.across, x)} by {side}" for side, (x, value) in kept.items()
        )
    if len(middles) == 1:
        (values,) = middles.values()
        last_of = {x: values[x] for x in (min(values), max(values))}
        return f"{subject}: " + ", ".join(
            f"{_amount(value, grid.quantity)} at {grid.text(grid.across, x)}" for x, value in last_of.items()
        )
    places = fastest[panel]
    every = "at every size" if grid.across == "size_bytes" else "at every number"
    if len(places) < len({x for values in middles.values() for x in values}):
        every += " that several measured"
    if any(side is not None for side in places.values()):
        text = stretches([(grid.text(grid.across, x), side) for x, side in places.items()], every)
    elif min(float(table["launches"].min()) for table in known.of(panel).values()) < 2:
        text = "one launch of a side has no known spread, so none is called the fastest"
    else:
        others = " than all others" if len(middles) > 2 else ""
        text = f"no side is faster{others} beyond the noise of the launches"
    several = {x: [values[x] for values in middles.values() if x in values] for x in places}
    far, x = max(((max(values) / min(values), x) for x, values in several.items()), default=(1.0, 0))
    apart = f"; up to {theme.amount(far)}× apart, at {grid.text(grid.across, x)}" if far > 1.005 else ""
    return f"{subject}: {text}{apart}"


def _amount(value: float, quantity: str) -> str:
    return theme.duration(value) if quantity == "time" else f"{theme.amount(value)} {UNITS[quantity]}"


def finding(name: str, known: Points, judged: JudgedPair | None = None) -> str:
    """:func:`title` of what is known of all panels that are drawn."""
    return title(name, known, {panel: fastest_at(known, panel, judged) for panel in known.panels})

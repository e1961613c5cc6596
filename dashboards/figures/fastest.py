"""Who is fastest where, beyond the noise of launches: one way for every figure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from omb_py.dashboards.base import theme
from omb_py.results.analysis.crossover import stretches
from omb_py.results.statistics.change_points import DELTA
from omb_py.results.statistics.sequential import holm
from omb_py.results.statistics.t_test import welch_of_rounded

if TYPE_CHECKING:
    import pandas as pd

    from omb_py.dashboards.figures.curves import PanelGrid, Points

ALPHA = 0.01
"""Chance that any of several things without a difference is called slower or faster."""
UNITS = {"time": "µs", "algbw": "GB/s", "busbw": "GB/s", "ratio": "×", "kept": "%"}
"""What panels can show, with its unit."""
RATES = ("algbw", "busbw", "kept")
"""Quantities of which more is better."""


def _values_at(table: pd.DataFrame) -> Iterator[tuple[int, list[float]]]:
    yield from zip(map(int, table.index), table["values"], strict=True)


def fastest_at(known: Points, panel: int) -> dict[int, str | None]:
    """Value on the x axis -> who is fastest, where two sides or more have it; None where the launches do not tell.

    Who has the least median is held against each other side by Welch's t over launches, with Holm's method over all
    places of the panel, as the first screen judges. A side with one launch has no known spread and is never faster.
    """
    rate = known.grid.quantity in RATES
    middles = known.middles(panel)
    logs = {
        side: {x: [math.log(v) for v in values if v > 0] for x, values in _values_at(table)}
        for side, table in known.of(panel).items()
    }
    best: dict[int, str | None] = {}
    tested: list[tuple[int, float]] = []
    for x in sorted({x for values in middles.values() for x in values}):
        # nccl-tests prints 0.00 GB/s for small messages, of which no ratio can be made
        there = {side: values[x] for side, values in middles.items() if values.get(x, 0) > 0}
        if len(there) < 2:
            continue
        first = (max if rate else min)(there, key=lambda side: there[side])
        best[x] = first
        for side in there.keys() - {first}:
            small = abs(math.log(there[side] / there[first])) < math.log1p(DELTA)
            tested.append((x, 1.0 if small else welch_of_rounded(logs[first][x], logs[side][x]).p))
    for (x, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        if not p <= ALPHA:
            best[x] = None
    return best


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
        text = "no side is faster beyond the noise of the launches"
    several = {x: [values[x] for values in middles.values() if x in values] for x in places}
    far, x = max(((max(values) / min(values), x) for x, values in several.items()), default=(1.0, 0))
    apart = f"; up to {theme.amount(far)}× apart, at {grid.text(grid.across, x)}" if far > 1.005 else ""
    return f"{subject}: {text}{apart}"


def _amount(value: float, quantity: str) -> str:
    return theme.duration(value) if quantity == "time" else f"{theme.amount(value)} {UNITS[quantity]}"


def finding(name: str, known: Points) -> str:
    """:func:`title` of what is known of all panels that are drawn."""
    return title(name, known, {panel: fastest_at(known, panel) for panel in known.panels})

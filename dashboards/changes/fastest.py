"""Who is fastest where, beyond the noise of the launches, the crossovers, and that as a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from omb_py.dashboards.base import theme
from omb_py.dashboards.changes.ratios import ALPHA
from omb_py.results.analysis.crossover import stretches
from omb_py.results.statistics.change_points import DELTA
from omb_py.results.statistics.multiple_testing import holm
from omb_py.results.statistics.t_test import welch_of_rounded

if TYPE_CHECKING:
    from omb_py.dashboards.figures.multiples import Grid, Points


def fastest_at(known: Points, panel: int) -> dict[int, str | None]:
    """Value on the x axis -> who is fastest, where two sides or more have it; None where the launches do not tell.

    Who has the least median is held against each other side by Welch's t over launches, with Holm's method over all
    places of the panel, as the first screen judges. A side with one launch has no known spread and is never faster.
    """
    rate = known.grid.quantity == "busbw"
    middles = known.middles(panel)
    logs = {
        side: {int(x): [math.log(v) for v in values] for x, values in zip(table.index, table["values"], strict=True)}
        for side, table in known.of(panel).items()
    }
    best: dict[int, str | None] = {}
    tested: list[tuple[int, float]] = []
    for x in sorted({x for values in middles.values() for x in values}):
        there = {side: values[x] for side, values in middles.items() if x in values}
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


def crossovers(fastest: Mapping[int, str | None], grid: Grid) -> list[tuple[float, str]]:
    """Where another side becomes the fastest: the first value at which it is."""
    decided = [(x, side) for x, side in fastest.items() if side is not None]
    return [(float(x), f"from {grid.said(grid.across, x)}") for (_, a), (x, b) in pairwise(decided) if a != b]


def title(name: str, known: Points, fastest: Mapping[int, Mapping[int, str | None]]) -> str:
    """The finding, of the largest panel: who is fastest where, and how far apart they are."""
    grid = known.grid
    panel = max((at for at, places in fastest.items() if crossovers(places, grid)), default=max(fastest))
    subject = f"{name}, {grid.said(grid.panel, panel)}"
    middles = known.middles(panel)
    if len(middles) == 1:
        (values,) = middles.values()
        ends = {x: values[x] for x in (min(values), max(values))}
        return f"{subject}: " + ", ".join(
            f"{_amount(value, grid.quantity)} at {grid.said(grid.across, x)}" for x, value in ends.items()
        )
    places = fastest[panel]
    decided = [(grid.said(grid.across, x), side) for x, side in places.items() if side is not None]
    whole = len(decided) == len(places)
    every = "at every size" if grid.across == "size_bytes" else "at every number"
    if len(places) < len({x for values in middles.values() for x in values}):
        every += " that several measured"
    if decided:
        text = stretches(decided, whole, every)
    elif min(float(table["launches"].min()) for table in known.of(panel).values()) < 2:
        text = "one launch of a side has no known spread, so none is called the fastest"
    else:
        text = "no side is faster beyond the noise of the launches"
    several = {x: [values[x] for values in middles.values() if x in values] for x in places}
    far, x = max(((max(values) / min(values), x) for x, values in several.items()), default=(1.0, 0))
    apart = f"; up to {theme.amount(far)}× apart, at {grid.said(grid.across, x)}" if far > 1.005 else ""
    return f"{subject}: {text}{apart}"


def _amount(value: float, quantity: str) -> str:
    units = {"busbw": " GB/s", "ratio": " ×"}
    return theme.duration(value) if quantity == "time" else f"{theme.amount(value)}{units[quantity]}"

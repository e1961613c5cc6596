"""Panels of the same axes beside each other, a line a side: over message size, or over ranks or GPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.series import word
from omb_py.dashboards.base.view import View
from omb_py.dashboards.base.view import table as view_table
from omb_py.dashboards.figures.curves import COUNTED, spread
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd

MOST_PANELS = 6
QUANTITIES = {"time": "µs", "busbw": "GB/s", "ratio": "×"}
"""What can be drawn, with its unit."""
SIZE = "size_bytes"
_SIDE, _RATE = "side", "busbw_gbps"
Sides = Sequence[tuple[str, "pd.DataFrame"]]
"""Name and cells of each side, in the order of their colours."""


@dataclass(frozen=True)
class Grid:
    """What the panels show."""

    over: str = "ranks"
    """``ranks`` or ``devices``: what is counted."""
    across: str = SIZE
    """The column on the x axes: :data:`SIZE`, or `over`; each panel is one value of the other."""
    quantity: str = "time"
    """``time``; ``busbw``; ``ratio``: the time over that of the first side."""

    @property
    def panel(self) -> str:
        """The column whose values have panels."""
        return self.over if self.across == SIZE else SIZE

    def said(self, column: str, value: int) -> str:
        """``64 KiB``, ``8 ranks``, ``8 GPUs``."""
        if column == SIZE:
            return size_text(value) if value else "no size"
        return f"{value} GPUs" if column == "devices" else word(column, value)


@dataclass(frozen=True)
class Points:
    """What each side has in each panel."""

    grid: Grid
    known: Mapping[tuple[str, int], pd.DataFrame]
    """(side, panel) -> ``middle``, ``low``, ``high`` over launches, ``launches``, the ``values`` of the launches in
    the quantity's unit, the median bus bandwidth ``rate`` in GB/s and ``cell``, by the value on the x axis; ratios keep
    the times as values."""

    def of(self, panel: int) -> dict[str, pd.DataFrame]:
        """What each side has in one panel."""
        return {side: table for (side, at), table in self.known.items() if at == panel}

    def middles(self, panel: int) -> dict[str, dict[int, float]]:
        """The medians of each side in one panel, by the value on the x axis."""
        return {
            side: dict(zip(map(int, table.index), map(float, table["middle"]), strict=True))
            for side, table in self.of(panel).items()
        }

    @property
    def panels(self) -> list[int]:
        """Values with a panel: at most :data:`MOST_PANELS`, those with several points on the x axis if there are."""
        several = sorted({panel for (_, panel), table in self.known.items() if len(table) > 1})
        return spread(several or sorted({panel for _, panel in self.known}), MOST_PANELS)


def points(sides: Sides, grid: Grid) -> Points:
    """Medians over launches of each side in each panel, with the range of the launches."""
    known: dict[tuple[str, int], pd.DataFrame] = {}
    column = _RATE if grid.quantity == "busbw" else "median_us"
    by = [_SIDE, grid.panel, grid.across]
    # one grouping of all sides: pandas takes as long for a few rows as for thousands
    rows = series.concat(
        cells.loc[cells[grid.over].notna() & cells[column].notna(), [*by[1:], *{column, _RATE}, *series.CELL]].assign(
            **{_SIDE: number}
        )
        for number, (_, cells) in enumerate(sides)
    )
    rows = rows.assign(**{SIZE: rows[SIZE].fillna(0).astype("int64")})
    rows = rows[rows[SIZE] > 0] if grid.across == SIZE else rows
    groups = rows.groupby(by, sort=True)
    grouped = groups[column]
    middle = grouped.agg(["median", "min", "max", "count"]).astype("float64")
    middle.columns = ["middle", "low", "high", "launches"]
    last = rows.drop_duplicates(by, keep="last").sort_values(by)  # in the order of the groups
    whole = middle.assign(cell=series.cell_names(last), values=grouped.agg(list), rate=groups[_RATE].median())
    start, counts = 0, whole.groupby(level=[0, 1], sort=True).size()
    for number, panel, count in zip(*map(counts.index.get_level_values, (0, 1)), counts, strict=True):
        part = whole.iloc[start : start + count]
        known[sides[number][0], int(panel)] = part.set_axis(part.index.get_level_values(2))
        start += count
    return Points(grid, _over_first(known, sides[0][0]) if grid.quantity == "ratio" else known)


def _over_first(known: Mapping[tuple[str, int], pd.DataFrame], first: str) -> dict[tuple[str, int], pd.DataFrame]:
    """Each side over the first one, where both were measured; the range is that of the side alone."""
    ratios = {}
    for (name, panel), table in known.items():
        base = known.get((first, panel))
        if base is None:
            continue
        both = table.index.intersection(base.index)
        middle = base.loc[both, "middle"]
        if len(both):
            scaled = {column: table.loc[both, column] / middle for column in ("middle", "low", "high")}
            ratios[name, panel] = table.loc[both].assign(**scaled)
    return ratios


def multiples(
    sides: Sides,
    name: str,
    grid: Grid = Grid(),
    known: Points | None = None,
    *,
    banded: bool = False,
    columns: int | None = None,
    room: float = 0.2,
    marks: Mapping[int, Sequence[tuple[float, str]]] | None = None,
) -> View | None:
    """The panels as a view; None where nothing was measured.

    Args:
        sides: name and cells of each.
        name: of the benchmark.
        grid: what stands on the axes.
        known: :func:`points` of the sides, where they are known.
        banded: draw the range over launches.
        columns: panels beside each other; all when None.
        room: share of the height above and below each panel, where there are several rows of them.
        marks: by panel: places on the x axis that are marked by a vertical line, with their words.
    """
    known = points(sides, grid) if known is None else known
    panels = known.panels
    data: list[dict[str, Any]] = []
    cells = {}
    for at, panel in enumerate(panels, start=1):
        axes = {} if at == 1 else {"xaxis": f"x{at}", "yaxis": f"y{at}"}
        for index, (side, _) in enumerate(sides):
            table = known.known.get((side, panel))
            if table is not None:
                shown = not any(trace.get("legendgroup") == f"s{index}" and trace["showlegend"] for trace in data)
                data += _traces(index, side, table, grid, axes, shown, banded)
                cells[len(data) - 1] = [*table["cell"]]
    if not data:
        return None
    xs = sorted({int(x) for panel in panels for side, _ in sides for x in _index(known, side, panel)})
    axis = theme.size_axis(xs) if grid.across == SIZE else theme.count_axis(xs, COUNTED[grid.across])
    value = theme.value_axis(
        _title(grid, sides[0][0]), values=[*theme.drawn(data), *([1.0] * (grid.quantity == "ratio"))]
    )
    beside = columns or len(panels)
    layout = theme.layout(height=262, margin={"l": 64, "r": 16, "t": 26, "b": 46}, hovermode="x")
    layout["legend"] = {**layout["legend"], "y": -0.26}
    layout |= _axes(len(panels), beside, axis | theme.thinned(axis, 3 if beside > 3 else 5), value, room)
    layout["annotations"] = [
        *(_heads(panels, grid) if len(panels) > 1 else []),
        *_marks(panels, marks or {}, words=True),
    ]
    layout["shapes"] = _marks(panels, marks or {}, words=False)
    narrow_columns = 2 if len(panels) > 1 else 1
    deep = -(-len(panels) // narrow_columns)
    narrow = _axes(len(panels), narrow_columns, axis | theme.thinned(axis, 2), value)
    narrow |= {"annotations": layout["annotations"], "height": 96 + 176 * deep + 22 * len(sides)}
    narrow["legend"] = {**layout["legend"], "y": -0.5 / deep}
    layout["meta"] = {"narrow": narrow}
    if grid.quantity == "time" and not banded:
        layout["meta"]["switch"] = _switch(sides, known, panels)
    axis_words = "over message size" if grid.across == SIZE else f"over {COUNTED[grid.across]}"
    by = COUNTED[grid.over] if grid.across == SIZE else "message size"
    return View(
        "multiples",
        f"{name} {axis_words}, by {by}",
        "Medians over launches",
        {"data": data, "layout": layout},
        cells=cells,
        **_table(known, [name for name, _ in sides]),
    )


def _switch(sides: Sides, known: Points, panels: Sequence[int]) -> list[dict[str, Any]]:
    """What else the same lines can show: for each quantity its name, unit, y axis and the ``y`` of each trace."""
    rates, ratios = [], []
    base = sides[0][0]
    for panel in panels:
        first = known.middles(panel).get(base, {})
        for table in (known.known.get((side, panel)) for side, _ in sides):
            if table is not None:
                rates.append(theme.numbers(table["rate"]))
                places = zip(map(int, table.index), map(float, table["middle"]), strict=True)
                ratios.append([y / first[x] if first.get(x) else None for x, y in places])
    shown: list[dict[str, Any]] = []
    for quantity, name, lines, more in (("busbw", "bus bandwidth", rates, []), ("ratio", "ratio", ratios, [1.0])):
        values = [y for line in lines for y in line if y is not None]
        if values and (quantity == "busbw" or len(sides) > 1):
            title = _title(Grid(known.grid.over, quantity=quantity), base)
            axis = theme.value_axis(title, values=[*values, *more])
            shown.append({"name": name, "unit": QUANTITIES[quantity], "axis": axis, "y": lines})
    return shown


def _table(known: Points, sides: Sequence[str]) -> dict[str, Any]:
    """The numbers of all panels: a line for each place, a column for each side."""
    grid = known.grid
    lines = []
    for panel in sorted({panel for _, panel in known.known}):
        middles = known.middles(panel)
        for x in sorted({x for values in middles.values() for x in values}):
            values = [middles.get(side, {}).get(x) for side in sides]
            lines.append((grid.said(grid.panel, panel), grid.said(grid.across, x), *values))
    across = "size" if grid.across == SIZE else COUNTED[grid.across]
    by = COUNTED[grid.over] if grid.across == SIZE else "size"
    return view_table((by, across, *(f"{side} {QUANTITIES[grid.quantity]}" for side in sides)), lines)


def _index(known: Points, side: str, panel: int) -> Sequence[int]:
    table = known.known.get((side, panel))
    return [] if table is None else [int(x) for x in table.index]


def _title(grid: Grid, first: str) -> str:
    if grid.quantity == "busbw":
        return "bus bandwidth (GB/s)"
    return "time (µs)" if grid.quantity == "time" else f"time over {theme.label(first, 24)}'s"


def _traces(
    index: int,
    side: str,
    table: pd.DataFrame,
    grid: Grid,
    axes: Mapping[str, str],
    shown: bool,
    banded: bool,
) -> list[dict[str, Any]]:
    x = [int(value) for value in table.index]
    unit = QUANTITIES[grid.quantity]
    group = {"legendgroup": f"s{index}", **axes}
    line = theme.series(
        index,
        theme.label(side),
        x,
        theme.numbers(table["middle"]),
        f"%{{text}}: %{{y:.4g}} {unit}",
        text=[grid.said(grid.across, value) for value in x],
        showlegend=shown,
        **group,
    )
    line["marker"] = {**line["marker"], "size": 4}
    if not banded or table["launches"].max() < 2:
        return [line]
    band = {
        "type": "scatter",
        "mode": "lines",
        "fill": "toself",
        "fillcolor": theme.faint(theme.colour(index)),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
        "name": theme.label(side),
        "x": [*x, *reversed(x)],
        "y": [*theme.numbers(table["low"]), *reversed(theme.numbers(table["high"]))],
        **group,
    }
    return [band, line]


def _axes(count: int, columns: int, x: Mapping[str, Any], y: Mapping[str, Any], room: float = 0.2) -> dict[str, Any]:
    """Axes of so many panels, so many beside each other; all have the same range and zoom together."""
    deep = -(-count // columns)
    axes: dict[str, Any] = {}
    for at in range(count):
        column, row = at % columns, at // columns
        number = "" if at == 0 else str(at + 1)
        wide, high = 1 / columns, 1 / deep
        gap, above = (0.02 if columns > 2 else 0.05), (0.0 if deep == 1 else room / deep)
        linked: dict[str, Any] = {} if at == 0 else {"matches": "x"}
        linked |= {} if at + columns >= count else {"title": {"text": ""}}
        axes[f"xaxis{number}"] = {
            **x,
            **linked,
            "domain": [wide * column, wide * (column + 1) - gap],
            "anchor": f"y{number}",
        }
        axes[f"yaxis{number}"] = {
            **y,
            "domain": [1 - high * (row + 1) + above, 1 - high * row - above],
            "anchor": f"x{number}",
            **({"showticklabels": True} if column == 0 else {"showticklabels": False, "title": {"text": ""}}),
        }
    return axes


def _inside(at: int) -> dict[str, str]:
    number = "" if at == 0 else str(at + 1)
    return {"xref": f"x{number}", "yref": f"y{number} domain"}


def _heads(panels: Sequence[int], grid: Grid) -> list[dict[str, Any]]:
    heads = []
    for at, panel in enumerate(panels):
        place = _inside(at)
        text = grid.said(grid.panel, panel)
        place["xref"] += " domain"
        heads.append({"text": text, "showarrow": False, **place, "x": 0.5, "y": 1, "yanchor": "bottom"})
    return heads


def _marks(
    panels: Sequence[int], marks: Mapping[int, Sequence[tuple[float, str]]], words: bool
) -> list[dict[str, Any]]:
    """Vertical lines, or their words. On a logarithmic axis a shape has the value, an annotation its logarithm."""
    drawn: list[dict[str, Any]] = []
    for at, panel in enumerate(panels):
        for number, (x, text) in enumerate(marks.get(panel, ())):
            if words:
                shift = {"x": math.log10(x), "y": 0.02 + 0.1 * (number % 3), "xanchor": "left", "yanchor": "bottom"}
                drawn.append(
                    {"text": theme.escape(text), "showarrow": False, "font": {"size": 11}, **_inside(at), **shift}
                )
            else:
                line = {"color": theme.GREY, "dash": "dash", "width": 1.5}
                drawn.append({"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line, **_inside(at)})
    return drawn

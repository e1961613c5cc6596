"""Lines over message size or over ranks: curves, and panels beside each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

import pandas as pd

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.series import Panel, SeriesLine, word
from omb_py.dashboards.base.theme import Layout, Trace
from omb_py.dashboards.base.view import TableFields, View, records, table
from omb_py.dashboards.figures.fastest import RATES, UNITS, finding
from omb_py.dashboards.figures.panels import PanelPlaces, axis_names, heading
from omb_py.results.units import listed, size_text

_BANDWIDTH = {
    "bandwidth": ("value", "bandwidth"),
    "algbw": ("algbw_gbps", "algorithm bandwidth"),
    "busbw": ("busbw_gbps", "bus bandwidth"),
}
"""Name of a bandwidth -> its column and what it is called; the first is what a benchmark of bandwidth prints."""
COUNTED = {"ranks": "ranks", "devices": "GPUs"}
"""Columns over which a time can be drawn, and what they are called."""
SIZE = "size_bytes"


@dataclass(frozen=True)
class _Quantity:
    column: str
    title: str
    unit: str
    timed: bool

    @property
    def ends(self) -> tuple[str, str] | None:
        """The columns between which a band is drawn."""
        if self.timed:
            return "p25_us", "p75_us"
        return ("value_low", "value_high") if self.column == "value" else None

    def amount(self, value: float) -> str:
        return theme.duration(value) if self.timed else f"{theme.amount(value)} {self.unit}"


def _quantity(panel: Panel, name: str) -> _Quantity:
    unit = str(panel.rows["unit"].iloc[0])
    unit = "µs" if unit == "us" else unit
    timed = name == "time" or (name == "auto" and unit == "µs")
    if name in _BANDWIDTH and panel.sized:
        column, what = _BANDWIDTH[name]
        return _Quantity(column, f"{what} (GB/s)", "GB/s", False)
    if timed:
        mean = f"{series.PRINTED_MEAN} " if panel.sized and series.statistic(panel.rows) == series.PRINTED_MEAN else ""
        return _Quantity("median_us", f"{mean}time (µs)", "µs", True)
    return _Quantity("value", f"{panel.rows['metric'].iloc[0]} ({unit})" if panel.sized else unit, unit, False)


def curves(panel: Panel, quantity: str = "auto", bound: pd.DataFrame | None = None) -> View:
    """Median line, quartile band and p99 of each series over message size; a point a series where there is no size.

    Args:
        panel: cells that belong on one axis.
        quantity: ``time``, ``algbw``, ``busbw``, or ``auto``, which is the one that the benchmark prints. A rate has no
            quartiles of its own: its band is the range over launches.
        bound: lower bound of the time, columns ``size_bytes`` and ``lower_us``; drawn where times are.
    """
    shown = _quantity(panel, quantity)
    draw = _draw_over_size if panel.sized else _draw_without_size
    data, layout, cells = draw(panel, shown, bound)
    return View(
        "curves",
        _finding(panel, shown),
        series.caption(panel.rows),
        {"data": data, "layout": layout},
        notes=_notes(panel.lines, shown),
        cells=cells,
        **_curves_table(panel.lines, shown),
    )


Drawn = tuple[list[Trace], Layout, dict[int, list[str]]]
"""Traces, layout, and the cells of the traces."""


def _draw_over_size(panel: Panel, shown: _Quantity, bound: pd.DataFrame | None) -> Drawn:
    places = theme.sizes_on_axis(panel.sizes)
    if len(panel.lines) > series.MOST_LINES:
        return _draw_many_over_size(panel, shown, places)
    data: list[Trace] = []
    cells = {}
    for index, line in enumerate(panel.lines):
        data += _line(line, index, shown, places, len(panel.lines) > 1)
        ids = series.cell_ids(line.cells)
        cells[len(data) - 1] = [ids[int(size)] for size in line.over[SIZE].dropna()]
    if shown.timed and bound is not None and len(bound):
        part = bound[bound[SIZE].isin(places)].sort_values(SIZE)
        lower = theme.lower_bound([places[int(s)] for s in part[SIZE]], theme.numbers(part["lower_us"]))
        data.append({**lower, "showlegend": True})
    axis = theme.value_axis(shown.title, shown.timed, theme.list_values(data))
    return data, theme.layout(xaxis=theme.size_axis(panel.sizes), yaxis=axis, showlegend=len(data) > 1), cells


def _draw_many_over_size(panel: Panel, shown: _Quantity, places: Mapping[int, float]) -> Drawn:
    """Many series: the fastest and the slowest over all sizes have a colour and their name, the others are grey."""
    every = {
        line.label: {int(s): v for s, v in zip(over[SIZE], theme.numbers(over[shown.column]), strict=True) if v}
        for line in panel.lines
        for over in [line.over[line.over[SIZE].notna()]]
    }
    middle = {size: median([at[size] for at in every.values() if size in at]) for at in every.values() for size in at}
    rank = {label: sum(math.log(v / middle[s]) for s, v in at.items()) / max(1, len(at)) for label, at in every.items()}
    ordered = sorted(rank, key=lambda label: rank[label] if shown.timed else -rank[label])
    colours = {ordered[0]: theme.colour(0), ordered[-1]: theme.VERDICT_LOOKS["SLOWER"][0]}
    data, words = [], []
    for label in sorted(every, key=lambda label: label in colours):
        values, colour = sorted(every[label].items()), colours.get(label)
        x, y = [places[size] for size, _ in values], [value for _, value in values]
        look = {"line": {"color": colour or theme.GREY, "width": 2.5 if colour else 1}, "opacity": 1 if colour else 0.5}
        hover = f"%{{text}}: %{{y:.4g}} {shown.unit}<extra>%{{fullData.name}}</extra>"
        text = [size_text(size) for size, _ in values]
        data.append(theme.scatter("lines", x, y, theme.label(label), **look, text=text, hovertemplate=hover))
        if colour and values:
            where = {"x": math.log10(x[-1]), "y": math.log10(y[-1]) if shown.timed else y[-1], "xanchor": "right"}
            above = {"yanchor": "bottom" if (label == ordered[-1]) == shown.timed else "top", "showarrow": False}
            words.append({"text": theme.label(label), "font": {"color": colour}, **where, **above})
    axis = theme.value_axis(shown.title, shown.timed, theme.list_values(data))
    layout = theme.layout(xaxis=theme.size_axis(panel.sizes), yaxis=axis, showlegend=False, annotations=words)
    return data, layout, {}


def _draw_without_size(panel: Panel, shown: _Quantity, bound: pd.DataFrame | None) -> Drawn:
    """Barriers and start-up have no size."""
    data = []
    for index, line in enumerate(panel.lines):
        at, name = line.over.iloc[0], theme.label(line.label or panel.name)
        middle, low, high = (theme.finite(at[column]) for column in (shown.column, *(shown.ends or ())))
        bar = {**theme.error_bars([middle], [low], [high], 2), "color": theme.colour(index)}
        look = {"marker": {**theme.marker(index), "size": 10}, "error_x": bar}
        hover = "%{x:.4g} " + shown.unit + "<extra>%{y}</extra>"
        data.append(theme.scatter("markers", [middle], [name], name, **look, hovertemplate=hover))
    axis = theme.value_axis(shown.title, log=False)
    names = {"type": "category", "autorange": "reversed"}
    layout = theme.layout(xaxis=axis, yaxis=names, showlegend=False, height=110 + 34 * len(panel.lines))
    return data, layout, {index: [*series.cell_ids(line.cells).values()] for index, line in enumerate(panel.lines)}


def _line(line: SeriesLine, index: int, shown: _Quantity, places: dict[int, float], several: bool) -> list[Trace]:
    over = line.over[line.over[SIZE].notna()]
    x = [places[int(s)] for s in over[SIZE]]
    label = theme.label(line.label) or "median"
    group = {"legendgroup": f"s{index}"}
    traces: list[Trace] = []
    if shown.ends:
        ends = zip(x, *(theme.numbers(over[name]) for name in shown.ends), strict=True)
        known = [(at, low, high) for at, low, high in ends if low is not None and high is not None]
        if known:
            name = f"{label} {'quartiles' if shown.timed else 'launches'}"
            traces.append(theme.band(index, name, *map(list, zip(*known, strict=True)), **group))
    tail = [(a, b) for a, b in zip(x, theme.numbers(over["p99_us"]), strict=True) if b is not None]
    if shown.timed and tail:
        look: Layout = {"line": {"color": theme.colour(index), "dash": theme.TAIL, "width": 1}, "showlegend": False}
        hover = "p99 %{y:.4g} µs<extra>%{fullData.name}</extra>"
        at, times = map(list, zip(*tail, strict=True))
        traces.append(theme.scatter("lines", at, times, f"{label} p99", **look, **group, hovertemplate=hover))
    hover = f"%{{text}}: %{{y:.4g}} {shown.unit}"
    more = {"text": [size_text(s) for s in over[SIZE]], "showlegend": several, **group}
    return [*traces, theme.series(index, label, x, theme.numbers(over[shown.column]), hover, **more)]


def _finding(panel: Panel, shown: _Quantity) -> str:
    name, lines, column = panel.name, panel.lines, shown.column
    measured = {line.label: over for line in lines if len(over := line.over[line.over[column].notna()])}
    peaks = {label: over.iloc[int(over[column].to_numpy(dtype=float).argmax())] for label, over in measured.items()}
    if len(lines) == 1:
        if not measured:
            return f"{name}: nothing was timed"
        ((label, over),) = measured.items()
        if len(over) == 1:
            return f"{name}: {shown.amount(peaks[label][column])}"
        if shown.timed:
            ends = (f"{theme.duration(at[column])} at {size_text(at[SIZE])}" for at in (over.iloc[0], over.iloc[-1]))
            return f"{name}: {', '.join(ends)}"
        return f"{name}: up to {shown.amount(peaks[label][column])}, at {size_text(peaks[label][SIZE])}"
    if shown.timed and panel.sized:
        ranks = [word("ranks", count) for count in panel.rows["ranks"].unique()]
        subject = ", ".join(part for part in name.split(", ") if part not in ranks)
        known = points([(line.label, line.cells) for line in lines], PanelGrid())
        return finding(subject, known) if known.known else f"{name}: {len(lines)} series"
    if shown.timed:
        return f"{name}: " + ", ".join(f"{theme.duration(at[column])} with {label}" for label, at in peaks.items())
    best, *others = sorted(peaks, key=lambda label: (-peaks[label][column], label))
    text = f"{name}: up to {shown.amount(peaks[best][column])} with {best}, at {size_text(peaks[best][SIZE])}"
    return text + (f"; {shown.amount(peaks[others[0]][column])} with {others[0]}" if others else "")


_TIMED_NOTES = {
    "median": "Line: median over launches of each launch's median; band: quartiles; dotted: p99.",
    series.PRINTED_MEAN: "Line: median over launches of the mean that the tool printed; there are no samples.",
    f"median, {series.PRINTED_MEAN}": "Line: median over launches of each launch's median, with band of quartiles and "
    "dotted p99, or of the mean that a tool printed. A mean may lie above its median: they are no like with like.",
}


def _statistics(lines: Sequence[SeriesLine]) -> str:
    return ", ".join(sorted({series.statistic(line.cells) for line in lines}))


def _notes(lines: Sequence[SeriesLine], shown: _Quantity) -> tuple[str, ...]:
    notes = ["Line: median over launches" + ("; band: range over launches." if shown.ends else ".")]
    notes = [_TIMED_NOTES[_statistics(lines)]] if shown.timed else notes
    if len(lines) > series.MOST_LINES:
        notes = ["Lines: medians over launches. Coloured: the fastest and the slowest over all sizes."]
    limited = [line.label for line in lines if line.over["limited"].fillna(False).astype(bool).any()]
    if limited:
        who = f" ({listed(limited)})" if all(limited) else ""
        notes.append(
            f"Mostly the skew of the synchronisation was measured at some sizes{who}: "
            "--process-sync roundtime gives times on a common clock."
        )
    return tuple(notes)


def _curves_table(lines: Sequence[SeriesLine], shown: _Quantity) -> TableFields:
    names = [(f"median {shown.unit}", shown.column)]
    if shown.timed:
        quantiles = (("p25 µs", "p25_us"), ("p75 µs", "p75_us"), ("p99 µs", "p99_us"))
        names = [(f"{_statistics(lines)} µs", "median_us"), *quantiles]
    elif shown.ends:
        names += [("lowest launch", "value_low"), ("highest launch", "value_high")]
    several = len(lines) > 1
    rows = [
        [*([line.label] if several else []), size_text(r.size_bytes), *values, int(r.launches)]
        for line in lines
        for r in records(line.over)
        for values in [[theme.finite(getattr(r, column)) for _, column in names]]
    ]
    return table((*(["series"] if several else []), "size", *(head for head, _ in names), "launches"), rows)


def spread(values: Sequence[int], most: int) -> list[int]:
    """At most so many of the values, first and last among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


MOST_PANELS = 6
_SIDE, _RATE = "side", "busbw_gbps"
_TALL, _TALL_NARROW = 190, 124
"""Pixels of a panel, and on a phone."""
BETWEEN = 0.35
"""Room between two rows of panels, in heights of a panel."""
_MARGIN = {"l": 64, "r": 16, "t": 44, "b": 46}
Sides = Sequence[tuple[str, "pd.DataFrame"]]
"""Name and cells of each side, in the order of their colours."""


@dataclass(frozen=True)
class PanelGrid:
    """What the panels show."""

    over: str = "ranks"
    """``ranks`` or ``devices``: what is counted."""
    across: str = SIZE
    """The column on the x axes: :data:`SIZE`, or `over`; each panel is one value of the other."""
    quantity: str = "time"
    """``time``, ``bandwidth`` (of rows in MB/s), ``algbw``, ``busbw``; ``ratio``: the time over that of the first side,
    of a message where a side has but printed bandwidths; ``kept``: the bus bandwidth as a percentage of the side's own
    at the fewest ranks or GPUs, over which it is drawn."""

    @property
    def panel(self) -> str:
        """The column whose values have panels."""
        return self.over if self.across == SIZE else SIZE

    def text(self, column: str, value: int) -> str:
        """``64 KiB``, ``8 ranks``, ``8 GPUs``."""
        if column == SIZE:
            return size_text(value) if value else "no size"
        if not value:
            return f"{COUNTED[column]} unknown"
        return f"{value} GPUs" if column == "devices" else word(column, value)

    def axis_title(self, first: str) -> str:
        """The title of the y axes; `first` is the side that ratios are of."""
        if self.quantity in _BANDWIDTH:
            return f"{_BANDWIDTH[self.quantity][1]} ({UNITS[self.quantity]})"
        if self.quantity == "kept":
            return f"% of the fewest {COUNTED[self.over]}"
        return "time (µs)" if self.quantity == "time" else f"time over {theme.label(first, 16)}'s"

    @property
    def column(self) -> str:
        """The column of the store that it shows."""
        own = "busbw" if self.quantity == "kept" else self.quantity
        return _BANDWIDTH[own][0] if own in _BANDWIDTH else "median_us"

    def value_axis(self, first: str, values: Sequence[object]) -> Layout:
        """The y axis of some values, the same in all panels: linear for rates, but where each panel is a size, and
        sizes lie decades apart."""
        more = [1.0] if self.quantity == "ratio" else []
        linear = self.quantity == "kept" or (self.quantity in RATES and self.across == SIZE)
        return theme.value_axis(self.axis_title(first), not linear, [*values, *more])


@dataclass(frozen=True)
class Points:
    """What each side has in each panel."""

    grid: PanelGrid
    known: Mapping[tuple[str, int], pd.DataFrame]
    """(side, panel) -> ``middle``, ``low``, ``high`` over launches, ``launches``, the ``values`` of the launches in
    the quantity's unit, the median bus bandwidth ``rate`` in GB/s and ``cell``, by the value on the x axis; ratios keep
    the times as values."""

    def of(self, panel: int) -> dict[str, pd.DataFrame]:
        """What each side has in one panel."""
        return {side: rows for (side, at), rows in self.known.items() if at == panel}

    def middles(self, panel: int) -> dict[str, dict[int, float]]:
        """The medians of each side in one panel, by the value on the x axis."""
        return self._middles.get(panel, {})

    @cached_property
    def _middles(self) -> dict[int, dict[str, dict[int, float]]]:
        """Of every panel: a figure asks for each cell."""
        every: dict[int, dict[str, dict[int, float]]] = {}
        for (side, panel), rows in self.known.items():
            places = dict(zip(map(int, rows.index), map(float, rows["middle"]), strict=True))
            every.setdefault(panel, {})[side] = places
        return every

    @property
    def panels(self) -> list[int]:
        """Values with a panel: at most :data:`MOST_PANELS`, those with several points on the x axis if there are."""
        several = sorted({panel for (_, panel), rows in self.known.items() if len(rows) > 1})
        return spread(several or sorted({panel for _, panel in self.known}), MOST_PANELS)


def points(sides: Sides, grid: PanelGrid) -> Points:
    """Medians over launches of each side in each panel, with the range of the launches."""
    known: dict[tuple[str, int], pd.DataFrame] = {}
    column, sides = grid.column, _select_quantity(sides, grid.quantity)
    by = [_SIDE, grid.panel, grid.across]
    # one grouping of all sides: pandas takes as long for a few rows as for thousands
    rows = series.concat(
        cells.loc[
            # a printed 0.00 is no number, but one too small for the digits that were printed
            cells[grid.over].notna() & (cells[column] > 0).fillna(False), [*by[1:], *{column, _RATE}, *series.CELL]
        ].assign(**{_SIDE: number})
        for number, (_, cells) in enumerate(sides)
    )
    rows = rows.assign(**{SIZE: rows[SIZE].fillna(0).astype("int64")})
    rows = rows[rows[SIZE] > 0] if grid.across == SIZE else rows
    if rows.duplicated([*by, "launch_id"]).any():  # a soak measures a cell several times, and its launch is one sample
        each = {name: "median" for name in {column, _RATE}} | {"comparability_key": "last"}
        rows = rows.groupby([*by, "launch_id"], sort=False, observed=True).agg(each).reset_index()
    groups = rows.groupby(by, sort=True)
    middle = groups[column].agg(["median", "min", "max", "count"]).astype("float64")
    middle.columns = ["middle", "low", "high", "launches"]
    last = rows.drop_duplicates(by, keep="last").sort_values(by)  # in the order of the groups
    whole = middle.assign(cell=series.cell_names(last), values=groups[column].agg(list), rate=groups[_RATE].median())
    start, counts = 0, whole.groupby(level=[0, 1], sort=True).size()
    for number, panel, count in zip(*map(counts.index.get_level_values, (0, 1)), counts, strict=True):
        part = whole.iloc[start : start + count]
        known[sides[number][0], int(panel)] = part.set_axis(part.index.get_level_values(2))
        start += count
    if grid.quantity == "kept":
        known = {at: _share_of_first(rows) for at, rows in known.items()}
    return Points(grid, _divide_by_first(known, sides[0][0]) if grid.quantity == "ratio" else known)


def _select_quantity(sides: Sides, quantity: str) -> Sides:
    """The sides with the rows and the times that a quantity is taken from."""
    if quantity == "bandwidth":
        return [(name, rows[series.in_rate(rows)]) for name, rows in sides]
    if quantity != "ratio" or not any((series.in_rate(rows) & rows["median_us"].isna()).any() for _, rows in sides):
        return sides
    # a median is of a window of messages: no like of the time of one
    return [
        (name, rows.assign(median_us=rows["median_us"].mask(series.in_rate(rows), series.message_times(rows))))
        for name, rows in sides
    ]


def _share_of_first(rows: pd.DataFrame) -> pd.DataFrame:
    """Each value as a percentage of the first, which is that of the fewest ranks or GPUs."""
    names = ["middle", "low", "high"]
    return rows.assign(**{name: 100 * rows[name] / rows["middle"].iloc[0] for name in names})


def _divide_by_first(known: Mapping[tuple[str, int], pd.DataFrame], first: str) -> dict[tuple[str, int], pd.DataFrame]:
    """Each side over the first one, where both were measured; the range is that of the side alone."""
    ratios = {}
    for (name, panel), rows in known.items():
        base = known.get((first, panel))
        both = rows.index[:0] if base is None else rows.index.intersection(base.index)
        if base is not None and len(both):
            scaled = {column: rows.loc[both, column] / base.loc[both, "middle"] for column in ("middle", "low", "high")}
            ratios[name, panel] = rows.loc[both].assign(**scaled)
    return ratios


def multiples(
    sides: Sides,
    name: str,
    known: Points,
    *,
    banded: bool = False,
    columns: int | None = None,
    marks: Mapping[int, Sequence[tuple[float, str]]] | None = None,
) -> View | None:
    """Panels of the same axes beside each other, a line a side; None where nothing was measured.

    `known` are the :func:`points` of the sides; with `banded` the range over launches is drawn. `columns` panels stand
    beside each other, by default all; `marks` are places on the x axis of a panel with a vertical line and its words.
    """
    grid, panels, marks = known.grid, known.panels, marks or {}
    data: list[Trace] = []
    cells = {}
    for number, panel in enumerate(panels):
        axes = dict(zip(("xaxis", "yaxis"), axis_names(number), strict=True)) if number else {}
        for index, (side, _) in enumerate(sides):
            rows = known.known.get((side, panel))
            if rows is not None:
                shown = not any(trace.get("legendgroup") == f"s{index}" and trace["showlegend"] for trace in data)
                data += _panel_traces(index, side, rows, grid, {**axes, "legendgroup": f"s{index}"}, shown, banded)
                cells[len(data) - 1] = [*rows["cell"]]
    if not data:
        return None
    xs = sorted({int(x) for panel in panels for rows in known.of(panel).values() for x in rows.index})
    x = theme.size_axis(xs)
    if grid.across != SIZE:
        x = {"type": "log", "title": {"text": COUNTED[grid.across]}, **theme.ticks(xs, map(str, xs))}
    y = grid.value_axis(sides[0][0], theme.list_values(data))
    beside = columns or len(panels)
    wide = PanelPlaces(len(panels), beside, _TALL, round(BETWEEN * _TALL), 0.02 if beside > 2 else 0.05)
    middling = PanelPlaces(len(panels), min(3, beside), _TALL, round(BETWEEN * _TALL), 0.04)
    slim = PanelPlaces(len(panels), min(2, len(panels)), _TALL_NARROW, round(0.5 * _TALL_NARROW), 0.05)
    around = _MARGIN["t"] + _MARGIN["b"]
    layout = theme.layout(height=wide.pixels + around, margin=_MARGIN, hovermode="x")
    layout["legend"] = {**layout["legend"], "y": -58 / wide.pixels}
    ticks = (
        2 if beside > 5 and max(map(len, x.get("ticktext", [""]))) > 5 else 3 if beside > 3 else 5
    )  # 256 KiB is wide
    layout |= wide.axes_alike(x | theme.thinned(x, ticks), y)
    heads = [heading(grid.text(grid.panel, panel), number) for number, panel in enumerate(panels)]
    middle = math.sqrt(xs[0] * xs[-1])
    marked = [_draw_marks(number, marks.get(panel, ()), middle) for number, panel in enumerate(panels)]
    layout["annotations"] = [*(heads if len(panels) > 1 else []), *(word for words, _ in marked for word in words)]
    layout["shapes"] = [line for _, lines in marked for line in lines]
    narrow = slim.axes_alike(x | theme.thinned(x, 2), y)
    narrow |= {"annotations": layout["annotations"], "height": slim.pixels + around + 22 * len(sides)}
    narrow["legend"] = {**layout["legend"], "y": -56 / slim.pixels}
    fewer = middling.axes_alike(x | theme.thinned(x, 3), y) | {"height": middling.pixels + around}
    fewer["legend"] = {**layout["legend"], "y": -58 / middling.pixels}
    layout["meta"] = {"narrow": narrow, "middle": fewer}
    if grid.quantity == "time" and not banded:
        layout["meta"]["switch"] = _switch(sides, known, panels)
    over, by = ("message size", COUNTED[grid.over]) if grid.across == SIZE else (COUNTED[grid.across], "message size")
    spec = {"data": data, "layout": layout}
    numbers = _panels_table(known, [name for name, _ in sides])
    return View("multiples", f"{name} over {over}, by {by}", "Medians over launches", spec, cells=cells, **numbers)


def _switch(sides: Sides, known: Points, panels: Sequence[int]) -> list[Layout]:
    """What else the same lines can show: for each quantity its name, unit, y axis and the ``y`` of each trace."""
    rates, ratios = [], []
    base = sides[0][0]
    for panel in panels:
        middles = known.middles(panel)
        first = middles.get(base, {})
        for side, rows in ((side, known.known.get((side, panel))) for side, _ in sides):
            if rows is not None:
                rates.append(theme.numbers(rows["rate"]))
                ratios.append([y / first[x] if first.get(x) else None for x, y in middles[side].items()])
    shown: list[Layout] = []
    for quantity, name, lines in (("busbw", "bus bandwidth", rates), ("ratio", "ratio", ratios)):
        values = [y for line in lines for y in line if y is not None]
        if values and (quantity == "busbw" or len(sides) > 1):
            axis = PanelGrid(known.grid.over, quantity=quantity).value_axis(base, values)
            shown.append({"name": name, "unit": UNITS[quantity], "axis": axis, "y": lines})
    return shown


def _panels_table(known: Points, sides: Sequence[str]) -> TableFields:
    grid = known.grid
    lines = []
    for panel in sorted({panel for _, panel in known.known}):
        middles = known.middles(panel)
        for x in sorted({x for values in middles.values() for x in values}):
            values = [middles.get(side, {}).get(x) for side in sides]
            lines.append((grid.text(grid.panel, panel), grid.text(grid.across, x), *values))
    heads = [COUNTED.get(column, "size") for column in (grid.panel, grid.across)]
    return table((*heads, *(f"{side} {UNITS[grid.quantity]}" for side in sides)), lines)


def _panel_traces(
    index: int, side: str, rows: pd.DataFrame, grid: PanelGrid, where: Layout, shown: bool, banded: bool
) -> list[Trace]:
    x, label = [int(value) for value in rows.index], theme.label(side)
    hover = f"%{{text}}: %{{y:.4g}} {UNITS[grid.quantity]}"
    more = {"text": [grid.text(grid.across, value) for value in x], "showlegend": shown, **where}
    line = theme.series(index, label, x, theme.numbers(rows["middle"]), hover, **more)
    line["marker"] = {**line["marker"], "size": 4}
    if not banded or rows["launches"].max() < 2:
        return [line]
    return [theme.band(index, label, x, theme.numbers(rows["low"]), theme.numbers(rows["high"]), **where), line]


def _draw_marks(number: int, marks: Sequence[tuple[float, str]], middle: float) -> tuple[list[Layout], list[Layout]]:
    """Words and lines of a panel's marks; words stand towards the `middle` of the axis, where there is room."""
    x_name, y_name = axis_names(number)
    place = {"xref": x_name, "yref": f"{y_name} domain"}
    look = {"showarrow": False, "font": {"size": 11}, "yanchor": "top", **place}
    line = {"type": "line", "y0": 0, "y1": 1, "line": {"color": theme.GREY, "dash": "dash", "width": 1.5}}
    # on a logarithmic axis a shape has the value, an annotation its logarithm
    words = [
        {
            "text": theme.escape(text),
            **look,
            "x": math.log10(x),
            "y": 0.99 - 0.1 * (at % 3),
            "xanchor": "right" if x > middle else "left",
        }
        for at, (x, text) in enumerate(marks)
    ]
    return words, [{**line, "x0": x, "x1": x, **place} for x, _ in marks]

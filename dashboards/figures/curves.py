"""Series over message size or over ranks: curves, panels beside each other, times over their lower bound."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.series import Line, word
from omb_py.dashboards.base.view import View, listed, plural, records, table
from omb_py.results.analysis.cost_model import OFFLOAD
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd

QUANTITIES = ("auto", "time", "algbw", "busbw")
"""Quantities that curves can show; ``auto`` is the one that the benchmark prints."""
_BANDWIDTH = {"algbw": ("algbw_gbps", "algorithm bandwidth"), "busbw": ("busbw_gbps", "bus bandwidth")}


def curves(
    rows: pd.DataFrame,
    name: str = "",
    quantity: str = "auto",
    bound: pd.DataFrame | None = None,
    lines: Sequence[Line] | None = None,
) -> View:
    """Median line, quartile band and p99 of each series over message size.

    Args:
        rows: cells of one panel (:func:`omb_py.dashboards.base.series.panels`), columns of the store.
        name: what the panel is called; the benchmark when empty.
        quantity: one of :data:`QUANTITIES`. A rate has no quartiles of its own: its band is the range over launches.
        bound: lower bound of the time, columns ``size_bytes`` and ``lower_us``; drawn where times are.
        lines: the series of the rows, where they are known.

    Raises ValueError on an unknown quantity.
    """
    if quantity not in QUANTITIES:
        raise ValueError(f"unknown quantity {quantity!r}: valid: {', '.join(QUANTITIES)}")
    name = name or str(rows["benchmark"].iloc[0])
    lines = series.lines(rows) if lines is None else lines
    unit = str(rows["unit"].iloc[0])
    timed = quantity == "time" or (quantity == "auto" and unit == "us")
    if not _sized(rows):
        return _sizeless(rows, lines, name, timed, unit)
    middle = "time (µs)" if series.statistic(rows) != series.PRINTED_MEAN else f"{series.PRINTED_MEAN} time (µs)"
    column, title = ("median_us", middle) if timed else ("value", f"{rows['metric'].iloc[0]} ({_spoken(unit)})")
    if quantity in _BANDWIDTH:
        column, what = _BANDWIDTH[quantity]
        title = f"{what} (GB/s)"
    sizes = series.sizes(rows)
    places = theme.sizes_on_axis(sizes)
    data: list[dict[str, Any]] = []
    cells = {}
    for index, line in enumerate(lines):
        data += _line(line, index, column, timed, places, len(lines) > 1)
        ids = series.cell_ids(line.cells)
        cells[len(data) - 1] = [ids[int(size)] for size in line.over["size_bytes"].dropna()]
    if timed and bound is not None and len(bound):
        data.append(_bound(bound, places))
    spec = {
        "data": data,
        "layout": theme.layout(
            xaxis=theme.size_axis(sizes),
            yaxis=theme.value_axis(title, timed, theme.drawn(data)),
            showlegend=len(data) > 1,
        ),
    }
    unit_text = "µs" if timed else "GB/s" if quantity in _BANDWIDTH else _spoken(unit)
    return View(
        "curves",
        _finding(name, lines, column, timed, unit_text),
        series.caption(rows),
        spec,
        notes=_notes(lines, timed, column == "value"),
        cells=cells,
        **_curves_table(lines, column, timed, unit_text),
    )


COUNTED = {"ranks": "ranks", "devices": "GPUs"}
"""Columns over which a time can be drawn, and what they are called."""


def scaling(rows: pd.DataFrame, name: str = "", sizes: Sequence[int] | None = None, over: str = "ranks") -> View | None:
    """Median time over the number of ranks or GPUs, a line a message size; None with fewer than two such numbers.

    Args:
        rows: cells of one benchmark that differ in `over` and ``size_bytes``; of several libraries each has its
            own lines, so give one.
        name: what it is called; the benchmark when empty.
        sizes: at most six sizes to draw; spread over all when None.
        over: one of :data:`COUNTED`.
    """
    what = COUNTED[over]
    rows = rows[rows[over].notna()]
    counts = sorted({int(n) for n in rows[over].unique()})
    if len(counts) < 2:
        return None
    name = name or str(rows["benchmark"].iloc[0])
    median = rows.groupby(["size_bytes", over], dropna=False)["median_us"].median().reset_index()
    full = median.groupby("size_bytes")[over].nunique()
    known = sorted(int(s) for s in full[full > 1].index)
    if not known:
        return None
    chosen = [s for s in sizes if s in known] if sizes else spread(known, series.MOST_LINES)
    data, cells = [], {}
    for index, size in enumerate(chosen):
        part = median[median["size_bytes"] == size].sort_values(over)
        ids = series.cell_ids(rows[rows["size_bytes"] == size], over)
        cells[index] = [ids[int(count)] for count in part[over]]
        label, hover = size_text(size) if size else "no data", "%{x} " + what + ": %{y:.4g} µs"
        data.append(theme.series(index, label, [int(n) for n in part[over]], theme.numbers(part["median_us"]), hover))
    low, high = counts[0], counts[-1]
    growth: dict[int, float] = {}
    for size in chosen:
        times = median[median["size_bytes"] == size].set_index(over)["median_us"]
        if low in times.index and high in times.index and times[low]:
            growth[size] = float(times[high] / times[low])
    growths = ", ".join(
        f"{theme.amount(g)}× at {size_text(s)}" for s, g in (list(growth.items())[:1] + list(growth.items())[1:][-1:])
    )
    title = f"{name}: from {low} to {high} {what} the time grows {growths}" if growths else f"{name}: time over {what}"
    axes = {
        "xaxis": theme.count_axis(counts, what),
        "yaxis": theme.value_axis("time (µs)", values=theme.drawn(data)),
    }
    drawn = median[median["size_bytes"].isin(chosen)]
    return View(
        "scaling",
        title,
        series.caption(rows),
        {"data": data, "layout": theme.layout(**axes, showlegend=True)},
        cells=cells,
        **table(
            ("size", what, "median µs"),
            [(size_text(r.size_bytes), int(getattr(r, over)), theme.finite(r.median_us)) for r in records(drawn)],
        ),
    )


def _sized(rows: pd.DataFrame) -> bool:
    return bool((rows["size_bytes"].fillna(0) > 0).any())


def _spoken(unit: str) -> str:
    return "µs" if unit == "us" else unit


def spread(values: Sequence[int], most: int) -> list[int]:
    """At most so many of the values, first and last among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def _line(
    line: Line, index: int, column: str, timed: bool, places: dict[int, float], several: bool
) -> list[dict[str, Any]]:
    over = line.over[line.over["size_bytes"].notna()]
    x = [places[int(s)] for s in over["size_bytes"]]
    label = theme.label(line.label) or "median"
    group = {"legendgroup": f"s{index}"}
    colour = theme.colour(index)
    low, high = ("p25_us", "p75_us") if timed else ("value_low", "value_high")
    unit = "µs" if timed else "%{yaxis.title.text}"
    traces: list[dict[str, Any]] = []
    if timed or column == "value":
        band = [
            (a, b, c)
            for a, b, c in zip(x, theme.numbers(over[low]), theme.numbers(over[high]), strict=True)
            if b is not None and c is not None
        ]
        if band:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "fill": "toself",
                    "fillcolor": theme.faint(colour),
                    "line": {"width": 0},
                    "hoverinfo": "skip",
                    "showlegend": False,
                    **group,
                    "name": f"{label} {'quartiles' if timed else 'launches'}",
                    "x": [a for a, _, _ in band] + [a for a, _, _ in reversed(band)],
                    "y": [b for _, b, _ in band] + [c for _, _, c in reversed(band)],
                }
            )
    if timed:
        tail = [(a, b) for a, b in zip(x, theme.numbers(over["p99_us"]), strict=True) if b is not None]
        if tail:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": f"{label} p99",
                    "showlegend": False,
                    **group,
                    "x": [a for a, _ in tail],
                    "y": [b for _, b in tail],
                    "line": {"color": colour, "dash": theme.TAIL, "width": 1},
                    "hovertemplate": "p99 %{y:.4g} µs<extra>%{fullData.name}</extra>",
                }
            )
    traces.append(
        theme.series(
            index,
            label,
            x,
            theme.numbers(over[column]),
            f"%{{text}}: %{{y:.4g}} {unit if timed else ''}",
            text=[size_text(s) for s in over["size_bytes"]],
            showlegend=several,
            **group,
        )
    )
    return traces


def _bound(bound: pd.DataFrame, places: dict[int, float]) -> dict[str, Any]:
    part = bound[bound["size_bytes"].isin(places)].sort_values("size_bytes")
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "lower bound",
        "showlegend": True,
        "x": [places[int(s)] for s in part["size_bytes"]],
        "y": theme.numbers(part["lower_us"]),
        "line": {"color": theme.GREY, "dash": theme.BOUND, "width": 1.5},
        "hovertemplate": "at least %{y:.4g} µs<extra>lower bound</extra>",
    }


def _sizeless(rows: pd.DataFrame, lines: Sequence[Line], name: str, timed: bool, unit: str) -> View:
    """Barriers and start-up have no size: a point a series, with quartiles."""
    column = "median_us" if timed else "value"
    data = []
    for index, line in enumerate(lines):
        at = line.over.iloc[0]
        middle = theme.finite(at[column])
        low, high = (theme.finite(at[c]) for c in (("p25_us", "p75_us") if timed else ("value_low", "value_high")))
        bar: dict[str, Any] = {}
        if middle is not None and low is not None and high is not None:
            ends = {"array": [high - middle], "arrayminus": [middle - low]}
            bar["error_x"] = {"type": "data", "symmetric": False, "color": theme.colour(index), **ends}
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [middle],
                "y": [theme.label(line.label or name)],
                "marker": {**theme.marker(index), "size": 10},
                "name": theme.label(line.label or name),
                **bar,
                "hovertemplate": "%{x:.4g} " + _spoken(unit) + "<extra>%{y}</extra>",
            }
        )
    axis = theme.value_axis("time (µs)" if timed else _spoken(unit), log=False)
    layout = theme.layout(
        xaxis=axis, yaxis={"type": "category", "autorange": "reversed"}, showlegend=False, height=110 + 34 * len(lines)
    )
    unit_text = "µs" if timed else _spoken(unit)
    return View(
        "curves",
        _finding(name, lines, column, timed, unit_text),
        series.caption(rows),
        {"data": data, "layout": layout},
        notes=_notes(lines, timed),
        cells={index: [*series.cell_ids(line.cells).values()] for index, line in enumerate(lines)},
        **_curves_table(lines, column, timed, unit_text),
    )


def _amount(value: float, unit: str) -> str:
    return theme.duration(value) if unit == "µs" else f"{theme.amount(value)} {unit}"


def _finding(name: str, lines: Sequence[Line], column: str, timed: bool, unit: str) -> str:
    if len(lines) == 1:
        over = lines[0].over[lines[0].over[column].notna()]
        if not len(over):
            return f"{name}: nothing was timed"
        first, last = over.iloc[0], over.iloc[-1]
        if len(over) == 1:
            return f"{name}: {_amount(first[column], unit)}"
        if timed:
            return (
                f"{name}: {theme.duration(first[column])} at {size_text(first['size_bytes'])}, "
                f"{theme.duration(last[column])} at {size_text(last['size_bytes'])}"
            )
        top = over.iloc[int(over[column].to_numpy(dtype=float).argmax())]
        return f"{name}: up to {theme.amount(top[column])} {unit}, at {size_text(top['size_bytes'])}"
    known = _ranges(lines, column)
    if not known:
        return f"{name}: {len(lines)} series without a size in common"
    if timed:
        return f"{name}: {_leader(known, max(int(line.over['launches'].max()) for line in lines))}"
    peaks = {
        label: max((v[1], size) for size, at in known.items() for who, v in at.items() if who == label)
        for label in {who for at in known.values() for who in at}
    }
    leader, *others = sorted(peaks, key=lambda label: (-peaks[label][0], label))
    most, size = peaks[leader]
    text = f"{name}: up to {theme.amount(most)} {unit} with {leader}, at {size_text(size)}"
    return text + (f"; {theme.amount(peaks[others[0]][0])} {unit} with {others[0]}" if others else "")


Ranges = dict[int, dict[str, tuple[float, float, float]]]
"""Size in bytes -> label of a series -> lowest, median and highest of its launches."""


def _ranges(lines: Sequence[Line], column: str) -> Ranges:
    """What each series has at the sizes that most of them have."""
    spread_known = f"{column}_low" in lines[0].over
    known: Ranges = {}
    for line in lines:
        over = line.over
        ends = (f"{column}_low", column, f"{column}_high") if spread_known else (column, column, column)
        for size, *values in zip(over["size_bytes"], *(theme.numbers(over[name]) for name in ends), strict=True):
            low, middle, high = values
            if low is not None and middle is not None and high is not None and low > 0:
                known.setdefault(0 if theme.absent(size) else int(size), {})[line.label] = (low, middle, high)
    most = max((len(at) for at in known.values()), default=0)
    return {size: at for size, at in sorted(known.items()) if len(at) == most > 1}


def _leader(known: Ranges, launches: int) -> str:
    """``shortest times with A, at 3 of 7 sizes beyond the range of the launches; up to 2× apart at 64 KiB``."""
    wins: Counter[str] = Counter()
    for at in known.values():
        first, second, *_ = sorted(at, key=lambda label: at[label][1])
        if all(at[first][2] < low for label, (low, *_) in at.items() if label != first) and at[first] != at[second]:
            wins[first] += 1
    wide, size = max((max(v[1] for v in at.values()) / min(v[1] for v in at.values()), s) for s, at in known.items())
    far = f"; up to {theme.amount(wide)}× apart at {size_text(size)}" if wide > 1.005 and size else ""
    if launches < 2:
        return f"one launch each, whose spread is unknown, so none is called the fastest{far}"
    if not wins:
        return f"no series is faster beyond the range of the launches{far}"
    leader, count = wins.most_common(1)[0]
    where = "at every size" if count == len(known) else f"at {count} of {plural(len(known), 'size')}"
    return f"shortest times with {leader}, {where} beyond the range of the launches{far}"


_TIMED_NOTES = {
    "median": "Line: median over launches of each launch's median; band: quartiles; dotted: p99.",
    series.PRINTED_MEAN: "Line: median over launches of the mean that the tool printed; there are no samples.",
    f"median, {series.PRINTED_MEAN}": "Line: median over launches of each launch's median, with band of quartiles and "
    "dotted p99, or of the mean that a tool printed. A mean may lie above its median: they are no like with like.",
}


def _notes(lines: Sequence[Line], timed: bool, banded: bool = True) -> tuple[str, ...]:
    notes = [
        _TIMED_NOTES[", ".join(sorted({series.statistic(line.cells) for line in lines}))]
        if timed
        else "Line: median over launches" + ("; band: range over launches." if banded else ".")
    ]
    limited = [line.label for line in lines if line.over["limited"].fillna(False).astype(bool).any()]
    if limited:
        who = f" ({listed(limited)})" if all(limited) else ""
        notes.append(
            f"Mostly the skew of the synchronisation was measured at some sizes{who}: "
            "--process-sync roundtime gives times on a common clock."
        )
    return tuple(notes)


def _curves_table(lines: Sequence[Line], column: str, timed: bool, unit: str) -> dict[str, Any]:
    if timed:
        middle = ", ".join(sorted({series.statistic(line.cells) for line in lines}))
        names: tuple[tuple[str, str], ...] = (
            (f"{middle} µs", "median_us"),
            ("p25 µs", "p25_us"),
            ("p75 µs", "p75_us"),
            ("p99 µs", "p99_us"),
        )
    else:
        names = ((f"median {unit}", column),)
        names += (("lowest launch", "value_low"), ("highest launch", "value_high")) if column == "value" else ()
    several = len(lines) > 1
    rows = [
        [
            *((line.label,) if several else ()),
            size_text(getattr(r, "size_bytes")),  # noqa: B009
            *(theme.finite(getattr(r, c)) for _, c in names),
            int(r.launches),
        ]
        for line in lines
        for r in records(line.over)
    ]
    return table((*(("series",) if several else ()), "size", *(n for n, _ in names), "launches"), rows)


MOST_PANELS = 6
UNITS = {"time": "µs", "busbw": "GB/s", "ratio": "×"}
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
        return {side: points_of for (side, at), points_of in self.known.items() if at == panel}

    def middles(self, panel: int) -> dict[str, dict[int, float]]:
        """The medians of each side in one panel, by the value on the x axis."""
        return {
            side: dict(zip(map(int, points_of.index), map(float, points_of["middle"]), strict=True))
            for side, points_of in self.of(panel).items()
        }

    @property
    def panels(self) -> list[int]:
        """Values with a panel: at most :data:`MOST_PANELS`, those with several points on the x axis if there are."""
        several = sorted({panel for (_, panel), points_of in self.known.items() if len(points_of) > 1})
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
    for (name, panel), points_of in known.items():
        base = known.get((first, panel))
        if base is None:
            continue
        both = points_of.index.intersection(base.index)
        middle = base.loc[both, "middle"]
        if len(both):
            scaled = {column: points_of.loc[both, column] / middle for column in ("middle", "low", "high")}
            ratios[name, panel] = points_of.loc[both].assign(**scaled)
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
            points_of = known.known.get((side, panel))
            if points_of is not None:
                shown = not any(trace.get("legendgroup") == f"s{index}" and trace["showlegend"] for trace in data)
                data += _traces(index, side, points_of, grid, axes, shown, banded)
                cells[len(data) - 1] = [*points_of["cell"]]
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
        **_panels_table(known, [name for name, _ in sides]),
    )


def _switch(sides: Sides, known: Points, panels: Sequence[int]) -> list[dict[str, Any]]:
    """What else the same lines can show: for each quantity its name, unit, y axis and the ``y`` of each trace."""
    rates, ratios = [], []
    base = sides[0][0]
    for panel in panels:
        first = known.middles(panel).get(base, {})
        for points_of in (known.known.get((side, panel)) for side, _ in sides):
            if points_of is not None:
                rates.append(theme.numbers(points_of["rate"]))
                places = zip(map(int, points_of.index), map(float, points_of["middle"]), strict=True)
                ratios.append([y / first[x] if first.get(x) else None for x, y in places])
    shown: list[dict[str, Any]] = []
    for quantity, name, lines, more in (("busbw", "bus bandwidth", rates, []), ("ratio", "ratio", ratios, [1.0])):
        values = [y for line in lines for y in line if y is not None]
        if values and (quantity == "busbw" or len(sides) > 1):
            title = _title(Grid(known.grid.over, quantity=quantity), base)
            axis = theme.value_axis(title, values=[*values, *more])
            shown.append({"name": name, "unit": UNITS[quantity], "axis": axis, "y": lines})
    return shown


def _panels_table(known: Points, sides: Sequence[str]) -> dict[str, Any]:
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
    return table((by, across, *(f"{side} {UNITS[grid.quantity]}" for side in sides)), lines)


def _index(known: Points, side: str, panel: int) -> Sequence[int]:
    points_of = known.known.get((side, panel))
    return [] if points_of is None else [int(x) for x in points_of.index]


def _title(grid: Grid, first: str) -> str:
    if grid.quantity == "busbw":
        return "bus bandwidth (GB/s)"
    return "time (µs)" if grid.quantity == "time" else f"time over {theme.label(first, 24)}'s"


def _traces(
    index: int,
    side: str,
    points_of: pd.DataFrame,
    grid: Grid,
    axes: Mapping[str, str],
    shown: bool,
    banded: bool,
) -> list[dict[str, Any]]:
    x = [int(value) for value in points_of.index]
    unit = UNITS[grid.quantity]
    group = {"legendgroup": f"s{index}", **axes}
    line = theme.series(
        index,
        theme.label(side),
        x,
        theme.numbers(points_of["middle"]),
        f"%{{text}}: %{{y:.4g}} {unit}",
        text=[grid.said(grid.across, value) for value in x],
        showlegend=shown,
        **group,
    )
    line["marker"] = {**line["marker"], "size": 4}
    if not banded or points_of["launches"].max() < 2:
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
        "y": [*theme.numbers(points_of["low"]), *reversed(theme.numbers(points_of["high"]))],
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


def roofline(rows: pd.DataFrame, bound: pd.DataFrame, name: str, lines: Sequence[Line]) -> View | None:
    """Measured time over its lower bound, a line a series; None where no size has a bound.

    Args:
        rows: cells of one panel with one number of ranks.
        bound: ``size_bytes``, ``lower_us``.
        name: what the panel is called.
        lines: its series.
    """
    lower = {int(size): float(us) for size, us in zip(bound["size_bytes"], bound["lower_us"], strict=True) if us > 0}
    drawn: list[tuple[str, list[tuple[int, float, float]]]] = []
    for line in lines:
        over = line.over[line.over["size_bytes"].fillna(0) > 0]
        pairs = [(int(s), float(t)) for s, t in zip(over["size_bytes"], over["median_us"], strict=True) if t and t > 0]
        points = [(size, time, time / lower[size]) for size, time in pairs if size in lower]
        if points:
            drawn.append((line.label or "measured", points))
    if not drawn:
        return None
    sizes = sorted({size for _, points in drawn for size, _, _ in points})
    places = theme.sizes_on_axis(sizes)
    data: list[dict[str, Any]] = [
        theme.series(
            i,
            theme.label(label),
            [places[size] for size, _, _ in points],
            [ratio for _, _, ratio in points],
            "%{text}: %{y:.3g}× the lower bound",
            text=[size_text(size) for size, _, _ in points],
        )
        for i, (label, points) in enumerate(drawn)
    ]
    every = [(ratio, size, label) for label, points in drawn for size, _, ratio in points]
    near, far = min(every), max(every)

    def who(label: str) -> str:
        return f" with {label}" if len(drawn) > 1 else ""

    title = f"{name}: nearest to its lower bound at {size_text(near[1])}{who(near[2])}, {_times(near[0])}×"
    title += f"; farthest at {size_text(far[1])}{who(far[2])}, {_times(far[0])}×" if far[1:] != near[1:] else ""
    beaten = any(ratio < 1 / OFFLOAD for ratio, _, _ in every)
    at_one = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "layer": "below"}
    axis = theme.value_axis("measured / lower bound (ratio)", values=[*theme.drawn(data), 1.0])
    return View(
        "roofline",
        title,
        series.caption(rows),
        {
            "data": data,
            "layout": theme.layout(
                xaxis=theme.size_axis(sizes),
                yaxis=axis,
                shapes=[{**at_one, "line": {"width": 1, "color": theme.GREY}}],
                showlegend=len(drawn) > 1,
            ),
        },
        notes=(
            "At 1 nothing could be faster that sends messages between ranks as fast as latency in this store does.",
            *(["Below 1: the network or shared memory did the work (offload)."] if beaten else []),
        ),
        **table(
            ("series", "size", "measured µs", "lower bound µs", "ratio"),
            [
                (label, size_text(size), time, lower[size], ratio)
                for label, points in drawn
                for size, time, ratio in points
            ],
        ),
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 100 else theme.amount(ratio)

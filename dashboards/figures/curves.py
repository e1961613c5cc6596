"""Latency and bandwidth over message size, and time over ranks: tables in, views out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.series import Line
from omb_py.dashboards.base.view import View, listed, plural, records, table
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
        **_table(lines, column, timed, unit_text),
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
        **_table(lines, column, timed, unit_text),
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


def _table(lines: Sequence[Line], column: str, timed: bool, unit: str) -> dict[str, Any]:
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

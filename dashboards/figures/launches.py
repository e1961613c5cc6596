"""One cell over its launches and over its calls, and its time over days."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.theme import Layout, Record, Trace
from omb_py.dashboards.base.view import SEPARATOR, View, frame_table, plural, records, table
from omb_py.results.units import size_text

MOST_CALLS = 1500
"""Calls drawn one by one; a longer trace is drawn as lowest and highest of each bin."""
MOST_WORDS = 6
"""Changes of the environment that are named in a figure; the table has all."""


def distribution(cell: pd.DataFrame) -> View:
    """A cell launch by launch in order of time: boxes of its samples (``samples_us``)."""
    cell = cell.sort_values("started_at")
    data: list[Trace] = []
    rows = []
    for index, row in enumerate(records(cell), start=1):
        samples = _samples(row.samples_us)
        box = _box(index, row, samples)
        data.append(box)
        middle = (box["median"][0], box["q1"][0], box["q3"][0], theme.finite(row.p99_us), theme.finite(row.iterations))
        rows.append((index, str(row.launch_id), str(row.started_at)[:19], *middle, row.stop_reason))
    layout = theme.layout(
        showlegend=False,
        xaxis={"title": {"text": "launch, in order of time"}, "dtick": max(1, len(cell) // 8)},
        yaxis=theme.value_axis("time (µs)", values=theme.list_values(data)),
    )
    statistic = series.statistic(cell)
    boxes = "Boxes: quartiles, with whiskers to the 5th and 95th percentile of each launch's samples."
    heads = ("launch", "id", "started (UTC)", f"{statistic} µs", "p25 µs", "p75 µs", "p99 µs", "samples", "stop")
    return View(
        "distribution",
        f"{cell_name(cell)}: {_spread_text([float(m) for m in cell['median_us'].dropna()], statistic)}",
        series.caption(cell),
        {"data": data, "layout": layout},
        notes=() if statistic == series.PRINTED_MEAN else (boxes,),
        **table(heads, rows),
    )


def _samples(values: Any) -> NDArray[np.float64]:
    return np.asarray(values if values is not None else [], dtype=np.float64)


def _box(index: int, row: Record, samples: NDArray[np.float64]) -> Trace:
    """The box of a launch, of its quartiles where it has no samples."""
    low, quarter, median, three, high = (
        (theme.finite(getattr(row, c)) for c in ("min_us", "p25_us", "median_us", "p75_us", "max_us"))
        if not samples.size
        else (float(v) for v in np.percentile(samples, (5, 25, 50, 75, 95)))
    )
    name = f"launch {index}"
    box = {"q1": [quarter], "median": [median], "q3": [three], "lowerfence": [low], "upperfence": [high]}
    look = {"marker": {"color": theme.colour(index - 1)}, "line": {"width": 1.5}, "hoverinfo": "y+name"}
    return {"type": "box", "x": [index], "name": name, **box, **look}


def trace(launch: pd.DataFrame) -> View | None:
    """Every call of one cell in one launch (a row of the store with ``samples_us``), in order; None where the samples
    were not kept."""
    row = launch.iloc[0]
    samples = _samples(row["samples_us"])
    if not samples.size:
        return None
    x, y = thinned(samples, MOST_CALLS)
    median = float(np.median(samples))
    slow = int((samples > 2 * median).sum())
    call = {"showlegend": False, "marker": {"size": 4, "color": theme.colour(0), "opacity": 0.7}}
    dashed = {"line": {"color": theme.colour(1), "dash": "dash", "width": 1.5}, "hoverinfo": "skip"}
    data: list[Trace] = [
        theme.scatter("markers", x, y, "call", **call, hovertemplate="call %{x}: %{y:.4g} µs<extra></extra>"),
        theme.scatter("lines", [0, len(samples) - 1], [median, median], "median", **dashed),
    ]
    layout = theme.layout(
        showlegend=False, xaxis={"title": {"text": "call"}, "nticks": 6}, yaxis=theme.value_axis("time (µs)", values=y)
    )
    ess, stop = theme.finite(row["ess"]), row["stop_reason"]
    known = f"; {ess:.0f} of them count as independent" if ess is not None else ""
    count = f"{plural(slow, 'call')} of {len(samples)}"
    thin = (f"Drawn: lowest and highest of each of {MOST_CALLS // 2} bins.",) if len(samples) > MOST_CALLS else ()
    return View(
        "trace",
        f"{cell_name(launch)}: {count} took over twice the median of {theme.duration(median)}",
        f"{series.caption(launch)} · stopped by {stop or 'its count'}{known}",
        {"data": data, "layout": layout},
        notes=("Dashed: the median.", *thin),
        **table(("call", "µs"), zip(x, y, strict=True)),
    )


def thinned(samples: ArrayLike, most: int) -> tuple[list[int], list[float]]:
    """At most `most` calls (index, value): of each bin the lowest and the highest, so that no outlier is lost."""
    values = np.asarray(samples, dtype=np.float64)
    if values.size <= most:
        return list(range(values.size)), [float(v) for v in values]
    keep: set[int] = set()
    for part in np.array_split(np.arange(values.size), most // 2):
        keep |= {int(part[values[part].argmin()]), int(part[values[part].argmax()])}
    chosen = sorted(keep)
    return chosen, [float(values[i]) for i in chosen]


def cell_name(cell: pd.DataFrame) -> str:
    """``allreduce 8 KiB``."""
    size = theme.finite(cell["size_bytes"].iloc[0])
    return str(cell["benchmark"].iloc[0]) + (f" {size_text(size)}" if size else "")


def _spread_text(times: list[float], statistic: str) -> str:
    if len(times) < 2:
        return f"one launch, {statistic} {theme.duration(times[0])}" if times else "nothing was timed"
    low, high = min(times), max(times)
    apart = f"{100 * (high / low - 1):.0f} %" if low > 0 else "much"
    span = f"{theme.duration(low)} to {theme.duration(high)}"
    return f"the {statistic}s of {len(times)} launches lie {apart} apart, {span}"


def history(points: pd.DataFrame, name: str, change: str = "") -> View:
    """Launch medians in order of time, with steps, and a line where the environment changed.

    `points` has a row a launch: ``started_at``, ``median_us``; where known ``environment_key``, ``library_version``,
    and ``level_us``, the level of the step that the launch belongs to. `change` is what happened, for the title.
    """
    points = points.sort_values("started_at")
    times = [str(t) for t in points["started_at"]]
    medians, marker = theme.numbers(points["median_us"]), {**theme.marker(0), "size": 8}
    hover = "%{x}: %{y:.4g} µs<extra></extra>"
    data = [theme.scatter("markers", times, medians, "launch", marker=marker, hovertemplate=hover)]
    levels = points["level_us"].nunique() if "level_us" in points else 0
    if levels:
        look = {"line": {**theme.line(1), "shape": "hv"}, "hoverinfo": "skip"}
        data.append(theme.scatter("lines", times, theme.numbers(points["level_us"]), "level", **look))
    changes = _changes(points)
    moved = [times[at] for at in changes]
    positive = [v for v in medians if v]
    far = f", {theme.duration(min(positive))} to {theme.duration(max(positive))}" if positive else ""
    launches = plural(len(points), "launch")
    steps = f"no change in {launches}" if levels == 1 else plural(levels - 1, "step")
    parts = [series.common(points), f"{launches}, {plural(len(moved), 'change')} of the environment"]
    layout = theme.layout(
        shapes=[theme.line_at(time, dash="dot") for time in moved],
        annotations=[_change_word(points, at, number) for number, at in enumerate(changes[:MOST_WORDS])],
        showlegend=bool(levels),
        xaxis={"title": {"text": "start (UTC)"}, "nticks": 4, "tickangle": 0},
        yaxis=theme.value_axis("median time (µs)", values=theme.list_values(data)),
    )
    return View(
        "history",
        f"{name}: {change or (steps if levels else f'{launches}{far}')}",
        SEPARATOR.join(filter(None, parts)),
        {"data": data, "layout": layout},
        notes=("Dotted: software, hardware or settings changed.",) if moved else (),
        cells={0: series.cell_names(points) if {*series.CELL} <= {*points.columns} else []},
        **frame_table(points, _HEADS, ("started_at", "library_version", "environment_key")),
    )


def _changes(points: pd.DataFrame) -> list[int]:
    """Places of the launches in another environment than the one before; imported launches have no key."""
    keys = list(points["environment_key"]) if "environment_key" in points else []
    known = [at for at in range(1, len(keys)) if not (theme.absent(keys[at]) or theme.absent(keys[at - 1]))]
    return [at for at in known if keys[at] != keys[at - 1]]


def _change_word(points: pd.DataFrame, at: int, number: int) -> Layout:
    """What changed and when, at the line of a change: ``5.0.8, 2026-11-02``."""
    look = {"xref": "x", "yref": "paper", "showarrow": False, "xanchor": "left", "yanchor": "top", "font": {"size": 11}}
    before, after = (points.iloc[place] for place in (at - 1, at))
    version, started = after.get("library_version"), str(after["started_at"])
    what = "environment" if theme.absent(version) or version == before.get("library_version") else str(version)
    text = theme.escape(f"{what}, {started[:10]}")
    return {**look, "text": text, "x": started, "y": 1 - 0.07 * (number % 3)}


_HEADS = {
    "started_at": "started (UTC)",
    "median_us": "median µs",
    "level_us": "level µs",
    "library_version": "version",
    "environment_key": "environment",
}

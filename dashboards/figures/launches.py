"""One cell over its launches and over its calls, and its time over days."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import SEPARATOR, View, plural, records, table
from omb_py.engine.measuring.statistics import supports
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

MOST_POINTS = 200
"""Points of a distribution in a page: quantiles, not samples."""
MOST_CALLS = 1500
"""Calls drawn one by one; a longer trace is drawn as lowest and highest of each bin."""
_PERCENTS = (1.0, 10.0, 50.0, 90.0, 99.0, 99.9)


def distribution(cell: pd.DataFrame) -> View:
    """A cell launch by launch in order of time, and beside it the share of samples below a time.

    Args:
        cell: the rows of one cell, one a launch, with ``samples_us``; columns of the store.

    The axis of shares is that of the normal distribution, so that tails can be read; a share is drawn only where a
    launch has samples enough to support it.
    """
    import numpy as np
    from scipy.special import ndtri

    cell = cell.sort_values("started_at")
    data: list[dict[str, Any]] = []
    rows = []
    for index, row in enumerate(records(cell), start=1):
        samples = np.asarray(row.samples_us if row.samples_us is not None else [], dtype=np.float64)
        colour = theme.colour(index - 1)
        name = f"launch {index}"
        low, quarter, median, three, high = (
            (theme.finite(getattr(row, c)) for c in ("min_us", "p25_us", "median_us", "p75_us", "max_us"))
            if not samples.size
            else (float(v) for v in np.percentile(samples, (5, 25, 50, 75, 95)))
        )
        data.append(
            {
                "type": "box",
                "x": [index],
                "q1": [quarter],
                "median": [median],
                "q3": [three],
                "lowerfence": [low],
                "upperfence": [high],
                "name": name,
                "legendgroup": name,
                "showlegend": False,
                "marker": {"color": colour},
                "line": {"width": 1.5},
                "hoverinfo": "y+name",
                "xaxis": "x",
                "yaxis": "y",
            }
        )
        if samples.size:
            shares = [q for q in np.linspace(0.001, 0.999, MOST_POINTS) if supports(samples.size, float(q))]
            values = np.quantile(samples, shares) if shares else []
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": name,
                    "legendgroup": name,
                    "xaxis": "x2",
                    "yaxis": "y2",
                    "x": theme.numbers(values),
                    "y": theme.numbers(ndtri(shares)),
                    "line": theme.line(index - 1),
                    "text": [f"{100 * q:.3g} %" for q in shares],
                    "hovertemplate": "%{text} below %{x:.4g} µs<extra>%{fullData.name}</extra>",
                }
            )
        rows.append(
            (
                index,
                str(row.launch_id),
                str(row.started_at)[:19],
                median,
                quarter,
                three,
                theme.finite(row.p99_us),
                theme.finite(row.iterations),
                row.stop_reason,
            )
        )
    ticks = [float(ndtri(p / 100)) for p in _PERCENTS]
    boxes, shares_drawn = ([t for t in data if t["type"] == kind] for kind in ("box", "scatter"))
    layout = theme.layout(
        showlegend=len(cell) > 1 and bool(shares_drawn),
        xaxis={"title": {"text": "launch, in order of time"}, "dtick": max(1, len(cell) // 8)},
        yaxis=theme.value_axis("time (µs)", values=theme.drawn(boxes)),
    )
    if shares_drawn:
        layout["xaxis"]["domain"] = [0, 0.45]
        layout["xaxis2"] = {
            **few(theme.value_axis("time (µs)", values=theme.drawn(shares_drawn, "x"))),
            "domain": [0.6, 1],
            "anchor": "y2",
        }
        layout["yaxis2"] = {
            "anchor": "x2",
            "title": {"text": "share of samples"},
            "tickmode": "array",
            "tickvals": ticks,
            "ticktext": [f"{p:g} %" for p in _PERCENTS],
            "range": [ticks[0] - 0.3, ticks[-1] + 0.3],
        }
    medians = [float(m) for m in cell["median_us"].dropna()]
    return View(
        "distribution",
        f"{cell_name(cell)}: {_spread_words(medians)}",
        series.caption(cell),
        {"data": data, "layout": layout},
        notes=("Boxes: quartiles, with whiskers to the 5th and 95th percentile of each launch's samples.",),
        **table(("launch", "id", "started (UTC)", "median µs", "p25 µs", "p75 µs", "p99 µs", "samples", "stop"), rows),
    )


def trace(launch: pd.DataFrame) -> View | None:
    """Every call of one cell in one launch, in order; None where the samples were not kept.

    Args:
        launch: one row of the store with ``samples_us``.
    """
    import numpy as np

    row = launch.iloc[0]
    samples = np.asarray(row["samples_us"] if row["samples_us"] is not None else [], dtype=np.float64)
    if not samples.size:
        return None
    x, y = thinned(samples, MOST_CALLS)
    median = float(np.median(samples))
    slow = int((samples > 2 * median).sum())
    lags = autocorrelation(samples, 20)
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": x,
            "y": y,
            "name": "call",
            "showlegend": False,
            "marker": {"size": 4, "color": theme.colour(0), "opacity": 0.7},
            "hovertemplate": "call %{x}: %{y:.4g} µs<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "x": [0, len(samples) - 1],
            "y": [median, median],
            "name": "median",
            "line": {"color": theme.colour(1), "dash": "dash", "width": 1.5},
            "hoverinfo": "skip",
        },
        {
            "type": "bar",
            "x": list(range(1, len(lags) + 1)),
            "y": theme.numbers(lags),
            "xaxis": "x2",
            "yaxis": "y2",
            "name": "autocorrelation",
            "showlegend": False,
            "marker": {"color": theme.GREY},
            "hovertemplate": "lag %{x}: %{y:.2f}<extra></extra>",
        },
    ]
    layout = theme.layout(
        showlegend=False,
        xaxis={"domain": [0, 0.68], "title": {"text": "call"}, "nticks": 6},
        yaxis=theme.value_axis("time (µs)", values=y),
        xaxis2={"domain": [0.82, 1], "anchor": "y2", "title": {"text": "lag (calls)"}, "nticks": 4},
        yaxis2={"anchor": "x2", "range": [-1, 1], "title": {"text": "autocorrelation"}, "nticks": 5},
    )
    ess, stop = theme.finite(row["ess"]), row["stop_reason"]
    known = f"; {ess:.0f} of them count as independent" if ess is not None else ""
    title = (
        f"{cell_name(launch)}: {plural(slow, 'call')} of {len(samples)} took over twice the median of "
        f"{theme.duration(median)}"
    )
    thin = (f"Drawn: lowest and highest of each of {MOST_CALLS // 2} bins.",) if len(samples) > MOST_CALLS else ()
    return View(
        "trace",
        title,
        f"{series.caption(launch)} · stopped by {stop or 'its count'}{known}",
        {"data": data, "layout": layout},
        notes=("Dashed: the median.", *thin),
        **table(("call", "µs"), zip(x, y, strict=True)),
    )


def thinned(samples: ArrayLike, most: int) -> tuple[list[int], list[float]]:
    """At most `most` calls (index, value): of each bin the lowest and the highest, so that no outlier is lost."""
    import numpy as np

    values = np.asarray(samples, dtype=np.float64)
    if values.size <= most:
        return list(range(values.size)), [float(v) for v in values]
    keep: set[int] = set()
    for part in np.array_split(np.arange(values.size), most // 2):
        keep |= {int(part[values[part].argmin()]), int(part[values[part].argmax()])}
    chosen = sorted(keep)
    return chosen, [float(values[i]) for i in chosen]


def autocorrelation(samples: ArrayLike, lags: int) -> list[float]:
    """Autocorrelation of sign(x - median) at lag 1 … `lags`, as the effective number of samples uses it."""
    import numpy as np

    signs = np.sign(np.asarray(samples, dtype=np.float64) - np.median(np.asarray(samples)))
    total = float((signs * signs).sum())
    if not total:
        return []
    return [float((signs[k:] * signs[:-k]).sum()) / total for k in range(1, min(lags, signs.size - 1) + 1)]


def few(axis: dict[str, Any], most: int = 4) -> dict[str, Any]:
    """The axis with at most so many ticks, where there is little room."""
    ticks = list(zip(axis.get("tickvals", ()), axis.get("ticktext", ()), strict=True))
    step = -(-len(ticks) // most) or 1
    return (
        {**axis, "tickvals": [v for v, _ in ticks[::step]], "ticktext": [t for _, t in ticks[::step]]}
        if ticks
        else axis
    )


def cell_name(cell: pd.DataFrame) -> str:
    """``allreduce 8 KiB``."""
    size = theme.finite(cell["size_bytes"].iloc[0])
    return str(cell["benchmark"].iloc[0]) + (f" {size_text(size)}" if size else "")


def _spread_words(medians: list[float]) -> str:
    if len(medians) < 2:
        return f"one launch, median {theme.duration(medians[0])}" if medians else "nothing was timed"
    low, high = min(medians), max(medians)
    apart = f"{100 * (high / low - 1):.0f} %" if low > 0 else "much"
    return f"the medians of {len(medians)} launches lie {apart} apart, {theme.duration(low)} to {theme.duration(high)}"


def history(points: pd.DataFrame, name: str, change: str = "") -> View:
    """Launch medians in order of time, with steps, and a line where the environment changed.

    Args:
        points: a row a launch: ``started_at``, ``median_us``; where known ``environment_key``, ``library_version``, and
            ``level_us``, the level of the step that the launch belongs to.
        name: which cell it is.
        change: what happened, for the title.
    """
    points = points.sort_values("started_at")
    times = [str(t) for t in points["started_at"]]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": times,
            "y": theme.numbers(points["median_us"]),
            "name": "launch",
            "marker": {**theme.marker(0), "size": 8},
            "hovertemplate": "%{x}: %{y:.4g} µs<extra></extra>",
        }
    ]
    levels = points["level_us"].nunique() if "level_us" in points else 0
    if levels:
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": times,
                "y": theme.numbers(points["level_us"]),
                "line": {**theme.line(1), "shape": "hv"},
                "name": "level",
                "hoverinfo": "skip",
            }
        )
    shapes, changes = [], 0
    keys = list(points["environment_key"]) if "environment_key" in points else []
    for at in range(1, len(keys)):
        # imported launches have no key
        if not (theme.absent(keys[at]) or theme.absent(keys[at - 1])) and keys[at] != keys[at - 1]:
            changes += 1
            shapes.append(
                {
                    "type": "line",
                    "xref": "x",
                    "yref": "paper",
                    "x0": times[at],
                    "x1": times[at],
                    "y0": 0,
                    "y1": 1,
                    "line": {"width": 1, "dash": "dot", "color": theme.GREY},
                }
            )
    medians = [v for v in theme.numbers(points["median_us"]) if v]
    far = f", {theme.duration(min(medians))} to {theme.duration(max(medians))}" if medians else ""
    steps = f"no change in {plural(len(points), 'launch')}" if levels == 1 else plural(levels - 1, "step")
    moved = f"{plural(changes, 'change')} of the environment"
    finding = change or (steps if levels else f"{plural(len(points), 'launch')}{far}")
    shown = [c for c in ("started_at", "median_us", "level_us", "library_version", "environment_key") if c in points]
    return View(
        "history",
        f"{name}: {finding}",
        SEPARATOR.join(filter(None, [series.common(points), f"{plural(len(points), 'launch')}, {moved}"])),
        {
            "data": data,
            "layout": theme.layout(
                shapes=shapes,
                showlegend=bool(levels),
                xaxis={"title": {"text": "start (UTC)"}, "nticks": 4, "tickangle": 0},
                yaxis=theme.value_axis("median time (µs)", values=theme.drawn(data)),
            ),
        },
        notes=("Dotted: software, hardware or settings changed.",) if changes else (),
        cells={0: [f"{launch}/{key}" for launch, key in _named(points)]},
        **table(
            [_HEADS.get(c, c) for c in shown],
            [
                [
                    theme.finite(v) if c.endswith("_us") else "" if theme.absent(v) else str(v)
                    for c, v in zip(shown, row, strict=True)
                ]
                for row in points[shown].itertuples(index=False)
            ],
        ),
    )


def _named(points: pd.DataFrame) -> Iterable[tuple[object, object]]:
    known = {"launch_id", "comparability_key"} <= {*points.columns}
    return zip(points["launch_id"], points["comparability_key"], strict=True) if known else ()


_HEADS = {
    "started_at": "started (UTC)",
    "median_us": "median µs",
    "level_us": "level µs",
    "library_version": "version",
    "environment_key": "environment",
}

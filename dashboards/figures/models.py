"""Fitted curves beside measured times, and steps of workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.theme import Layout, Record
from omb_py.dashboards.base.view import View, plural, records, table
from omb_py.results.units import listed, size_text


def model(measured: pd.DataFrame, segments: pd.DataFrame, name: str) -> View:
    """Measured times and the fit alpha + beta·size of each segment; the table says how far they lie apart.

    Args:
        measured: ``size_bytes``, ``median_us``, and where known ``lower_us``, the lower bound.
        segments: ``low_bytes``, ``high_bytes``, ``alpha_us``, ``beta_us_per_byte``; both ends belong to a segment.
        name: what was fitted.
    """
    measured = measured[measured["size_bytes"] > 0].sort_values("size_bytes")
    sizes = [int(s) for s in measured["size_bytes"]]
    values = theme.numbers(measured["median_us"])
    text, hover = [size_text(s) for s in sizes], "%{text}: %{y:.4g} µs<extra></extra>"
    data = [theme.scatter("markers", sizes, values, "measured", marker=theme.marker(0), text=text, hovertemplate=hover)]
    residual: list[float | None] = [None] * len(sizes)
    for index, part in enumerate(records(segments), start=1):
        inside = [i for i, s in enumerate(sizes) if part.low_bytes <= s <= part.high_bytes]
        fit = [float(part.alpha_us + part.beta_us_per_byte * sizes[i]) for i in inside]
        for i, expected in zip(inside, fit, strict=True):
            value = values[i]
            residual[i] = None if value is None or expected <= 0 else 100 * (value / expected - 1)
        data.append(theme.scatter("lines", [sizes[i] for i in inside], fit, _segment(part), line=theme.line(index)))
    lower = theme.numbers(measured["lower_us"]) if "lower_us" in measured else [None] * len(sizes)
    data += [theme.lower_bound(sizes, lower)] if any(v is not None for v in lower) else []
    axis = theme.value_axis("time (µs)", values=theme.list_values(data))
    layout = theme.layout(xaxis=theme.size_axis(sizes or [1]), yaxis=axis)
    efficiency = [None if v is None or not m else 100 * v / m for v, m in zip(lower, values, strict=True)]
    known = [e for e in efficiency if e is not None]
    off = [abs(r) for r in residual if r is not None]
    title = f"{name}: {plural(len(segments), 'segment')}" + (f", at most {max(off):.1f} % off the fit" if off else "")
    title += f"; {min(known):.0f} to {max(known):.0f} % of what the lower bound allows" if known else ""
    heads = ["size", "measured µs", "off the fit, %", *(["lower bound µs", "efficiency, %"] if known else [])]
    lines = zip(text, values, residual, *([lower, efficiency] if known else []), strict=True)
    caption = f"{plural(len(sizes), 'size')}; {listed(_segment(p) for p in records(segments))}"
    spec = {"data": data, "layout": layout}
    return View("model", title, caption, spec, **table(heads, lines))


def _segment(part: Record) -> str:
    rate = f"{1e-3 / part.beta_us_per_byte:.3g} GB/s" if part.beta_us_per_byte > 0 else "no bandwidth term"
    return f"from {size_text(part.low_bytes)}: {part.alpha_us:.3g} µs, {rate}"


_SIDE = ("ranks", "nodes", "backend", "library", "binding", "device")
_TIMES = ("compute_us", "exposed_us", "serial_us", "flight_us")
MOST = 24
"""Steps drawn in a figure; the table has all."""


def layouts(rows: pd.DataFrame) -> Iterator[tuple[View, pd.DataFrame]]:
    """A figure for each number of ranks and library: step time by layout, with the `rows` that it shows, cells of steps
    with maps as dicts."""
    for values, part in tidy(rows).groupby(list(_SIDE), dropna=False, sort=True, observed=True):
        side: dict[str, Any] = dict(zip(_SIDE, values, strict=True))
        known = {name: value for name, value in side.items() if not theme.absent(value)}
        who = ", ".join(str(known[name]) for name in ("backend", "library", "binding") if name in known)
        yield by_layout(part, f"{plural(int(known['ranks']), 'rank')}, {who}"), rows.loc[part["at"]]


def tidy(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a cell that has its times: ``workload``, ``compute_us`` and so on as columns; ``at``: its index."""
    cells = []
    for at, row in zip(rows.index, records(rows), strict=True):
        metrics, parameters = dict(row.metrics or {}), dict(row.parameters or {})
        if row.family == series.STEPS and "workload" in parameters and all(name in metrics for name in _TIMES):
            side = {name: getattr(row, name) for name in (*_SIDE, "launch_id")}
            times = {name: metrics[name] for name in _TIMES}
            cells.append({"at": at, "workload": parameters["workload"], **side, **times})
    return pd.DataFrame(cells, columns=["at", "workload", *_SIDE, "launch_id", *_TIMES])


def by_layout(steps: pd.DataFrame, name: str) -> View:
    """The step time of each workload of one side (:func:`tidy`), medians over launches: computing, then exposed
    communication; and the time of its calls alone."""
    middle = steps.groupby("workload", sort=True)[list(_TIMES)].median()
    middle["step_us"] = middle["compute_us"] + middle["exposed_us"]
    middle["launches"] = steps.groupby("workload")["launch_id"].nunique()
    middle = middle.reset_index()
    drawn = middle.head(MOST)
    names = _names(drawn["workload"])
    x = [v for r in records(drawn) for v in (theme.finite(r.compute_us), theme.finite(r.step_us), None)]
    y = [v for text in names for v in (text, text, None)]
    look: Layout = {"hoverinfo": "skip", "line": {"color": theme.GREY, "width": 6}}
    data = [theme.scatter("lines", x, y, "exposed communication", **look)]
    for index, (column, text) in enumerate(_DRAWN.items()):
        look = {"marker": {**theme.marker(index), "size": 9}}
        look["hovertemplate"] = f"%{{y}}: {text} %{{x:.4g}} µs<extra></extra>"
        data.append(theme.scatter("markers", theme.numbers(drawn[column]), names, text, **look))
    layout = theme.layout(
        height=150 + 26 * len(drawn),
        xaxis=theme.value_axis("time (µs)", values=[v for c in _DRAWN for v in drawn[c]]),
        yaxis={"type": "category", "autorange": "reversed", "automargin": True},
        # above the bars: below, its second line on a phone would lie on the axis' title
        legend={**theme.layout()["legend"], "y": 1.02, "yanchor": "bottom"},
    )
    middle["share"] = 100 * (middle["exposed_us"] / middle["step_us"])
    worst = middle.iloc[int(middle["share"].to_numpy().argmax())]
    title = (
        f"{name}: steps of {plural(len(middle), 'workload')}; communication shows most in "
        f"{theme.shortened(str(worst['workload']), 60)}, {worst['share']:.0f} % of the step"
    )
    notes = ["In flight: all calls at once, whatever depends on what; one by one: each until it is done."]
    if len(middle) > len(drawn):
        notes.append(f"Drawn: the first {len(drawn)} of {len(middle)}; the table has all.")
    times = ("step µs", "computing µs", "exposed µs", "exposed, %", "one by one µs", "in flight µs")
    columns = ["step_us", "compute_us", "exposed_us", "share", "serial_us", "flight_us"]
    lines = [(r.workload, *(float(getattr(r, name)) for name in columns), int(r.launches)) for r in records(middle)]
    caption = f"{plural(int(steps['launch_id'].nunique()), 'launch')}; medians over launches of means over ranks"
    return View(
        "steps",
        title,
        caption,
        {"data": data, "layout": layout},
        notes=tuple(notes),
        **table(("workload", *times, "launches"), lines),
    )


_DRAWN = {"step_us": "step", "compute_us": "computing", "serial_us": "calls one by one", "flight_us": "calls in flight"}


def _names(texts: Iterable[str]) -> list[str]:
    names: list[str] = []
    for text in texts:
        name = theme.label(text, 60)
        names.append(f"{name} ({len(names) + 1})" if name in names else name)
    return names

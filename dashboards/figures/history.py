"""A benchmark's time over days: one point per launch, with the level of each step where steps are known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import SEPARATOR, View, plural, table

if TYPE_CHECKING:
    import pandas as pd


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

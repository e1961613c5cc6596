"""The ratio of two sides as a map of message size and ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.contrast import ink_on, on_scale
from omb_py.dashboards.base.view import View, plural, records, table
from omb_py.dashboards.figures.curves import COUNTED
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 24
"""Rows of a map; the table has all."""
MOST_WRITTEN = 14
"""Sizes up to which the ratios are written into the map."""
MOST_WRITTEN_NARROW = 10
"""The same on a phone."""
SCALE = ((0.0, "#542788"), (0.45, "#b9aed4"), (0.5, "#e8d9c4"), (0.55, "#f1b56b"), (1.0, "#B35806"))
"""Violet is faster, orange is slower; what did not change has no colour of it."""
FULL = 1.0
"""Log2 of the ratio with the full colour: twice or half the time."""


def ratio_map(table_of: pd.DataFrame, names: tuple[str, str], over: str = "ranks") -> View:
    """New over base in every cell: only what lies beyond the noise of the launches has a colour.

    Args:
        table_of: rows of :func:`omb_py.dashboards.changes.ratios.ratios`.
        names: of BASE and NEW.
        over: ``ranks`` or ``devices``.
    """
    known = table_of.assign(
        size=table_of["size_bytes"].fillna(0).astype(int), count=table_of[over].fillna(0).astype(int)
    )
    sizes = sorted({int(size) for size in known["size"]})
    changed = known[known["verdict"] != ""].groupby("benchmark", observed=True).size()
    rows = [
        (str(benchmark), int(count))
        for benchmark, count in known[["benchmark", "count"]].drop_duplicates().itertuples(index=False)
    ]
    rows.sort(key=lambda row: (-int(changed.get(row[0], 0)), row[0], row[1]))
    drawn = rows[:MOST_ROWS]
    labels = [f"{theme.escape(name)} {count or ''}".strip() for name, count in drawn]
    cells = {(str(r.benchmark), r.count, r.size): r for r in records(_worst(known))}
    grid = [[cells.get((name, count, size)) for size in sizes] for name, count in drawn]
    places = list(range(len(sizes)))
    common = {"type": "heatmap", "x": places, "y": labels, "xgap": 1, "ygap": 1, "showscale": False}
    hover = [[_hover(cell) for cell in row] for row in grid]
    data: list[dict[str, Any]] = [
        {
            **common,
            "z": [[None if cell is None else 0 for cell in row] for row in grid],
            "colorscale": [[0, theme.UNCHANGED], [1, theme.UNCHANGED]],
            "text": hover,
            "hovertemplate": "%{y}, %{text}<extra></extra>",
            "name": "measured",
        },
        {
            **common,
            "z": [[_colour(cell) for cell in row] for row in grid],
            "zmin": -FULL,
            "zmax": FULL,
            "colorscale": [list(step) for step in SCALE],
            "text": hover,
            "hovertemplate": "%{y}, %{text}<extra></extra>",
            "name": "beyond the noise",
        },
    ]
    written = [] if len(sizes) > MOST_WRITTEN else _written(grid, labels)
    names_of = [[f"/{cell.comparability_key}" if cell else "" for cell in row] for row in grid]
    count = known["verdict"].value_counts()
    slower, faster = int(count.get("slower", 0)), int(count.get("faster", 0))
    few = int(known[["launches_base", "launches_new"]].min().min()) < 2 if len(known) else False
    notes = [
        "A colour lies beyond the noise of the launches; grey: measured, no difference shown. "
        "Orange: NEW is slower; violet: NEW is faster."
    ]
    if few:
        notes.append("Cells with one launch of a side have no known noise and no colour: --launches 5 gives it.")
    if len(rows) > len(drawn):
        notes.append(f"Drawn: the first {len(drawn)} of {plural(len(rows), 'row')}, those with changes first.")
    layout = theme.layout(
        height=92 + 20 * len(drawn),
        margin={"l": 64, "r": 16, "t": 28, "b": 44},  # above the cells there is room for the buttons of the figure
        annotations=written,
        xaxis={
            "title": {"text": "message size"},
            "tickmode": "array",
            "tickvals": places,
            "ticktext": [size_text(size) if size else "no size" for size in sizes],
            "tickangle": 0,
            "showgrid": False,
            "zeroline": False,
        },
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
    )
    layout["xaxis"] |= theme.thinned(layout["xaxis"])
    layout["meta"] = {"narrow": {"xaxis": theme.thinned(layout["xaxis"], 4)}}
    if len(sizes) > MOST_WRITTEN_NARROW:
        layout["meta"]["narrow"]["annotations"] = []
    return View(
        "map",
        f"{names[1]} against {names[0]}: {slower} of {plural(len(known), 'cell')} slower, {faster} faster",
        f"Time of {names[1]} over {names[0]}, by message size and {COUNTED[over]}",
        {"data": data, "layout": layout},
        notes=tuple(notes),
        cells={0: names_of, 1: names_of},
        **table(
            (
                "benchmark",
                COUNTED[over],
                "size",
                f"{names[0]} µs",
                f"{names[1]} µs",
                "ratio",
                "beyond the noise",
                "launches",
            ),
            [
                (
                    str(r.benchmark),
                    r.count,
                    size_text(r.size),
                    float(r.base_us),
                    float(r.new_us),
                    float(r.ratio),
                    str(r.verdict) or "no",
                    f"{r.launches_base} and {r.launches_new}",
                )
                for r in records(known.sort_values(["benchmark", "count", "size"]))
            ],
        ),
    )


def _worst(known: pd.DataFrame) -> pd.DataFrame:
    """Of several cells at one place (types, roots) the one beyond the noise that is farthest from 1."""
    far = known["ratio"].map(lambda ratio: abs(math.log(ratio))) + 100.0 * (known["verdict"] != "")
    return known.assign(far=far).sort_values("far").drop_duplicates(["benchmark", "count", "size"], keep="last")


def _colour(cell: Any) -> float | None:
    if cell is None or not cell.verdict:
        return None
    return max(-FULL, min(FULL, math.log2(cell.ratio)))


def _hover(cell: Any) -> str:
    if cell is None:
        return ""
    what = f"{cell.verdict}, " if cell.verdict else ""
    size = size_text(cell.size) if cell.size else "no size"
    return f"{size}: {cell.ratio:.3f}×, {what}{theme.duration(cell.base_us)} → {theme.duration(cell.new_us)}"


def _written(grid: Sequence[Sequence[Any]], labels: Sequence[str]) -> list[dict[str, Any]]:
    """The ratios of coloured cells, each dark or light as its colour asks."""
    return [
        {
            "x": at,
            "y": label,
            "text": f"{cell.ratio:.2f}",
            "showarrow": False,
            "font": {"size": 11, "color": ink_on(on_scale(SCALE, (math.log2(cell.ratio) / FULL + 1) / 2))},
        }
        for row, label in zip(grid, labels, strict=True)
        for at, cell in enumerate(row)
        if cell is not None and cell.verdict
    ]

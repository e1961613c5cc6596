"""Which setting of a library is the fastest, over message size and ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.view import View, plural, records, table
from omb_py.results.compare.tags import TUNE_DEFAULT
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd

MOST_WRITTEN = 14
"""Sizes up to which the margins are written into the map."""


def winners(best: pd.DataFrame, what: str) -> View:
    """A map of sizes and ranks: the colour is the fastest setting, the number its time over the default's.

    Args:
        best: ``ranks``, ``size_bytes``, ``setting``, ``time_us``, ``ratio`` (over the default's time; nan where the
            default was not measured), ``launches``.
        what: what was tuned, as ``allreduce, MPICH 5.0.2``.
    """
    sizes = sorted({int(size) for size in best["size_bytes"]})
    counts = sorted({int(ranks) for ranks in best["ranks"]})
    settings = [TUNE_DEFAULT, *sorted(set(best["setting"]) - {TUNE_DEFAULT})]
    cells = {(int(r.ranks), int(r.size_bytes)): r for r in records(best)}
    grid = [[cells.get((ranks, size)) for size in sizes] for ranks in counts]
    y = [plural(ranks, "rank") for ranks in counts]
    written = len(sizes) <= MOST_WRITTEN
    data: list[dict[str, Any]] = []
    for number, setting in enumerate(settings):
        colour = theme.GREY if setting == TUNE_DEFAULT else theme.colour(number - 1)
        mine = [[cell if cell is not None and cell.setting == setting else None for cell in row] for row in grid]
        if not any(cell is not None for row in mine for cell in row):
            continue
        data.append(
            {
                "type": "heatmap",
                "name": theme.escape(setting),
                "x": [size_text(size) for size in sizes],
                "y": y,
                "z": [[None if cell is None else 1 for cell in row] for row in mine],
                "text": [["" if cell is None else _written(cell) for cell in row] for row in mine],
                "texttemplate": "%{text}" if written else "",
                "colorscale": [[0, colour], [1, colour]],
                "showscale": False,
                "showlegend": True,
                "xgap": 2,
                "ygap": 2,
                "hovertemplate": f"{theme.escape(setting)}, %{{y}}, %{{x}}: %{{text}}<extra></extra>",
            }
        )
    layout = theme.layout(
        height=150 + 44 * len(counts),
        xaxis={"type": "category", "title": {"text": "message size"}, "showgrid": False},
        yaxis={"type": "category", "showgrid": False},
    )
    # above the map, since a share of its small height below it is not enough for the title of the axis
    layout["legend"] = {**layout["legend"], "y": 1.02, "yanchor": "bottom"}
    faster = best[best["setting"] != TUNE_DEFAULT]
    title = f"{what}: the default is the fastest at every size"
    if len(faster):
        title = f"{what}: another setting is the fastest at {len(faster)} of {plural(len(best), 'size')}"
    return View(
        "winners",
        title,
        f"{plural(len(best), 'cell')}: the setting with the least median of launches, and its time over the default's",
        {"data": data, "layout": layout},
        notes=("The search of omb-py tune: only its proof, in fresh launches, says what is faster.",),
        **table(
            ("ranks", "size", "fastest", "µs", "of the default's time", "launches"),
            [
                (
                    int(r.ranks),
                    size_text(r.size_bytes),
                    str(r.setting),
                    float(r.time_us),
                    theme.finite(r.ratio),
                    int(r.launches),
                )
                for r in records(best)
            ],
        ),
    )


def _written(cell: Any) -> str:
    ratio = theme.finite(cell.ratio)
    return "" if ratio is None else f"{ratio:.2f}"

"""The bandwidth of every pair of nodes as a matrix."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.view import View, plural, records, table

if TYPE_CHECKING:
    import pandas as pd


def pairs(links: pd.DataFrame, confirmed: Mapping[str, str] | None = None) -> View:
    """Every pair of nodes: bandwidth as a percentage of the median of all pairs, and each node's own median.

    Args:
        links: ``source``, ``target``, ``value``, ``unit`` (a rate: more is better).
        confirmed: node or ``source - target`` → its state; listed with the figure.
    """
    import numpy as np

    nodes = sorted({*links["source"], *links["target"]}, key=_natural)
    place = {node: i for i, node in enumerate(nodes)}
    grid = np.full((len(nodes), len(nodes)), np.nan)
    for row in records(links):
        grid[place[row.source], place[row.target]] = row.value
    middle = float(np.nanmedian(grid))
    percent = 100 * grid / middle
    with np.errstate(all="ignore"):
        each = np.array([_median([*percent[i], *percent[:, i]]) for i in range(len(nodes))])
    names = [theme.escape(n) for n in nodes]
    reach = max(5.0, float(np.nanmax(np.abs(percent - 100))))
    data: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            "x": names,
            "y": names,
            "z": [theme.numbers(r) for r in percent],
            "zmin": 100 - reach,
            "zmax": 100 + reach,
            "colorscale": [list(c) for c in theme.DIVERGING],
            "colorbar": {"title": {"text": "% of median"}, "thickness": 12},
            "hovertemplate": "%{y} → %{x}: %{z:.1f} %<extra></extra>",
        },
        {
            "type": "bar",
            "x": names,
            "y": theme.numbers(each - 100),
            "yaxis": "y2",
            "marker": {"color": theme.colour(0)},
            "hovertemplate": "%{x}: %{y:+.1f} %<extra></extra>",
            "name": "node",
        },
    ]
    slow = int(np.nanargmin(percent))
    worst = (nodes[slow // len(nodes)], nodes[slow % len(nodes)], float(np.nanmin(percent)))
    layout = theme.layout(
        showlegend=False,
        height=300 + min(500, 18 * len(nodes)),
        xaxis={"type": "category", "title": {"text": "to node"}, "anchor": "y", "showgrid": False},
        yaxis={
            "type": "category",
            "title": {"text": "from node"},
            "domain": [0, 0.74],
            "autorange": "reversed",
            "showgrid": False,
        },
        yaxis2={"domain": [0.82, 1], "title": {"text": "off (%)"}},
    )
    above = "Above: the median of a node's links, off the median of all."
    notes = (above, *(f"{what}: {state}" for what, state in (confirmed or {}).items()))
    return View(
        "pairs",
        f"{worst[0]} → {worst[1]} is the slowest of {plural(len(links), 'link')}, at {worst[2]:.0f} % of the median",
        f"{plural(len(nodes), 'node')}; the median is {middle:.4g} {links['unit'].iloc[0]}",
        {"data": data, "layout": layout},
        notes=notes,
        **table(
            ("from", "to", "% of median", str(links["unit"].iloc[0])),
            [
                (str(r.source), str(r.target), 100 * float(r.value) / middle, float(r.value))
                for r in records(links.sort_values("value"))
            ],
        ),
    )


def _natural(name: object) -> list[tuple[int, str]]:
    """node2 before node10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(name))]


def _median(values: list[float]) -> float:
    known = sorted(v for v in values if not math.isnan(v))
    if not known:
        return math.nan
    half = len(known) // 2
    return known[half] if len(known) % 2 else (known[half - 1] + known[half]) / 2

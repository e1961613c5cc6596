"""Late ranks: which rank is the slowest, and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import View, table
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd


def stragglers(rows: pd.DataFrame) -> View | None:
    """The share of calls in which each rank was the slowest, and its mean over the median rank at each size.

    Args:
        rows: cells of one benchmark with one number of ranks, with ``slowest_rank_share``, ``rank_mean_us`` (lists by
            rank) and ``hosts``. Cells whose lists have another length are left out.

    Returns:
        None where fewer than two ranks were timed.
    """
    import numpy as np

    known = rows[[_timed(v) > 1 for v in rows["slowest_rank_share"]]]
    if not len(known):
        return None
    count = max(_timed(v) for v in known["slowest_rank_share"])
    known = known[
        [
            _timed(a) == count and _timed(b) == count
            for a, b in zip(known["slowest_rank_share"], known["rank_mean_us"], strict=True)
        ]
    ]
    if not len(known):
        return None
    share = np.mean(np.stack([np.asarray(v, dtype=np.float64) for v in known["slowest_rank_share"]]), axis=0)
    hosts = _hosts(known, count)
    names = [f"{rank} ({host})" if host else str(rank) for rank, host in enumerate(hosts)]
    sizes = sorted({int(s) for s in known["size_bytes"].fillna(0)})
    excess = np.full((len(sizes), count), np.nan)
    for i, size in enumerate(sizes):
        part = known[known["size_bytes"].fillna(0) == size]
        each = [np.asarray(v, dtype=np.float64) for v in part["rank_mean_us"]]
        with np.errstate(divide="ignore", invalid="ignore"):
            excess[i] = np.median(np.stack([100 * (v / np.median(v) - 1) for v in each]), axis=0)
    x = list(range(count))
    reach = float(max(np.nanmax(np.abs(excess)) if np.isfinite(excess).any() else 0, 1))
    uniform = 1 / count
    data: list[dict[str, Any]] = [
        {
            "type": "bar",
            "x": x,
            "y": theme.numbers(100 * share),
            "text": [theme.escape(n) for n in names],
            "textposition": "none",
            "marker": {"color": theme.colour(0)},
            "name": "share of calls",
            "hovertemplate": "rank %{text}: slowest in %{y:.1f} % of calls<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "x": [-0.5, count - 0.5],
            "y": [100 * uniform, 100 * uniform],
            "line": {"color": theme.colour(1), "dash": "dash", "width": 1.5},
            "hoverinfo": "skip",
            "name": "even share",
        },
        {
            "type": "heatmap",
            "x": x,
            "y": [size_text(s) if s else "no size" for s in sizes],
            "z": [theme.numbers(line) for line in excess],
            "xaxis": "x2",
            "yaxis": "y2",
            "zmin": -reach,
            "zmax": reach,
            "colorscale": [list(c) for c in theme.DIVERGING],
            "reversescale": True,
            "colorbar": {"title": {"text": "%"}, "len": 0.48, "y": 0.2, "thickness": 12},
            "hovertemplate": "rank %{x}, %{y}: %{z:.1f} % over the median rank<extra></extra>",
        },
    ]
    layout = theme.layout(
        showlegend=False,
        height=420 + 8 * len(sizes),
        xaxis={"domain": [0, 1], "anchor": "y", "showticklabels": False, "range": [-0.5, count - 0.5]},
        yaxis={"domain": [0.62, 1], "title": {"text": "slowest (% of calls)"}, "rangemode": "tozero"},
        xaxis2={
            "anchor": "y2",
            "title": {"text": "rank"},
            "range": [-0.5, count - 0.5],
            **({"dtick": 1} if count <= 16 else {}),
        },
        yaxis2={"domain": [0, 0.52], "title": {"text": "message size"}, "type": "category"},
    )
    late = int(share.argmax())
    title = (
        f"{known['benchmark'].iloc[0]}, {count} ranks: rank {names[late]} is the slowest in "
        f"{100 * share[late]:.0f} % of calls"
    )
    title += " (ties count for each)" if share.sum() > 1.001 else f", an even share is {100 * uniform:.0f} %"
    return View(
        "stragglers",
        title,
        series.caption(known),
        {"data": data, "layout": layout},
        notes=("Above: dashed is an even share. Below: a rank's mean time over that of the median rank.",),
        **table(
            ("rank", "host", "slowest, % of calls", "largest excess, %"),
            [(r, hosts[r], float(100 * share[r]), theme.finite(np.nanmax(excess[:, r]))) for r in x],
        ),
    )


def _timed(values: Any) -> int:
    return len(values) if values is not None and hasattr(values, "__len__") else 0


def _hosts(rows: pd.DataFrame, count: int) -> list[str]:
    for hosts in rows.get("hosts", ()):
        if _timed(hosts) == count:
            return [str(host) for host in hosts]
    return [""] * count

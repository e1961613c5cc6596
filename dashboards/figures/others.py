"""Views of other commands' tables: history, model, pair matrix, guidelines; and what differs in environment."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.view import View, listed, plural, records, table
from omb_py.results.formats.units import size_text
from omb_py.results.store.keys import environment_facts, flat

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
        if keys[at] != keys[at - 1]:
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
    far = f", {min(medians):.3g} to {max(medians):.3g} µs" if medians else ""
    steps = f"no change in {plural(len(points), 'launch')}" if levels == 1 else plural(levels - 1, "step")
    said = change or (steps if levels else f"{plural(len(points), 'launch')}{far}")
    shown = [c for c in ("started_at", "median_us", "level_us", "library_version", "environment_key") if c in points]
    return View(
        "history",
        f"{name}: {said}",
        f"{plural(len(points), 'launch')}, {plural(changes, 'change')} of the environment",
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
        **table(
            [_HEADS.get(c, c) for c in shown],
            [
                [theme.finite(v) if c.endswith("_us") else str(v) for c, v in zip(shown, row, strict=True)]
                for row in points[shown].itertuples(index=False)
            ],
        ),
    )


_HEADS = {
    "started_at": "started (UTC)",
    "median_us": "median µs",
    "level_us": "level µs",
    "library_version": "version",
    "environment_key": "environment",
}


def model(measured: pd.DataFrame, segments: pd.DataFrame, name: str) -> View:
    """Measured times and the fit alpha + beta·size of each segment, and below how far they lie apart.

    Args:
        measured: ``size_bytes``, ``median_us``, and where known ``lower_us``, the lower bound.
        segments: ``low_bytes``, ``high_bytes``, ``alpha_us``, ``beta_us_per_byte``; both ends belong to a segment.
        name: what was fitted.
    """
    measured = measured[measured["size_bytes"] > 0].sort_values("size_bytes")
    sizes = [int(s) for s in measured["size_bytes"]]
    values = theme.numbers(measured["median_us"])
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": sizes,
            "y": values,
            "marker": theme.marker(0),
            "name": "measured",
            "text": [size_text(s) for s in sizes],
            "hovertemplate": "%{text}: %{y:.4g} µs<extra></extra>",
        }
    ]
    residual: list[float | None] = [None] * len(sizes)
    for index, part in enumerate(records(segments), start=1):
        inside = [i for i, s in enumerate(sizes) if part.low_bytes <= s <= part.high_bytes]
        fit = [float(part.alpha_us + part.beta_us_per_byte * sizes[i]) for i in inside]
        for i, expected in zip(inside, fit, strict=True):
            value = values[i]
            residual[i] = None if value is None or expected <= 0 else 100 * (value / expected - 1)
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": [sizes[i] for i in inside],
                "y": fit,
                "line": theme.line(index),
                "name": _segment(part),
            }
        )
    lower = theme.numbers(measured["lower_us"]) if "lower_us" in measured else [None] * len(sizes)
    if any(v is not None for v in lower):
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": sizes,
                "y": lower,
                "line": {"color": theme.GREY, "dash": "longdash", "width": 1.5},
                "name": "lower bound",
                "hovertemplate": "at least %{y:.4g} µs<extra>lower bound</extra>",
            }
        )
    efficiency = [None if v is None or not m else 100 * v / m for v, m in zip(lower, values, strict=True)]
    data.append(
        {
            "type": "bar",
            "x": sizes,
            "y": residual,
            "xaxis": "x2",
            "yaxis": "y2",
            "showlegend": False,
            "marker": {"color": theme.GREY},
            "name": "residual",
            "hovertemplate": "%{y:.1f} %<extra></extra>",
        }
    )
    axis = theme.size_axis(sizes or [1])
    layout = theme.layout(
        height=480,
        xaxis={**axis, "anchor": "y", "showticklabels": False, "title": {"text": ""}},
        yaxis={**theme.value_axis("time (µs)", values=theme.drawn(data[:-1])), "domain": [0.4, 1]},
        xaxis2={**axis, "anchor": "y2"},
        yaxis2={"domain": [0, 0.28], "title": {"text": "off the fit (%)"}},
    )
    off = [abs(r) for r in residual if r is not None]
    title = f"{name}: {plural(len(segments), 'segment')}" + (f", at most {max(off):.1f} % off the fit" if off else "")
    known = [e for e in efficiency if e is not None]
    title += f"; {min(known):.0f} to {max(known):.0f} % of what the lower bound allows" if known else ""
    return View(
        "model",
        title,
        f"{plural(len(sizes), 'size')}; {listed(_segment(p) for p in records(segments))}",
        {"data": data, "layout": layout},
        **table(
            ("size", "measured µs", "off the fit, %", *(("lower bound µs", "efficiency, %") if known else ())),
            [
                (size_text(s), v, r, *((b, e) if known else ()))
                for s, v, r, b, e in zip(sizes, values, residual, lower, efficiency, strict=True)
            ],
        ),
    )


def _segment(part: Any) -> str:
    rate = f"{1e-3 / part.beta_us_per_byte:.3g} GB/s" if part.beta_us_per_byte > 0 else "no bandwidth term"
    return f"from {size_text(part.low_bytes)}: {part.alpha_us:.3g} µs, {rate}"


def pairs(links: pd.DataFrame, confirmed: Mapping[str, str] | None = None) -> View:
    """Every pair of nodes: bandwidth as a percentage of the median of all pairs, and each node's own median.

    Args:
        links: ``source``, ``target``, ``value``, ``unit`` (a rate: more is better).
        confirmed: node or ``source - target`` → what was found; listed with the figure.
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
    notes = (above, *(f"{what}: {found}" for what, found in (confirmed or {}).items()))
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


def guidelines(found: pd.DataFrame, delta: float = 0.1) -> View:
    """Guidelines by message size: the cell is how many times longer the left side took; blank where it is no longer.

    Args:
        found: ``guideline``, ``size_bytes``, ``ratio``, ``violated`` (decided), and where known ``advice``.
        delta: ratios up to 1 + delta are no violation.

    Guidelines whose left side is nowhere longer are only in the table; where there is no other, that is all.
    """
    names = list(dict.fromkeys(found["guideline"]))
    broken = found[found["violated"].astype(bool)]
    title = f"{plural(len(broken), 'violation')} of {plural(len(names), 'guideline')}"
    if len(broken):
        worst = broken.iloc[int(broken["ratio"].to_numpy().argmax())]
        title += f"; the worst: {worst['guideline']}, {worst['ratio']:.2f}× at {size_text(worst['size_bytes'])}"
    longer = found[found["ratio"] > 1 + delta]
    drawn = [name for name in names if name in set(longer["guideline"])]
    notes = ["A question mark: longer, but not decided."] if len(longer) > len(broken) else []
    if len(names) > len(drawn):
        held = plural(len(names) - len(drawn), "guideline")
        notes.append(f"{'Not drawn: ' if drawn else ''}{held} with no longer left side at any size; the table has all.")
    if "advice" in found:
        notes += [f"{r.guideline}: {r.advice}" for r in records(broken) if isinstance(r.advice, str)][:8]
    return View(
        "guidelines",
        title,
        f"{plural(len(found), 'cell')}: how many times longer the left side took; over {1 + delta:g}× counts",
        _matrix(found, drawn, delta) if drawn else None,
        notes=tuple(dict.fromkeys(notes)),
        **table(
            ("guideline", "size", "ratio", "violated"),
            [
                (str(r.guideline), size_text(r.size_bytes), float(r.ratio), "yes" if r.violated else "no")
                for r in records(found)
            ],
        ),
    )


def _matrix(found: pd.DataFrame, names: Sequence[str], delta: float) -> dict[str, Any]:
    """The figure of some guidelines, each at every size."""
    sizes = sorted({int(s) for s in found["size_bytes"]})
    cell = {(r.guideline, int(r.size_bytes)): r for r in records(found)}
    z, text = [], []
    for name in names:
        row = [cell.get((name, size)) for size in sizes]
        z.append([float(r.ratio) if r is not None and r.ratio > 1 + delta else None for r in row])
        text.append(
            ["" if r is None or r.ratio <= 1 + delta else f"{r.ratio:.2f}" + ("" if r.violated else "?") for r in row]
        )
    data = [
        {
            "type": "heatmap",
            "x": [size_text(s) for s in sizes],
            # both sides under each other: a name takes half of a phone
            "y": [theme.escape(n).replace(" ≤ ", "<br>≤ ") for n in names],
            "z": z,
            "text": text,
            "texttemplate": "%{text}",
            "colorscale": [[0, "#FEE6CE"], [1, "#D55E00"]],
            "zmin": 1,
            "zmax": max([2.0, *(v for row in z for v in row if v is not None)]),
            "xgap": 2,
            "ygap": 2,
            "showscale": False,
            "hovertemplate": "%{y}, %{x}: %{z:.2f}×<extra></extra>",
        }
    ]
    layout = theme.layout(
        height=90 + 44 * len(names),
        xaxis={"type": "category", "title": {"text": "message size"}, "showgrid": False},
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
    )
    return {"data": data, "layout": layout}


def environment(sides: Mapping[str, Mapping[str, Any]]) -> View:
    """What differs between environments, fact by fact; only a table.

    Args:
        sides: name → the facts that its environment key is made of (``environment_facts``).
    """
    known = {name: dict(flat(facts, numbered=True)) for name, facts in sides.items()}
    names = list(dict.fromkeys(key for facts in known.values() for key in facts))
    rows = []
    for name in names:
        values = [facts.get(name, "-") for facts in known.values()]
        if len(set(values)) > 1:
            group, _, rest = name.partition(".")
            rows.append((group, rest or group, *values))
    title = f"{plural(len(rows), 'fact')} differ" if len(rows) != 1 else "1 fact differs"
    said = f": {listed(f'{r[1]}' for r in rows)}" if rows else ""
    return View(
        "environment",
        f"{title} between {listed(sides)}{said}",
        f"{plural(len(names), 'fact')} compared",
        None,
        **table(("group", "fact", *sides), sorted(rows)),
    )


def environments(rows: pd.DataFrame, provenance: Callable[[str], Mapping[str, Any]], most: int = 4) -> View | None:
    """What differs between the newest launches of the newest environments; None where all are alike.

    Args:
        rows: prepared cells.
        provenance: looks up launches.
        most: environments that stand side by side.
    """
    newest = rows.sort_values("started_at").drop_duplicates("environment_key", keep="last").tail(most)
    sides = {}
    for row in records(newest):
        facts = environment_facts(provenance(row.launch_id))
        if facts:
            words = (row.backend if theme.absent(row.library) else row.library, row.library_version)
            sides[f"{' '.join(str(w) for w in words if not theme.absent(w))}, {row.launch_id}"] = facts
    return environment(sides) if len(sides) > 1 else None

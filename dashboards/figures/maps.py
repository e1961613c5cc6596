"""Maps: ratios of two sides, the fastest setting, guidelines, and the bandwidth of pairs of nodes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.theme import Layout, Record, Trace, Values
from omb_py.dashboards.base.view import View, plural, records, table
from omb_py.dashboards.figures.curves import COUNTED
from omb_py.results.compare.tags import TUNE_DEFAULT
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 24
"""Rows of a map of ratios; the table has all."""
MOST_WRITTEN = 14
"""Sizes up to which numbers are written into a map."""
MOST_WRITTEN_NARROW = 10
"""The same on a phone."""
SCALE = ((0.0, "#542788"), (0.45, "#b9aed4"), (0.5, "#e8d9c4"), (0.55, "#f1b56b"), (1.0, "#B35806"))
"""Violet is faster, orange is slower; what did not change has no colour of it."""
FULL = 1.0
"""Log2 of the ratio with the full colour: twice or half the time."""
INKS = ("#000000", "#ffffff")
"""One of them has 4.5:1 or more on every colour; a dark grey instead of black would not."""


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb``, 0 to 1 (https://www.w3.org/TR/WCAG22/#dfn-relative-luminance)."""
    shares = [channel / 255 for channel in _channels(colour)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours as WCAG 2.2 defines it, 1 to 21.

    >>> contrast("#ffffff", "#000000")
    21.0
    """
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def ink_on(colour: str) -> str:
    """The one of :data:`INKS` that is read better on a colour."""
    return max(INKS, key=lambda ink: contrast(ink, colour))


def on_scale(scale: Sequence[tuple[float, str]], place: float) -> str:
    """The colour at a place, 0 to 1, of a colour scale that begins at 0 and ends at 1, as Plotly mixes it."""
    place = min(1.0, max(0.0, place))
    for (low, before), (high, after) in pairwise(scale):
        if place <= high:
            share = (place - low) / (high - low) if high > low else 0.0
            pairs = zip(_channels(before), _channels(after), strict=True)
            return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in pairs)
    return scale[-1][1]


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))


def ratio_map(ratios: pd.DataFrame, names: tuple[str, str], over: str = "ranks") -> View:
    """New over BASE in every cell (:func:`omb_py.dashboards.changes.ratios.ratios`): only what lies beyond the noise of
    the launches has a colour. `over` is ``ranks`` or ``devices``."""
    size, count = (ratios[name].fillna(0).astype(int) for name in ("size_bytes", over))
    known = ratios.assign(size=size, count=count)
    sizes = sorted({int(size) for size in known["size"]})
    rows = _rows_of_map(known)
    drawn = rows[:MOST_ROWS]
    cells = {(str(r.benchmark), r.count, r.size): r for r in records(_worst(known))}
    grid = [[cells.get((name, count, size)) for size in sizes] for name, count in drawn]
    verdicts = known["verdict"].value_counts()
    slower, faster = int(verdicts.get("slower", 0)), int(verdicts.get("faster", 0))
    notes = [
        "A colour lies beyond the noise of the launches; grey: measured, no difference shown. "
        "Orange: NEW is slower; violet: NEW is faster."
    ]
    if len(known) and int(known[["launches_base", "launches_new"]].min().min()) < 2:
        notes.append("Cells with one launch of a side have no known noise and no colour: --launches 5 gives it.")
    if len(rows) > len(drawn):
        notes.append(f"Drawn: the first {len(drawn)} of {plural(len(rows), 'row')}, those with changes first.")
    ids = [[f"/{cell.comparability_key}" if cell else "" for cell in row] for row in grid]
    times = (f"{names[0]} µs", f"{names[1]} µs")
    heads = ("benchmark", COUNTED[over], "size", *times, "ratio", "beyond the noise", "launches")
    lines = [
        (str(r.benchmark), r.count, size_text(r.size), *numbers, str(r.verdict) or "no", launches)
        for r in records(known.sort_values(["benchmark", "count", "size"]))
        for numbers in [map(float, (r.base_us, r.new_us, r.ratio))]
        for launches in [f"{r.launches_base} and {r.launches_new}"]
    ]
    return View(
        "map",
        f"{names[1]} against {names[0]}: {slower} of {plural(len(known), 'cell')} slower, {faster} faster",
        f"Time of {names[1]} over {names[0]}, by message size and {COUNTED[over]}",
        _ratio_figure(grid, [f"{theme.escape(name)} {count or ''}".strip() for name, count in drawn], sizes),
        notes=tuple(notes),
        cells={0: ids, 1: ids},
        **table(heads, lines),
    )


def _rows_of_map(known: pd.DataFrame) -> list[tuple[str, int]]:
    changed = known[known["verdict"] != ""].groupby("benchmark", observed=True).size()
    pairs = known[["benchmark", "count"]].drop_duplicates().itertuples(index=False)
    rows = [(str(benchmark), int(count)) for benchmark, count in pairs]
    return sorted(rows, key=lambda row: (-int(changed.get(row[0], 0)), row[0], row[1]))


def _worst(known: pd.DataFrame) -> pd.DataFrame:
    """Of several cells at one place (types, roots) the one beyond the noise that is farthest from 1."""
    far = known["ratio"].map(lambda ratio: abs(math.log(ratio))) + 100.0 * (known["verdict"] != "")
    return known.assign(far=far).sort_values("far").drop_duplicates(["benchmark", "count", "size"], keep="last")


def _ratio_figure(grid: Sequence[Values], labels: Sequence[str], sizes: Sequence[int]) -> Layout:
    places = list(range(len(sizes)))
    hover = {"text": [[_hover(cell) for cell in row] for row in grid], "hovertemplate": "%{y}, %{text}<extra></extra>"}
    measured = [[None if cell is None else 0 for cell in row] for row in grid]
    beyond = [[_colour(cell) for cell in row] for row in grid]
    grey = [[0, theme.UNCHANGED], [1, theme.UNCHANGED]]
    ends = {"zmin": -FULL, "zmax": FULL, "colorscale": [list(step) for step in SCALE]}
    data = [
        theme.heatmap(places, labels, measured, 1, colorscale=grey, name="measured", **hover),
        theme.heatmap(places, labels, beyond, 1, name="beyond the noise", **ends, **hover),
    ]
    texts = theme.ticks(places, [size_text(size) if size else "no size" for size in sizes])
    x = {"title": {"text": "message size"}, **texts, "tickangle": 0, "showgrid": False, "zeroline": False}
    x |= theme.thinned(x)
    layout = theme.layout(
        height=92 + 20 * len(labels),
        margin={"l": 64, "r": 16, "t": 28, "b": 44},  # above the cells there is room for the buttons of the figure
        annotations=[] if len(sizes) > MOST_WRITTEN else _written_ratios(grid, labels),
        xaxis=x,
        yaxis=theme.category_axis(autorange="reversed"),
        meta={"narrow": {"xaxis": theme.thinned(x, 4)}},
    )
    if len(sizes) > MOST_WRITTEN_NARROW:
        layout["meta"]["narrow"]["annotations"] = []
    return {"data": data, "layout": layout}


def _colour(cell: Record) -> float | None:
    if cell is None or not cell.verdict:
        return None
    return max(-FULL, min(FULL, math.log2(cell.ratio)))


def _hover(cell: Record) -> str:
    if cell is None:
        return ""
    what = f"{cell.verdict}, " if cell.verdict else ""
    size = size_text(cell.size) if cell.size else "no size"
    return f"{size}: {cell.ratio:.3f}×, {what}{theme.duration(cell.base_us)} → {theme.duration(cell.new_us)}"


def _written_ratios(grid: Sequence[Values], labels: Sequence[str]) -> list[Layout]:
    """The ratios of coloured cells, each dark or light as its colour asks."""
    texts = []
    for row, label in zip(grid, labels, strict=True):
        for at, cell in enumerate(row):
            if cell is not None and cell.verdict:
                ink = ink_on(on_scale(SCALE, (math.log2(cell.ratio) / FULL + 1) / 2))
                look = {"showarrow": False, "font": {"size": 11, "color": ink}}
                texts.append({"x": at, "y": label, "text": f"{cell.ratio:.2f}", **look})
    return texts


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
    x, y = [size_text(size) for size in sizes], [plural(ranks, "rank") for ranks in counts]
    data: list[Trace] = []
    for number, setting in enumerate(settings):
        colour, name = theme.GREY if setting == TUNE_DEFAULT else theme.colour(number - 1), theme.escape(setting)
        mine = [[cell if cell is not None and cell.setting == setting else None for cell in row] for row in grid]
        if any(cell is not None for row in mine for cell in row):
            ratios = [[None if cell is None else theme.finite(cell.ratio) for cell in row] for row in mine]
            written = [["" if ratio is None else f"{ratio:.2f}" for ratio in row] for row in ratios]
            look: Layout = {"text": written, "texttemplate": "%{text}" if len(sizes) <= MOST_WRITTEN else ""}
            look |= {"colorscale": [[0, colour], [1, colour]], "showlegend": True, "name": name}
            z = [[None if cell is None else 1 for cell in row] for row in mine]
            hover = f"{name}, %{{y}}, %{{x}}: %{{text}}<extra></extra>"
            data.append(theme.heatmap(x, y, z, 2, **look, hovertemplate=hover))
    axes = {"xaxis": theme.category_axis("message size"), "yaxis": theme.category_axis()}
    # above the map, since a share of its small height below it is not enough for the title of the axis
    legend = {**theme.layout()["legend"], "y": 1.02, "yanchor": "bottom"}
    faster = best[best["setting"] != TUNE_DEFAULT]
    title = "the default is the fastest at every size"
    if len(faster):
        title = f"another setting is the fastest at {len(faster)} of {plural(len(best), 'size')}"
    lines = [
        (
            int(r.ranks),
            size_text(r.size_bytes),
            str(r.setting),
            float(r.time_us),
            theme.finite(r.ratio),
            int(r.launches),
        )
        for r in records(best)
    ]
    return View(
        "winners",
        f"{what}: {title}",
        f"{plural(len(best), 'cell')}: the setting with the least median of launches, and its time over the default's",
        {"data": data, "layout": theme.layout(height=150 + 44 * len(counts), legend=legend, **axes)},
        notes=("The search of omb-py tune: only its proof, in fresh launches, says what is faster.",),
        **table(("ranks", "size", "fastest", "µs", "of the default's time", "launches"), lines),
    )


def guidelines(ratios: pd.DataFrame, delta: float = 0.1) -> View:
    """Guidelines by message size: the cell is how many times longer the left side took; blank where it is no longer.

    Args:
        ratios: ``guideline``, ``size_bytes``, ``ratio``, ``violated`` (decided), and where known ``advice``.
        delta: ratios up to 1 + delta are no violation.

    Guidelines whose left side is nowhere longer are only in the table; where there is no other, that is all.
    """
    names = list(dict.fromkeys(ratios["guideline"]))
    broken = ratios[ratios["violated"].astype(bool)]
    title = f"{plural(len(broken), 'violation')} of {plural(len(names), 'guideline')}"
    if len(broken):
        worst = broken.iloc[int(broken["ratio"].to_numpy().argmax())]
        title += f"; the worst: {worst['guideline']}, {worst['ratio']:.2f}× at {size_text(worst['size_bytes'])}"
    longer = ratios[ratios["ratio"] > 1 + delta]
    drawn = [name for name in names if name in set(longer["guideline"])]
    notes = ["A question mark: longer, but not decided."] if len(longer) > len(broken) else []
    if len(names) > len(drawn):
        held = plural(len(names) - len(drawn), "guideline")
        notes.append(f"{'Not drawn: ' if drawn else ''}{held} with no longer left side at any size; the table has all.")
    if "advice" in ratios:
        notes += [f"{r.guideline}: {r.advice}" for r in records(broken) if isinstance(r.advice, str)][:8]
    lines = [
        (str(r.guideline), size_text(r.size_bytes), float(r.ratio), "yes" if r.violated else "no")
        for r in records(ratios)
    ]
    return View(
        "guidelines",
        title,
        f"{plural(len(ratios), 'cell')}: how many times longer the left side took; over {1 + delta:g}× counts",
        _guideline_figure(ratios, drawn, delta) if drawn else None,
        notes=tuple(dict.fromkeys(notes)),
        **table(("guideline", "size", "ratio", "violated"), lines),
    )


def _guideline_figure(ratios: pd.DataFrame, names: Sequence[str], delta: float) -> Layout:
    sizes = sorted({int(s) for s in ratios["size_bytes"]})
    cells = {(r.guideline, int(r.size_bytes)): r for r in records(ratios) if r.ratio > 1 + delta}
    grid = [[cells.get((name, size)) for size in sizes] for name in names]
    z = [[None if r is None else float(r.ratio) for r in row] for row in grid]
    text = [["" if r is None else f"{r.ratio:.2f}{'' if r.violated else '?'}" for r in row] for row in grid]
    # both sides under each other: a name takes half of a phone
    y = [theme.escape(n).replace(" ≤ ", "<br>≤ ") for n in names]
    ends = {"zmin": 1, "zmax": max([2.0, *(v for row in z for v in row if v is not None)])}
    look = {"text": text, "texttemplate": "%{text}", "colorscale": [[0, "#FEE6CE"], [1, "#D55E00"]], **ends}
    hover = "%{y}, %{x}: %{z:.2f}×<extra></extra>"
    axes = {"xaxis": theme.category_axis("message size"), "yaxis": theme.category_axis(autorange="reversed")}
    data = [theme.heatmap([size_text(s) for s in sizes], y, z, 2, **look, hovertemplate=hover)]
    return {"data": data, "layout": theme.layout(height=90 + 44 * len(names), **axes)}


def pairs(links: pd.DataFrame, confirmed: Mapping[str, str] | None = None) -> View:
    """Every pair of nodes: bandwidth as a percentage of the median of all pairs, and each node's own median.

    `links` has ``source``, ``target``, ``value``, ``unit`` (a rate: more is better); `confirmed` is the state of a node
    or of ``source - target``, listed with the figure.
    """
    import numpy as np

    nodes = sorted({*links["source"], *links["target"]}, key=_natural)
    place = {node: i for i, node in enumerate(nodes)}
    grid = np.full((len(nodes), len(nodes)), np.nan)
    for row in records(links):
        grid[place[row.source], place[row.target]] = row.value
    middle = float(np.nanmedian(grid))
    percent = 100 * grid / middle
    every = [[v for v in (*percent[i], *percent[:, i]) if not math.isnan(v)] for i in range(len(nodes))]
    each = [median(values) if values else None for values in every]
    names = [theme.escape(n) for n in nodes]
    reach = max(5.0, float(np.nanmax(np.abs(percent - 100))))
    bar = {"title": {"text": "% of median"}, "thickness": 12}
    heat = theme.diverging(100, reach, bar, "%{y} → %{x}: %{z:.1f} %<extra></extra>")
    off = {"type": "bar", "x": names, "y": [value if value is None else value - 100 for value in theme.numbers(each)]}
    look = {"yaxis": "y2", "marker": {"color": theme.colour(0)}, "name": "node"}
    data = [
        {**heat, "x": names, "y": names, "z": [theme.numbers(r) for r in percent]},
        {**off, **look, "hovertemplate": "%{x}: %{y:+.1f} %<extra></extra>"},
    ]
    layout = theme.layout(
        showlegend=False,
        height=300 + min(500, 18 * len(nodes)),
        xaxis=theme.category_axis("to node", anchor="y"),
        yaxis=theme.category_axis("from node", domain=[0, 0.74], autorange="reversed"),
        yaxis2={"domain": [0.82, 1], "title": {"text": "off (%)"}},
    )
    slow, unit = int(np.nanargmin(percent)), str(links["unit"].iloc[0])
    worst = f"{nodes[slow // len(nodes)]} → {nodes[slow % len(nodes)]}"
    by_value = records(links.sort_values("value"))
    lines = [(str(r.source), str(r.target), 100 * float(r.value) / middle, float(r.value)) for r in by_value]
    above = "Above: the median of a node's links, off the median of all."
    return View(
        "pairs",
        f"{worst} is the slowest of {plural(len(links), 'link')}, at {float(np.nanmin(percent)):.0f} % of the median",
        f"{plural(len(nodes), 'node')}; the median is {middle:.4g} {unit}",
        {"data": data, "layout": layout},
        notes=(above, *(f"{what}: {state}" for what, state in (confirmed or {}).items())),
        **table(("from", "to", "% of median", unit), lines),
    )


def _natural(name: object) -> list[tuple[int, str]]:
    """node2 before node10."""
    return [(int(text), "") if text.isdigit() else (-1, text) for text in re.split(r"(\d+)", str(name))]

"""Maps: ratios of two sides, the fastest setting, guidelines, and the bandwidth of pairs of nodes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import numpy as np
import pandas as pd

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.theme import Layout, Record, Trace
from omb_py.dashboards.base.view import View, plural, records, table
from omb_py.dashboards.figures.curves import COUNTED
from omb_py.dashboards.figures.panels import DrawnPanel, PanelPlaces, arrange, place_axis
from omb_py.dashboards.figures.size_by_count import short_size
from omb_py.results.compare.tags import TUNE_DEFAULT
from omb_py.results.units import factor_text, natural_key, range_text, size_text

MOST_PANELS = 12
"""Benchmarks of a map of ratios; the table has all."""
MOST_WRITTEN = 14
"""Sizes up to which numbers are written into a map."""
SCALE = tuple((1 - at, colour) for at, colour in reversed(theme.DIVERGING))
"""Violet is faster, orange is slower."""
LEAST_REACH, MOST_REACH = math.log2(1.25), 1.0
"""Log2 of the ratio with the full colour: between these, as far as the cells reach."""
COLUMNS, COLUMNS_MIDDLE, COLUMNS_NARROW = 4, 2, 1
"""Panels beside each other, and on a phone."""
MOST_DRAWN, MOST_LISTED = 256, 2000
"""Nodes of a map of pairs that are drawn each by itself, and links that are listed."""
FRAME = "#7F3B08"
"""Colour of the frame around what is slower."""
_ROW, _GAP, _LEAST_PANEL = 14, 50, 60
"""Pixels of a number of ranks or GPUs, between two rows of panels, and of the lowest panel."""
_HATCH, _NO_DIFFERENCE = "╱", "="


def ratio_map(ratios: pd.DataFrame, names: tuple[str, str], over: str = "ranks") -> View:
    """NEW over BASE in every cell (:func:`omb_py.dashboards.changes.ratios.ratios`): a panel a benchmark, the ratio as
    colour, and a frame around what is slower beyond the noise. `over` is ``ranks`` or ``devices``."""
    size, count = (ratios[name].fillna(0).astype(int) for name in ("size_bytes", over))
    known = ratios.assign(size=size, count=count)
    worst = _worst(known)
    slower, (base, new) = known[known["verdict"] == "slower"]["benchmark"].value_counts(), names
    benchmarks = sorted(
        map(str, known["benchmark"].unique()), key=lambda name: (-int(slower.get(name, 0)), usual(name))
    )
    drawn = {name: [*records(worst[worst["benchmark"] == name])] for name in benchmarks[:MOST_PANELS]}
    spec, links = _ratio_figure(drawn, "GPUs" if over == "devices" else "ranks")
    notes = [
        f"A cell: one message size on one number of {COUNTED[over]}. Orange: {new} takes longer than {base}; "
        "violet: less time. Framed: slower beyond the noise."
    ]
    if _NO_DIFFERENCE in map(_mark, records(known)):
        notes[0] += f" {_NO_DIFFERENCE}: no difference beyond the noise."
    if not decidable(known).all():
        notes.append("Hatched: one launch of a side, so no known noise: --launches 5 gives it.")
    if len(benchmarks) > len(drawn):
        notes.append(f"Drawn: {len(drawn)} of {plural(len(benchmarks), 'benchmark')}, those with slower cells first.")
    heads = ("benchmark", COUNTED[over], "size", f"{base} µs", f"{new} µs", "ratio", "beyond the noise", "launches")
    lines = [
        (str(r.benchmark), r.count, size_text(r.size), *numbers, str(r.verdict) or "no", launches)
        for r in records(known.sort_values(["benchmark", "count", "size"]))
        for numbers in [map(float, (r.base_us, r.new_us, r.ratio))]
        for launches in [f"{r.launches_base} and {r.launches_new}"]
    ]
    return View(
        "map",
        f"{new} against {base}: {describe_counts([known], over)}",
        f"Time of {new} over {base}, by message size and {COUNTED[over]}",
        spec,
        notes=tuple(notes),
        cells=links,
        **table(heads, lines),
    )


def decidable(table: pd.DataFrame) -> pd.Series[bool]:
    """Whether each cell of ratios has two launches a side: one has no known spread."""
    return (table[["launches_base", "launches_new"]].astype(int) > 1).all(axis=1)


def describe_counts(tables: Iterable[pd.DataFrame], over: str) -> str:
    """``24 of 312 cells slower, 288 faster``; of cells that launches cannot decide it says so, and their largest
    difference. `over` is ``ranks`` or ``devices``."""
    cells = [cell for table in tables for cell in records(table.assign(decidable=decidable(table)))]
    decided = [cell.verdict for cell in cells if cell.decidable]
    text = f"{decided.count('slower')} of {plural(len(decided), 'cell')} slower, {decided.count('faster')} faster"
    left = [cell for cell in cells if not cell.decidable]
    if not left:
        return text
    of = f" of {plural(len(left), 'more cell')}" if decided else ""
    open_ = f"one launch of a side decides nothing{of}"
    most = max(left, key=lambda cell: abs(math.log(cell.ratio)))
    if max(most.ratio, 1 / most.ratio) > 1.005:  # else it is 1×
        count = getattr(most, over)
        size = "" if theme.absent(most.size_bytes) or not most.size_bytes else f" {size_text(int(most.size_bytes))}"
        counts = "" if theme.absent(count) else f" on {int(count)} {COUNTED[over]}"
        open_ += f"; largest difference: {most.benchmark}{size}{counts}, {factor_text(most.ratio)}"
    return f"{text}; {open_}" if decided else open_


def _grid(cells: Iterable[Record], row: str, column: str) -> tuple[list[int], list[int], list[list[Record]]]:
    """The values of two columns in order, and a row of cells for each of the first; None where there is no cell."""
    at = {(int(getattr(cell, row)), int(getattr(cell, column))): cell for cell in cells}
    rows, columns = (sorted({place[axis] for place in at}) for axis in (0, 1))
    return rows, columns, [[at.get((count, size)) for size in columns] for count in rows]


def usual(benchmark: str) -> tuple[bool, str]:
    """The order of benchmarks that are alike otherwise: allreduce, which most readers look for, then by name."""
    return benchmark != "allreduce", benchmark


def _worst(known: pd.DataFrame) -> pd.DataFrame:
    """Of several cells at one place (types, roots) the one beyond the noise that is farthest from 1."""
    far = known["ratio"].map(lambda ratio: abs(math.log(ratio))) + 100.0 * (known["verdict"] != "")
    return known.assign(far=far).sort_values("far").drop_duplicates(["benchmark", "count", "size"], keep="last")


def _ratio_figure(cells_of: Mapping[str, Sequence[Record]], unit: str) -> tuple[Layout, dict[int, list[list[str]]]]:
    """A panel for each benchmark, and where a click on its cells leads to; `unit` is the title of the y axes."""
    grids = {name: _grid(cells, "count", "size") for name, cells in cells_of.items()}
    tall = max([_LEAST_PANEL, *(_ROW * len(counts) for counts, *_ in grids.values())])
    columns = max(2, min(COLUMNS, len(grids)))
    beside, below, fewer = (
        PanelPlaces(len(grids), many, tall, _GAP, 0.05) for many in (columns, COLUMNS_NARROW, COLUMNS_MIDDLE)
    )
    panels = [_ratio_panel(n, *grid, "" if at % columns else unit) for at, (n, grid) in enumerate(grids.items())]
    data, layout = arrange(panels, beside, {"narrow": below, "middle": fewer}, _RATIO_MARGIN)
    farthest = max([LEAST_REACH, *(abs(math.log2(cell.ratio)) for cells in cells_of.values() for cell in cells)])
    layout["coloraxis"] = _colour_axis(farthest, _BAR_BESIDE)
    narrow = layout["meta"]["narrow"]
    narrow["height"] += _BAR_BELOW
    narrow["coloraxis"] = _colour_axis(farthest, _BAR_UNDER)
    narrow["margin"] = {**_RATIO_MARGIN, "r": 6, "b": _RATIO_MARGIN["b"] + _BAR_BELOW}
    links = [
        [[f"/{cell.comparability_key}" if cell else "" for cell in row] for row in grid[-1]] for grid in grids.values()
    ]
    return {"data": data, "layout": layout}, dict(enumerate(links))


def _ratio_panel(
    name: str, counts: Sequence[int], sizes: Sequence[int], grid: Sequence[Sequence[Record]], unit: str
) -> DrawnPanel:
    slower = [cell.ratio for row in grid for cell in row if cell is not None and cell.verdict == "slower"]
    heading = theme.label(name, 22)
    heading = f"<b>{heading}</b> {theme.amount(median(slower))}× slower" if slower else heading
    look = {"text": [[*map(_mark, row)] for row in grid], "texttemplate": "%{text}", "coloraxis": "coloraxis"}
    hover = {"hovertext": [[*map(_hover, row)] for row in grid], "hoverinfo": "text"}
    z = [[None if cell is None else math.log2(cell.ratio) for cell in row] for row in grid]
    x_axis = place_axis([short_size(size) if size or len(sizes) > 1 else "no size" for size in sizes], 7)
    y_axis = place_axis([str(count or "") for count in counts], max(1, len(counts)))
    y_axis |= {"title": {"text": unit, "font": {"size": 12}, "standoff": 4}} if unit else {}
    places = [*range(len(sizes))], [*range(len(counts))]
    trace = theme.heatmap(*places, z, 1, name=theme.escape(name)) | look | hover
    return DrawnPanel(heading, [trace], x_axis, y_axis, shapes=_frame(grid))


_RATIO_MARGIN = {"l": 52, "r": 110, "t": 24, "b": 24}
_BAR_BELOW = 56
"""Pixels of the colour bar of a phone."""


_BAR_BESIDE = {"x": 1.01, "xanchor": "left", "y": 0.5, "len": 1.0}
_BAR_UNDER = {"orientation": "h", "len": 260, "lenmode": "pixels", "x": 0, "xanchor": "left"}
_BAR_UNDER |= {"yref": "container", "y": 0, "yanchor": "bottom"}


def _colour_axis(farthest: float, place: Layout) -> Layout:
    """The scale of log2 of the ratio, whose ends say where cells reach beyond them."""
    reach = min(MOST_REACH, farthest)
    factor = f"{'≥ ' if farthest > reach else ''}{theme.amount(2**reach)}"
    bar = {**place, "thickness": 10, "outlinewidth": 0, "tickfont": {"size": 11}}
    bar |= theme.ticks((-reach, 0, reach), (f"{factor}× faster", "same", f"{factor}× slower"))
    return {"cmin": -reach, "cmax": reach, "colorscale": [list(step) for step in SCALE], "colorbar": bar}


def _mark(cell: Record) -> str:
    if cell is None or cell.verdict:
        return ""
    return _HATCH if min(cell.launches_base, cell.launches_new) < 2 else _NO_DIFFERENCE


def _frame(grid: Sequence[Sequence[Record]]) -> list[Layout]:
    """A line around the slower cells; none where no cell is."""
    cells = ((row, at, cell) for row, line in enumerate(grid) for at, cell in enumerate(line) if cell is not None)
    inside = dict.fromkeys((row, at) for row, at, cell in cells if cell.verdict == "slower")
    edges: list[str] = []
    for row, at in inside:
        left, right, low, high = at - 0.5, at + 0.5, row - 0.5, row + 0.5
        around = {
            (row, at - 1): f"M{left},{low}L{left},{high}",
            (row, at + 1): f"M{right},{low}L{right},{high}",
            (row - 1, at): f"M{left},{low}L{right},{low}",
            (row + 1, at): f"M{left},{high}L{right},{high}",
        }
        edges += [edge for beside, edge in around.items() if beside not in inside]
    look = {"type": "path", "line": {"color": FRAME, "width": 2}}
    return [{**look, "path": "".join(edges)}] if edges else []


def _hover(cell: Record) -> str:
    if cell is None:
        return ""
    what = f"{cell.verdict}, " if cell.verdict else ""
    size = size_text(cell.size) if cell.size else "no size"
    counted = f"{cell.count}, " if cell.count else ""
    return f"{counted}{size}: {cell.ratio:.3f}×, {what}{theme.duration(cell.base_us)} → {theme.duration(cell.new_us)}"


def winners(best: pd.DataFrame, what: str) -> View:
    """A map of sizes and ranks: the colour is the fastest setting, the number its time over the default's.

    Args:
        best: ``ranks``, ``size_bytes``, ``setting``, ``time_us``, ``ratio`` (over the default's time; nan where the
            default was not measured), ``launches``.
        what: what was tuned, as ``allreduce, MPICH 5.0.2``.
    """
    counts, sizes, grid = _grid(records(best), "ranks", "size_bytes")
    settings = [TUNE_DEFAULT, *sorted(set(best["setting"]) - {TUNE_DEFAULT})]
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
        (r.ranks, size_text(r.size_bytes), r.setting, theme.finite(r.time_us), theme.finite(r.ratio), r.launches)
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
    nodes = sorted({*links["source"], *links["target"]}, key=natural_key)
    place = {node: i for i, node in enumerate(nodes)}
    grid = np.full((len(nodes), len(nodes)), np.nan)
    grid[links["source"].map(place), links["target"].map(place)] = links["value"]
    middle = float(np.nanmedian(grid))
    percent = 100 * grid / middle
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all NaN: nothing was measured there
        each = np.nanmedian(np.hstack((percent, percent.T)), axis=1)
        step = math.ceil(len(nodes) / MOST_DRAWN)
        starts = range(0, len(nodes), step)
        drawn = np.array([[np.nanmin(percent[i : i + step, j : j + step]) for j in starts] for i in starts])
        lowest = [float(np.nanmin(each[i : i + step])) for i in starts]
    names = [theme.escape(range_text(nodes[i : i + step])) for i in starts]
    reach = max(5.0, float(np.nanmax(np.abs(percent - 100))))
    bar = {"title": {"text": "% of median"}, "thickness": 12}
    heat = theme.diverging(100, reach, bar, "%{y} → %{x}: %{z:.1f} %<extra></extra>")
    off = {"type": "bar", "x": names, "y": [value if value is None else value - 100 for value in theme.numbers(lowest)]}
    look = {"yaxis": "y2", "marker": {"color": theme.colour(0)}, "name": "node"}
    data = [
        {**heat, "x": names, "y": names, "z": [theme.numbers(r) for r in drawn]},
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
    by_value = records(links.nsmallest(MOST_LISTED, "value", keep="first"))
    lines = [(str(r.source), str(r.target), 100 * float(r.value) / middle, float(r.value)) for r in by_value]
    notes = ["Above: the median of a node's links, off the median of all."]
    if step > 1:
        notes.append(f"Each cell and bar: the slowest of {step} neighbouring nodes.")
    if len(lines) < len(links):
        notes.append(f"Listed: the slowest {plural(len(lines), 'link')} of {len(links)}.")
    return View(
        "pairs",
        f"{worst} is the slowest of {plural(len(links), 'link')}, at {float(np.nanmin(percent)):.0f} % of the median",
        f"{plural(len(nodes), 'node')}; the median is {middle:.4g} {unit}",
        {"data": data, "layout": layout},
        notes=(*notes, *(f"{what}: {state}" for what, state in (confirmed or {}).items())),
        **table(("from", "to", "% of median", unit), lines),
    )

"""Two sides against each other: the board of verdicts, the ratio over message size, and what two selections show.

A *verdict table* has a row a cell: ``cell`` (its name), ``verdict`` (one of
:data:`omb_py.dashboards.base.theme.VERDICT_COLOURS`), ``ratio``, ``low``, ``high`` (new over base, in time, with its
interval), and, where known, ``size_bytes``, ``series``, ``median_ratio`` (``ratio`` may be a
tail's), ``base_us``, ``new_us``, ``launches_base``, ``launches_new``, ``detectable``.
These views draw verdicts; they make none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import View, plural, records, table
from omb_py.dashboards.figures import curves
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd

ORDER = ("SLOWER", "UNCLEAR", "NOT COMPARABLE", "FASTER", "SAME")
"""The order in which verdicts are read."""
DELTA = 0.03
"""Smallest change that counts, where the table does not say."""
MOST_BARS = 40
"""Cells drawn in a board; the table has all."""


def headline(verdicts: pd.DataFrame) -> str:
    """``3 slower, 1 faster, 62 same, 6 unclear``."""
    count = verdicts["verdict"].value_counts()
    words = ("SLOWER", "FASTER", "SAME", "UNCLEAR", "NOT COMPARABLE")
    return ", ".join(f"{int(count.get(w, 0))} {w.lower()}" for w in words if count.get(w, 0) or w == "SLOWER")


def board(verdicts: pd.DataFrame, delta: float = DELTA, site_rate: str = "", name: str = "") -> View:
    """The verdicts by severity, each with its ratio and interval on a logarithmic axis, ±delta shaded.

    Args:
        verdicts: a verdict table; at least one row.
        delta: smallest change that counts.
        site_rate: the false-alarm rate on this site, as a sentence.
        name: what is compared, for the title.
    """
    ranked = _ranked(verdicts)
    drawn = ranked[ranked["ratio"].notna()].head(MOST_BARS)
    names = [theme.escape(name) for name in drawn["cell"]]
    data = []
    for word in ORDER:
        part = drawn[drawn["verdict"] == word]
        if len(part):
            data.append(_points(part, [theme.escape(n) for n in part["cell"]], word, across=True))
    layout = theme.layout(
        height=130 + 24 * len(drawn),
        shapes=_band(delta, "x"),
        xaxis={**_ratio_axis(drawn, 1), "title": {"text": "time, new over base (ratio)"}},
        yaxis={"type": "category", "autorange": "reversed", "categoryorder": "array", "categoryarray": names},
        legend={**theme.layout()["legend"], "y": -70 / max(24 * len(drawn), 60)},
    )
    notes = [f"Shaded: changes under {100 * delta:.0f} %, which do not count."]
    if len(ranked) > len(drawn):
        notes.append(f"Drawn: the first {len(drawn)} of {plural(len(ranked), 'cell')}; the table has all.")
    return View(
        "board",
        f"{name}: {headline(verdicts)}" if name else headline(verdicts),
        site_rate or "No false-alarm rate is known for this site: omb-py aa.",
        {"data": data, "layout": layout},
        notes=tuple(notes),
        **_verdict_table(ranked),
    )


def ratio(verdicts: pd.DataFrame, name: str, delta: float = DELTA) -> View:
    """New over base across message sizes: filled where it is decided, hollow where it is not.

    Args:
        verdicts: rows of a verdict table with ``size_bytes``; a line for each ``series`` where there is that column.
        name: what is compared, for the title.
        delta: smallest change that counts.
    """
    known = verdicts[verdicts["ratio"].notna() & verdicts["size_bytes"].notna()].sort_values("size_bytes")
    places = theme.sizes_on_axis([int(s) for s in known["size_bytes"]] or [1])
    groups = list(known.groupby("series", sort=True)) if "series" in known else [("", known)]
    data: list[dict[str, Any]] = []
    for index, (label, part) in enumerate(groups):
        x = [places[int(s)] for s in part["size_bytes"]]
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": x,
                # a line from medians to a p99 would show a jump that no statistic made
                "y": theme.numbers(part["median_ratio"] if "median_ratio" in part else part["ratio"]),
                "hoverinfo": "skip",
                "line": {**theme.line(index), "width": 1},
                "name": theme.label(str(label)) or "ratio",
                "legendgroup": f"s{index}",
                "showlegend": len(groups) > 1,
            }
        )
        for word in ORDER:
            some = part[part["verdict"] == word]
            if len(some):
                at = [places[int(s)] for s in some["size_bytes"]]
                data.append(
                    {**_points(some, at, word, across=False), "legendgroup": f"s{index}", "showlegend": index == 0}
                )
    layout = theme.layout(
        shapes=_band(delta, "y"),
        xaxis=theme.size_axis([int(s) for s in known["size_bytes"]] or [1]),
        yaxis={**_ratio_axis(known), "title": {"text": "time, new over base (ratio)"}},
    )
    return View(
        "ratio",
        f"{name}: {_farthest(known)}",
        f"{plural(len(known), 'cell')}; bars are intervals of the ratio",
        {"data": data, "layout": layout},
        notes=("Filled: decided; hollow: not. The line joins the ratios of medians.",),
        **_verdict_table(_ranked(verdicts)),
    )


def _farthest(known: pd.DataFrame) -> str:
    """The cell that a reader looks for: of what is decided, else of all, the one farthest from 1."""
    decided = known[known["verdict"].isin(["SLOWER", "FASTER"])]
    part = decided if len(decided) else known
    if not len(part):
        return "no ratio is known"
    row = part.iloc[int(part["ratio"].map(lambda v: abs(math.log(v)) if v > 0 else math.inf).to_numpy().argmax())]
    among = f", the farthest of {plural(len(part), 'cell')}{' that changed' if len(decided) else ''}"
    sentence = f"{row['cell']} took {theme.amount(float(row['ratio']))}× the time ({str(row['verdict']).lower()})"
    return sentence + (among if len(part) > 1 else "")


def _base_is_slower(ratios: Sequence[float]) -> bool:
    """Whether the ratio farthest from 1 lies below it. Of two as far from 1 but for rounding, the one above counts."""
    return -math.log(min(ratios)) > math.log(max(ratios)) + 1e-9


def beside(base: pd.DataFrame, new: pd.DataFrame, names: tuple[str, str], what: str) -> View | None:
    """Two selections side by side: the ratio of their medians over launches at each size. No verdict.

    Args:
        base: cells of the one side, columns of the store.
        new: cells of the other side.
        names: what the sides are called.
        what: the benchmark, for the title.

    Returns:
        None where no cell of the one has the comparability key of a cell of the other: they measured other things.

    The bars are the range from (lowest new / highest base) to (highest new / lowest base) of the launches.
    """

    both = _matched(base, new)
    if not len(both):
        return None
    both["apart"] = (both["low"] > 1) | (both["high"] < 1)
    sizes = [int(s) for s in both["size_bytes"].fillna(0)]
    places = theme.sizes_on_axis(sizes)
    ratios = [float(v) for v in both["ratio"]]
    if _base_is_slower(ratios):  # the figure says what the title says: the slower over the faster
        return beside(new, base, (names[1], names[0]), what)
    worst = ratios.index(max(ratios))
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": [places[s] for s in sizes],
            "y": ratios,
            "line": {**theme.line(0), "width": 1},
            "marker": {
                "size": 9,
                "color": theme.colour(0),
                "symbol": ["circle" if a else "circle-open" for a in both["apart"]],
            },
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": theme.numbers(both["high"] - both["ratio"]),
                "arrayminus": theme.numbers(both["ratio"] - both["low"]),
                "thickness": 1.2,
            },
            "text": [size_text(s) for s in sizes],
            "name": "ratio",
            "showlegend": False,
            "hovertemplate": "%{text}: %{y:.3f}<extra></extra>",
        }
    ]
    axis = {
        **_ratio_axis(both),
        "title": {"text": "ratio of times"},  # whose over whose is in the figure's title
    }
    title = (
        f"{what}: {names[1]} took up to {theme.amount(ratios[worst])}× the time of {names[0]}, at "
        f"{size_text(sizes[worst])}"
    )
    launches = (int(both["count_base"].max()), int(both["count_new"].max()))
    caption = (
        f"{names[1]} over {names[0]}; {launches[1]} and {launches[0]} launches; medians of launches, bars are "
        f"their range. "
        "No verdict: omb-py compare gives one."
    )
    return View(
        "beside",
        title,
        caption,
        {"data": data, "layout": theme.layout(shapes=_band(DELTA, "y"), xaxis=theme.size_axis(sizes), yaxis=axis)},
        notes=(f"Filled: the ranges of the launches do not overlap. Above 1, {names[1]} is slower.",),
        cells={0: [*map(series.cell_ids(new).__getitem__, sizes)]},
        **table(
            ("size", f"{names[0]} µs", f"{names[1]} µs", "ratio", "lowest", "highest", "launches"),
            [
                (
                    size_text(s),
                    float(r.median_base),
                    float(r.median_new),
                    float(r.ratio),
                    float(r.low),
                    float(r.high),
                    f"{r.count_base} and {r.count_new}",
                )
                for s, r in zip(sizes, records(both), strict=True)
            ],
        ),
    )


def factor(base: Mapping[Any, float], new: Mapping[Any, float]) -> float | None:
    """How far apart two sides are at the cell where they are farthest, at least 1; None where they have no cell in
    common. What :func:`beside` draws, without drawing it.

    Args:
        base: cell -> time.
        new: the same of the other side.
    """
    return max((max(new[cell] / time, time / new[cell]) for cell, time in base.items() if cell in new), default=None)


_CELL = ("comparability_key", "size_bytes")


def _matched(base: pd.DataFrame, new: pd.DataFrame, also: Sequence[str] = ()) -> pd.DataFrame:
    """Cells of both sides: median, lowest, highest and number of the launch medians of either."""
    keys = [*_CELL, *also]
    sides = [
        side.groupby(keys, dropna=False, observed=True)["median_us"].agg(["median", "min", "max", "count"])
        for side in (base, new)
    ]
    both = sides[0].add_suffix("_base").join(sides[1].add_suffix("_new"), how="inner").reset_index()
    both = both[(both["median_base"] > 0) & (both["median_new"] > 0)]
    return both.assign(
        ratio=both["median_new"] / both["median_base"],
        low=both["min_new"] / both["max_base"],
        high=both["max_new"] / both["min_base"],
    ).sort_values(["size_bytes", *also])


def beside_counts(
    base: pd.DataFrame, new: pd.DataFrame, names: tuple[str, str], what: str, over: str = "ranks"
) -> View | None:
    """Two selections side by side over the number of ranks or GPUs: the ratio of their medians, a line a message size.

    Args:
        base: cells of the one side, columns of the store.
        new: cells of the other side.
        names: what the sides are called.
        what: the benchmark, for the title.
        over: one of :data:`omb_py.dashboards.figures.curves.COUNTED`.

    Returns:
        None with fewer than two such numbers among the cells that both sides have. No verdict.
    """
    both = _matched(base, new, (over,))
    both = both[both[over].notna()]
    counts = sorted({int(n) for n in both[over]})
    if len(counts) < 2:
        return None
    spoken = curves.COUNTED[over]
    if _base_is_slower([float(v) for v in both["ratio"]]):
        return beside_counts(new, base, (names[1], names[0]), what, over)
    worst = both.iloc[int(both["ratio"].to_numpy().argmax())]
    data: list[dict[str, Any]] = []
    for index, size in enumerate(curves.spread(series.sizes(both) or [0], series.MOST_LINES)):
        part = both[both["size_bytes"].fillna(0) == size].groupby(over)["ratio"].median().reset_index()
        label, hover = size_text(size) if size else "no size", "%{x} " + spoken + ": %{y:.3f}"
        data.append(theme.series(index, label, [int(n) for n in part[over]], theme.numbers(part["ratio"]), hover))
    at = f"{size_text(worst['size_bytes'])}, " if not theme.absent(worst["size_bytes"]) else ""
    axis = {
        **_ratio_axis(both),
        "title": {"text": "ratio of times"},  # whose over whose is in the figure's title
    }
    return View(
        "beside_counts",
        f"{what}: {names[1]} took up to {theme.amount(float(worst['ratio']))}× the time of {names[0]}, at "
        f"{at}{int(worst[over])} {spoken}",
        f"{names[1]} over {names[0]}, medians of launches. No verdict: omb-py compare gives one.",
        {
            "data": data,
            "layout": theme.layout(
                shapes=_band(DELTA, "y"), xaxis=theme.count_axis(counts, spoken), yaxis=axis, showlegend=True
            ),
        },
        notes=(f"Above 1, {names[1]} is slower.",),
        **table(
            ("size", spoken, f"{names[0]} µs", f"{names[1]} µs", "ratio"),
            [
                (size_text(r.size_bytes), int(getattr(r, over)), r.median_base, r.median_new, r.ratio)
                for r in records(both)
            ],
        ),
    )


def _ranked(verdicts: pd.DataFrame) -> pd.DataFrame:
    known = {word: place for place, word in enumerate(ORDER)}
    keyed = verdicts.assign(
        _place=verdicts["verdict"].map(lambda w: known.get(w, len(ORDER))),
        _far=-verdicts["ratio"].map(lambda v: abs(float(v) - 1) if not theme.absent(v) else 0.0),
    )
    return keyed.sort_values(["_place", "_far"], kind="stable").drop(columns=["_place", "_far"])


def _points(part: pd.DataFrame, at: Sequence[Any], word: str, across: bool) -> dict[str, Any]:
    values = theme.numbers(part["ratio"])
    symbol = theme.VERDICT_MARKERS[word]
    bars = {
        "type": "data",
        "symmetric": False,
        "thickness": 1.5,
        "array": [
            None if h is None or v is None else h - v for h, v in zip(theme.numbers(part["high"]), values, strict=True)
        ],
        "arrayminus": [
            None if lo is None or v is None else v - lo
            for lo, v in zip(theme.numbers(part["low"]), values, strict=True)
        ],
    }
    x, y = (values, list(at)) if across else (list(at), values)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "name": word.lower(),
        "error_x" if across else "error_y": bars,
        "marker": {
            "symbol": symbol,
            "size": 10,
            "color": theme.VERDICT_COLOURS[word],
            "line": {"width": 1.5, "color": theme.VERDICT_COLOURS[word]},
        },
        "text": [theme.escape(c) for c in part["cell"]],
        "hovertemplate": "%{text}: %{" + ("x" if across else "y") + ":.3f}<extra>" + word.lower() + "</extra>",
    }


def _band(delta: float, axis: str) -> list[dict[str, Any]]:
    """Shapes: the band from 1 / (1 + delta) to 1 + delta, and the line at 1."""
    low, high = 1 / (1 + delta), 1 + delta
    ends = {"x0": low, "x1": high, "y0": 0, "y1": 1} if axis == "x" else {"y0": low, "y1": high, "x0": 0, "x1": 1}
    unity = {"x0": 1, "x1": 1, "y0": 0, "y1": 1} if axis == "x" else {"y0": 1, "y1": 1, "x0": 0, "x1": 1}
    frame = {"xref": "x", "yref": "paper"} if axis == "x" else {"xref": "paper", "yref": "y"}
    return [
        {"type": "rect", **frame, **ends, "fillcolor": theme.faint(theme.GREY), "line": {"width": 0}, "layer": "below"},
        {"type": "line", **frame, **unity, "line": {"width": 1, "color": theme.GREY}, "layer": "below"},
    ]


def _ratio_axis(rows: pd.DataFrame, steps_each_way: int = 3) -> dict[str, Any]:
    """Logarithmic and symmetric about 1, with ticks that say what they are."""
    reach = math.log10(1.1)
    for name in ("ratio", "low", "high"):
        reach = max([reach, *(abs(math.log10(v)) for v in theme.numbers(rows[name]) if v is not None and v > 0)])
    reach = min(reach * 1.12, 6.0)
    # the smallest reach has room for the first of them
    up = [steps for steps in _RATIO_STEPS if steps[-1] <= 10**reach][-1][-steps_each_way:]
    ticks = sorted([1 / s for s in up] + [1.0] + [float(s) for s in up])
    texts = ["1" if t == 1 else f"{t:g}×" if t > 1 else f"1/{1 / t:g}" for t in ticks]
    return {"type": "log", "range": [-reach, reach], "tickmode": "array", "tickvals": ticks, "ticktext": texts}


_RATIO_STEPS: tuple[tuple[float, ...], ...] = (
    *((1.02, 1.05, 1.1), (1.05, 1.1, 1.15), (1.1, 1.2, 1.3), (1.1, 1.2, 1.4), (1.2, 1.4, 1.6), (1.2, 1.5, 1.8)),
    *((1.25, 1.5, 2.0), (1.5, 2.0, 2.5), (1.5, 2.0, 3.0), (1.5, 2.5, 4.0), (2.0, 3.0, 6.0), (2.0, 5.0, 10.0)),
    *((3.0, 6.0, 20.0), (3.0, 10.0, 40.0), (5.0, 20.0, 100.0), (10.0, 50.0, 300.0), (10.0, 100.0, 1000.0)),
    *((10.0, 100.0, 3000.0), (20.0, 500.0, 10000.0), (30.0, 1000.0, 40000.0), (100.0, 3000.0, 200000.0)),
)
"""Ratios that are written at an axis, to each side of 1: about even on a logarithmic scale."""
_COLUMNS = (
    ("cell", "cell"),
    ("base µs", "base_us"),
    ("new µs", "new_us"),
    ("ratio", "ratio"),
    ("low", "low"),
    ("high", "high"),
    ("verdict", "verdict"),
    ("launches of base", "launches_base"),
    ("of new", "launches_new"),
    ("smallest change seen", "detectable"),
)


def _verdict_table(verdicts: pd.DataFrame) -> dict[str, Any]:
    shown = [(head, name) for head, name in _COLUMNS if name in verdicts]
    text = ("cell", "verdict")
    return table(
        [head for head, _ in shown],
        [
            [str(v) if n in text else theme.finite(v) for (_, n), v in zip(shown, row, strict=True)]
            for row in verdicts[[n for _, n in shown]].itertuples(index=False)
        ],
    )

"""Verdicts on two sides: the board, and the ratio over message size.

A *verdict table* has a row a cell: ``cell`` (its name), ``verdict`` (one of
:data:`omb_py.dashboards.base.theme.VERDICT_COLOURS`), ``ratio``, ``low``, ``high`` (new over base, in time, with its
interval), and, where known, ``size_bytes``, ``series``, ``median_ratio`` (``ratio`` may be a
tail's), ``base_us``, ``new_us``, ``launches_base``, ``launches_new``, ``detectable``.
These views draw verdicts; they make none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.theme import Layout, Trace, Values
from omb_py.dashboards.base.view import TableFields, View, plural, table

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


def verdict_marker(word: str) -> Layout:
    """The marker of a verdict."""
    return {"symbol": theme.VERDICT_MARKERS[word], "size": 10, "color": theme.VERDICT_COLOURS[word]}


def cell_axis(names: Sequence[str]) -> Layout:
    """An axis of cells, the first on top."""
    order = {"categoryorder": "array", "categoryarray": list(names)}
    return {"type": "category", "autorange": "reversed", **order}


def board(verdicts: pd.DataFrame, delta: float = DELTA, site_rate: str = "", name: str = "") -> View:
    """The verdicts of a verdict table by severity, each with its ratio and interval, changes under `delta` shaded;
    `site_rate` is the false-alarm rate on this site, as a sentence."""
    ranked = _ranked(verdicts)
    drawn = ranked[ranked["ratio"].notna()].head(MOST_BARS)
    parts = {word: drawn[drawn["verdict"] == word] for word in ORDER}
    data = [_points(part, [*map(theme.escape, part["cell"])], word, "x") for word, part in parts.items() if len(part)]
    layout = theme.layout(
        height=130 + 24 * len(drawn),
        shapes=_shaded(delta, "x"),
        xaxis={**_ratio_axis(drawn, 1), "title": {"text": "time, new over base (ratio)"}},
        yaxis=cell_axis([*map(theme.escape, drawn["cell"])]),
        legend={**theme.layout()["legend"], "y": -70 / max(24 * len(drawn), 60)},
    )
    notes = [f"Shaded: changes under {100 * delta:.0f} %, which do not count."]
    if len(ranked) > len(drawn):
        notes.append(f"Drawn: the first {len(drawn)} of {plural(len(ranked), 'cell')}; the table has all.")
    title = f"{name}: {headline(verdicts)}" if name else headline(verdicts)
    caption = site_rate or "No false-alarm rate is known for this site: omb-py aa."
    spec = {"data": data, "layout": layout}
    return View("board", title, caption, spec, notes=tuple(notes), **_verdict_table(ranked))


def ratio(verdicts: pd.DataFrame, name: str, delta: float = DELTA) -> View:
    """New over base across message sizes, a line for each ``series`` of a verdict table: filled where it is decided,
    hollow where it is not; `delta` is the smallest change that counts."""
    known = verdicts[verdicts["ratio"].notna() & verdicts["size_bytes"].notna()].sort_values("size_bytes")
    sizes = [int(s) for s in known["size_bytes"]] or [1]
    places = theme.sizes_on_axis(sizes)
    groups = list(known.groupby("series", sort=True)) if "series" in known else [("", known)]
    data: list[Trace] = []
    for index, (label, part) in enumerate(groups):
        x = [places[int(s)] for s in part["size_bytes"]]
        # a line from medians to a p99 would show a jump that no statistic made
        y = theme.numbers(part["median_ratio"] if "median_ratio" in part else part["ratio"])
        look = {"hoverinfo": "skip", "line": {**theme.line(index), "width": 1}, "showlegend": len(groups) > 1}
        group = {"legendgroup": f"s{index}"}
        data.append(theme.scatter("lines", x, y, theme.label(str(label)) or "ratio", **look, **group))
        for word in ORDER:
            cells = part[part["verdict"] == word]
            if len(cells):
                at = [places[int(s)] for s in cells["size_bytes"]]
                data.append({**_points(cells, at, word, "y"), **group, "showlegend": index == 0})
    y_axis = {**_ratio_axis(known), "title": {"text": "time, new over base (ratio)"}}
    layout = theme.layout(shapes=_shaded(delta, "y"), xaxis=theme.size_axis(sizes), yaxis=y_axis)
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


def _ranked(verdicts: pd.DataFrame) -> pd.DataFrame:
    known = {word: place for place, word in enumerate(ORDER)}
    keyed = verdicts.assign(
        _place=verdicts["verdict"].map(lambda w: known.get(w, len(ORDER))),
        _far=-verdicts["ratio"].map(lambda v: abs(float(v) - 1) if not theme.absent(v) else 0.0),
    )
    return keyed.sort_values(["_place", "_far"], kind="stable").drop(columns=["_place", "_far"])


def _points(part: pd.DataFrame, at: Values, word: str, axis: str) -> Trace:
    values = theme.numbers(part["ratio"])
    marker = {**verdict_marker(word), "line": {"width": 1.5, "color": theme.VERDICT_COLOURS[word]}}
    bars = {f"error_{axis}": theme.error_bars(values, part["low"], part["high"], 1.5)}
    hover = f"%{{text}}: %{{{axis}:.3f}}<extra>{word.lower()}</extra>"
    x, y = (values, list(at)) if axis == "x" else (list(at), values)
    text = [theme.escape(c) for c in part["cell"]]
    return theme.scatter("markers", x, y, word.lower(), **bars, marker=marker, text=text, hovertemplate=hover)


def _shaded(delta: float, axis: str) -> list[Layout]:
    """Shapes: the band from 1 / (1 + delta) to 1 + delta, and the line at 1."""
    line = {**theme.line_at(1, axis), "layer": "below"}
    ends = {f"{axis}0": 1 / (1 + delta), f"{axis}1": 1 + delta}
    return [{**line, "type": "rect", **ends, "fillcolor": theme.faint(theme.GREY), "line": {"width": 0}}, line]


def _ratio_axis(rows: pd.DataFrame, steps_each_way: int = 3) -> Layout:
    """Logarithmic and symmetric about 1, with ticks that say what they are."""
    values = [v for name in ("ratio", "low", "high") for v in theme.numbers(rows[name]) if v is not None and v > 0]
    reach = min(1.12 * max([math.log10(1.1), *(abs(math.log10(v)) for v in values)]), 6.0)
    # the smallest reach has room for the first of them
    up = [steps for steps in _RATIO_STEPS if steps[-1] <= 10**reach][-1][-steps_each_way:]
    places = sorted([1 / s for s in up] + [1.0] + [float(s) for s in up])
    texts = ["1" if t == 1 else f"{t:g}×" if t > 1 else f"1/{1 / t:g}" for t in places]
    return {"type": "log", "range": [-reach, reach], **theme.ticks(places, texts)}


_RATIO_STEPS: tuple[tuple[float, ...], ...] = (
    *((1.02, 1.05, 1.1), (1.05, 1.1, 1.15), (1.1, 1.2, 1.3), (1.1, 1.2, 1.4), (1.2, 1.4, 1.6), (1.2, 1.5, 1.8)),
    *((1.25, 1.5, 2.0), (1.5, 2.0, 2.5), (1.5, 2.0, 3.0), (1.5, 2.5, 4.0), (2.0, 3.0, 6.0), (2.0, 5.0, 10.0)),
    *((3.0, 6.0, 20.0), (3.0, 10.0, 40.0), (5.0, 20.0, 100.0), (10.0, 50.0, 300.0), (10.0, 100.0, 1000.0)),
    *((10.0, 100.0, 3000.0), (20.0, 500.0, 10000.0), (30.0, 1000.0, 40000.0), (100.0, 3000.0, 200000.0)),
)
"""Ratios that are written at an axis, to each side of 1: about even on a logarithmic scale."""
_HEADS = {
    "cell": "cell",
    "base_us": "base µs",
    "new_us": "new µs",
    "ratio": "ratio",
    "low": "low",
    "high": "high",
    "verdict": "verdict",
    "launches_base": "launches of base",
    "launches_new": "of new",
    "detectable": "smallest change seen",
}


def _verdict_table(verdicts: pd.DataFrame) -> TableFields:
    names = [name for name in _HEADS if name in verdicts]
    rows = [
        [str(v) if n in ("cell", "verdict") else theme.finite(v) for n, v in zip(names, row, strict=True)]
        for row in verdicts[names].itertuples(index=False)
    ]
    return table([_HEADS[name] for name in names], rows)

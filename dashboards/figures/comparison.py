"""Verdicts on two sides: the board.

A *verdict table* has a row a cell: ``cell`` (its name), ``verdict`` (one of
:data:`omb_py.dashboards.base.theme.VERDICT_LOOKS`), ``ratio``, ``low``, ``high`` (new over base, in time, with its
interval), and, where known, ``base_us``, ``new_us``, ``launches_base``, ``launches_new``, ``detectable``.
These views draw verdicts; they make none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.theme import Layout
from omb_py.dashboards.base.view import View, frame_table, plural
from omb_py.results.compare.judge import count_text

ORDER = ("SLOWER", "LIKELY SLOWER", "UNCLEAR", "NOT COMPARABLE", "LIKELY FASTER", "FASTER", "SAME")
"""The order in which verdicts are read."""
DELTA = 0.03
"""Smallest change that counts, where the table does not say."""
MOST_BARS = 40
"""Cells drawn in a board; the table has all."""


def headline(verdicts: pd.DataFrame) -> str:
    """``3 slower, 1 faster, 62 same, 6 unclear``."""
    return count_text(Counter(map(str, verdicts["verdict"])))


def board(verdicts: pd.DataFrame, delta: float = DELTA, site_rate: str = "", name: str = "") -> View:
    """The verdicts of a verdict table by severity, each with its ratio and interval, changes under `delta` shaded;
    `site_rate` is the false-alarm rate on this site, as a sentence."""
    ranked = _ranked(verdicts)
    drawn = ranked[ranked["ratio"].notna()].head(MOST_BARS)
    line, ends = {**theme.line_at(1), "layer": "below"}, {"x0": 1 / (1 + delta), "x1": 1 + delta}
    spec = verdict_figure(
        drawn,
        ORDER,
        shapes=[{**line, "type": "rect", **ends, "fillcolor": theme.faint(theme.GREY), "line": {"width": 0}}, line],
        xaxis=_ratio_axis(drawn),
        legend={**theme.layout()["legend"], "y": -70 / max(24 * len(drawn), 60)},
    )
    notes = [f"Shaded: changes under {100 * delta:.0f} %, which do not count."]
    if len(ranked) > len(drawn):
        notes.append(f"Drawn: the first {len(drawn)} of {plural(len(ranked), 'cell')}; the table has all.")
    title = f"{name}: {headline(verdicts)}" if name else headline(verdicts)
    caption = site_rate or "No false-alarm rate is known for this site: omb-py aa."
    return View("board", title, caption, spec, notes=tuple(notes), **frame_table(ranked, _HEADS, ("cell", "verdict")))


def _ranked(verdicts: pd.DataFrame) -> pd.DataFrame:
    known = {word: place for place, word in enumerate(ORDER)}
    keyed = verdicts.assign(
        _place=verdicts["verdict"].map(lambda w: known.get(w, len(ORDER))),
        _far=-verdicts["ratio"].map(lambda v: abs(float(v) - 1) if not theme.absent(v) else 0.0),
    )
    return keyed.sort_values(["_place", "_far"], kind="stable").drop(columns=["_place", "_far"])


def verdict_figure(verdicts: pd.DataFrame, order: Sequence[str], **layout: object) -> Layout:
    """A marker a cell with its interval, the first on top, a trace a word; ``text`` says more than the ratio."""
    data = []
    for word in order:
        part = verdicts[verdicts["verdict"] == word]
        if not len(part):
            continue
        (colour, symbol), ratios = theme.VERDICT_LOOKS[word], theme.numbers(part["ratio"])
        marker = {"symbol": symbol, "size": 10, "color": colour, "line": {"width": 1.5, "color": colour}}
        bars = theme.error_bars(ratios, part["low"], part["high"], 1.5)
        said = {"text": list(part["text"])} if "text" in part else {}
        hover = f"%{{y}}: %{{{'text' if said else 'x:.3f'}}}<extra>{word.lower()}</extra>"
        more = {"error_x": bars, "marker": marker, "hovertemplate": hover, **said}
        data.append(theme.scatter("markers", ratios, [*map(theme.escape, part["cell"])], word.lower(), **more))
    names = [*map(theme.escape, verdicts["cell"])]
    axis = {"type": "category", "autorange": "reversed", "categoryorder": "array", "categoryarray": names}
    if "label" in verdicts:
        axis |= theme.ticks(names, verdicts["label"])
    return {"data": data, "layout": theme.layout(height=130 + 24 * len(names), **layout, yaxis=axis)}


def ends_of(verdicts: pd.DataFrame) -> list[float]:
    """Ratios and the ends of their intervals, those above 0."""
    return [v for name in ("ratio", "low", "high") for v in theme.numbers(verdicts[name]) if v is not None and v > 0]


def _ratio_axis(rows: pd.DataFrame) -> Layout:
    """Logarithmic and symmetric about 1, with few ticks: a phone has room for them."""
    reach = math.exp(min(1.12 * max([math.log(1.1), *(abs(math.log(v)) for v in ends_of(rows))]), 14.0))
    axis = theme.value_axis("time, new over base (ratio)", values=[reach, 1.0, 1 / reach])
    return {**axis, **theme.thinned(axis, 5)}


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

"""A picture that stands alone, for slides and issues: what was compared, on what hardware, and who is fastest where."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from omb_py import __version__
from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.theme import Layout, Trace
from omb_py.dashboards.base.view import TableFields, View, plural, records, table
from omb_py.dashboards.changes.ratios import with_logs
from omb_py.dashboards.changes.sides import find_named, keep_common_method
from omb_py.dashboards.figures.curves import BETWEEN, COUNTED, SIZE, PanelGrid, Points, multiples, points
from omb_py.dashboards.figures.fastest import UNITS, crossovers, fastest_at, title
from omb_py.dashboards.views.cells import Cells
from omb_py.dashboards.views.first_screen import MOST_SIDES, FirstScreen, labels
from omb_py.dashboards.views.overview import machines
from omb_py.errors import UsageError
from omb_py.printing.export import csv_text
from omb_py.results.units import listed


def legend(known: Points, crossed: bool) -> str:
    """What lines, bands and dashes are."""
    several = any(table["launches"].max() > 1 for table in known.known.values())
    single = any(table["launches"].max() < 2 for table in known.known.values())
    parts = ["line: median over launches", *(["band: their range"] if several else [])]
    parts += ["dashed: another side is the fastest from here on"] if crossed else []
    parts += ["where a side has one launch, its spread is unknown"] if single else []
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}. Drawn by omb-py {__version__}."


def caption(cells: Cells) -> str:
    """Ranks, GPUs and nodes, hardware, launches and days."""
    rows, parts = cells.rows, [machines(cells)]
    launches = rows.groupby([*series.FULL_NAME, "ranks"], observed=True, dropna=False)["launch_id"].nunique()
    low, high = int(launches.min()), int(launches.max())
    parts += [f"{plural(high, 'launch') if low == high else f'{low} to {high} launches'} each"]
    parts += ["printed means, no samples"] if series.statistic(rows) == series.PRINTED_MEAN else []
    return " · ".join(part for part in [*parts, series.days(rows)] if part)


@dataclass(frozen=True)
class PictureSize:
    """Where a picture is meant to stand. All in pixels, 96 an inch."""

    width: int
    panel: int
    """Height of a row of panels."""
    margin: int
    left: int
    """Room for the y axis."""
    text: int
    """Size of ticks, titles of axes and the legend."""
    beside: int
    """Most panels beside each other."""
    ticks: int
    """Most ticks of an x axis."""

    def look(self, kind: str) -> tuple[int, int]:
        """Size of a kind of text, and the letters of a line of it."""
        size = round(_SIZES[kind] * self.text)
        wide = 0.62 if kind in ("title", "label") else 0.53
        return size, int((self.width - 2 * self.margin) / (wide * size))


SIZES = {
    "slide": PictureSize(1200, 270, 34, 92, 13, 3, 5),
    "paper": PictureSize(672, 150, 8, 62, 9, 3, 3),
    "column": PictureSize(336, 118, 4, 52, 8, 2, 3),
}
"""By name: a slide; the text of a page of two columns, 7 inches; one of its columns, 3.5 inches."""
_SIZES = {"label": 1.3, "title": 1.6, "caption": 1.15, "note": 1.0}
"""Of each kind of text: how many times as large as the ticks."""
_SLIDE_TEXT, _ENTRY = 13, 46
"""Size of text that the distances between parts are made for, and pixels of a legend's line and gap there."""


@dataclass(frozen=True)
class Picture:
    """A figure that says everything by itself."""

    view: View
    labels: tuple[str, ...]
    """SIMULATED, STAGED, SHARED, and of what."""
    size: PictureSize
    numbers: TableFields
    """What is drawn, a row a point."""

    def spec(self, look: str) -> Layout:
        """Plotly's data and layout with all texts inside, in a theme; the layout has width and height."""
        size, scale = self.size, self.size.text / _SLIDE_TEXT
        if self.view.spec is None:
            raise ValueError("a picture has a figure")
        drawn: Layout = self.view.spec["layout"]
        beside = len({tuple(axis.get("domain", (0, 1))) for name, axis in drawn.items() if name.startswith("xaxis")})
        rows = max(-(-int(name[5:] or 1) // beside) for name in drawn if name.startswith("yaxis"))
        heads = [*(("label", text) for text in self.labels), ("title", self.view.title), ("caption", self.view.caption)]
        above, legend_top = _stack(heads, 14.0 * scale, size)
        foot, bottom = _stack([("note", note) for note in self.view.notes], 58.0 * scale, size)
        legend_top += 4 * scale
        names = [trace["name"] for trace in self.view.spec["data"] if trace.get("showlegend")]
        entries = sum(0.55 * size.text * len(name) + _ENTRY * scale for name in names)
        lines = math.ceil(entries / (size.width - 2 * size.margin))
        top = legend_top + (34 + 22 * lines) * scale + 6
        right = size.margin + round(1.5 * size.text)  # half of the last tick's text
        inner = round((rows + BETWEEN * (rows - 1)) * size.panel)
        texts = [{**text, "y": 1, "yshift": top - at, "yanchor": "top"} for text, at in above]
        texts += [{**text, "y": 0, "yshift": -at, "yanchor": "top"} for text, at in foot]
        left = (size.margin - size.left) / (size.width - size.left - right)
        named = drawn["yaxis"].get("type") == "category"  # names need more room than numbers
        place = {"y": 1 + (top - legend_top) / inner, "yanchor": "top", "x": left}
        layout = {
            **{name: _fit(name, value, size) for name, value in drawn.items() if name != "meta"},
            "width": size.width,
            "height": round(top + inner + bottom + 10 * scale),
            "template": theme.template(look),
            "font": {"size": size.text},
            "margin": {"l": size.left, "r": right, "t": round(top), "b": round(bottom + 10), "autoexpand": named},
            "annotations": [*(_scale(note, scale) for note in drawn.get("annotations", ())), *texts],
            "legend": {**drawn["legend"], "font": {"size": size.text + 1}, **place},
            "showlegend": drawn.get("showlegend", True),
            "hovermode": False,
        }
        return {"data": [_thin_out(trace, scale) for trace in self.view.spec["data"]], "layout": layout}

    def csv(self) -> str:
        """What is drawn, as the text of a CSV file."""
        return csv_text(self.numbers["columns"], self.numbers["rows"])


def _fit(name: str, value: Any, size: PictureSize) -> Any:
    """A part of the layout: axes with letters and ticks that there is room for."""
    if not name.startswith(("xaxis", "yaxis")):
        return value
    ticks = theme.thinned(value, size.ticks) if name.startswith("xaxis") else {}
    return {**value, **ticks, "title": {**value.get("title", {}), "font": {"size": size.text + 1}, "standoff": 4}}


def _scale(annotation: Layout, scale: float) -> Layout:
    return {**annotation, "font": {"size": round(annotation.get("font", {}).get("size", _SLIDE_TEXT) * scale)}}


def _thin_out(trace: Trace, scale: float) -> Trace:
    """A trace with lines and markers as thin as the picture is small."""
    parts = {"line": "width", "marker": "size"}
    own = {part: what for part, what in parts.items() if what in trace.get(part, {})}
    small = {part: {**trace[part], what: trace[part][what] * scale} for part, what in own.items()}
    return {**trace, **small}


def _stack(texts: Iterable[tuple[str, str]], at: float, size: PictureSize) -> tuple[list[tuple[Layout, float]], float]:
    """Texts of some kinds below each other as annotations, each with its distance from the edge in pixels, and where
    the next one would begin."""
    annotations = []
    for kind, text in texts:
        points, letters = size.look(kind)
        lines = textwrap.wrap(text, letters) or [""]
        joined = "<br>".join(theme.escape(line) for line in lines)
        red = {"color": theme.VERDICT_LOOKS["SLOWER"][0]} if kind == "label" else {}
        left = {"showarrow": False, "align": "left", "x": 0, "xanchor": "left", "xshift": -(size.left - size.margin)}
        strong = f"<b>{joined}</b>" if kind in ("title", "label") else joined
        look = {"text": strong, "font": {"size": points, **red}, "xref": "paper", "yref": "paper"}
        annotations.append(({**look, **left}, at))
        at += 1.32 * points * len(lines) + 6 * size.text / _SLIDE_TEXT
    return annotations, at


def picture(
    cells: Cells, name: str, words: Sequence[str], grid: PanelGrid, size: PictureSize = SIZES["slide"]
) -> Picture:
    """Compare sides of the benchmark `name`.

    Args:
        cells: its cells.
        words: what names the sides (:func:`omb_py.dashboards.changes.sides.find_named`); empty for those that the
            first screen would compare.
        grid: what stands on the axes; quantity ``auto`` is what the benchmark prints, a bandwidth or a time.

    Raises:
        UsageError: nothing fits, or a word names no side; the text says what there is.
    """
    _check_positive(cells.timed, name)
    grid = replace(grid, quantity=_quantity(cells.timed, name, grid))
    cells = replace(cells, rows=_select_counted(cells.timed, name, grid))
    screen = FirstScreen(cells)
    chosen = find_named(words, screen.sides) if words else screen.drawn
    if len(chosen) > MOST_SIDES:
        names = listed((side.name for side in chosen), len(chosen))
        raise UsageError(
            f"a picture has room for {MOST_SIDES} sides, and these are {len(chosen)}: {names}; name fewer by --compare"
        )
    sides, notes = keep_common_method(
        ((side.name, side.rows(cells.timed)) for side in chosen), "; --where chooses another"
    )
    sides = [(side, rows.assign(**{grid.over: rows[grid.over].fillna(0)})) for side, rows in sides]
    known = points(sides, grid)
    if not known.known:
        raise UsageError(f"{name} has no message size: --over ranks")
    judged = screen.judged(name, grid.over)
    fastest = {panel: fastest_at(known, panel, judged) for panel in known.panels}
    marks = {panel: crossovers(each, grid) for panel, each in fastest.items()}
    count = len(known.panels)
    beside = min(size.beside, count if count <= 3 else 2 if count == 4 else 3)
    view = multiples(sides, name, known, banded=True, columns=beside, marks=marks)
    assert view is not None
    shown = replace(cells, rows=series.concat(rows for _, rows in sides))
    notes = [legend(known, any(marks.values())), *notes]
    view = replace(view, kind="picture", title=title(name, known, fastest), caption=caption(shown), notes=tuple(notes))
    return Picture(view, labels(shown), size, _numbers(name, known))


def _numbers(name: str, known: Points) -> TableFields:
    """A row a side, panel and place on the x axis: median, lowest and highest of its launches."""
    grid = known.grid
    heads = ["gpus" if column == "devices" else column for column in (grid.panel, grid.across)]
    unknown, unit = 0 if grid.panel == SIZE else None, UNITS[grid.quantity]
    rows = [
        (name, side, panel or unknown, int(x), row.middle, row.low, row.high, unit, int(row.launches))
        for (side, panel), table_of in known.known.items()
        for x, row in zip(table_of.index, records(table_of), strict=True)
    ]
    return table(("benchmark", "side", *heads, "median", "low", "high", "unit", "launches"), rows)


def _quantity(rows: pd.DataFrame, name: str, grid: PanelGrid) -> str:
    """The quantity of a grid, or for ``auto`` that which a benchmark prints. Raises UsageError where no row has it."""
    rated = series.in_rate(rows) & (rows["value"] > 0).fillna(False)
    timed = (rows["median_us"] > 0).fillna(False)
    has = {"bandwidth": rated, "time": timed, "busbw": (rows["busbw_gbps"] > 0).fillna(False), "ratio": rated | timed}
    if grid.across == SIZE:  # what has no size is named by another message
        sized = (rows["size_bytes"] > 0).fillna(False) & (rated | timed)
        has = {quantity: known & sized for quantity, known in has.items()} if bool(sized.any()) else has
    there = [quantity for quantity, known in has.items() if bool(known.any())]
    if grid.quantity == "auto":
        return there[0]
    if grid.quantity not in there:
        what = {"busbw": "bus bandwidth"}.get(grid.quantity, grid.quantity)
        raise UsageError(f"{name} has no {what} in this store: --quantity {' or '.join(there)}")
    return grid.quantity


def _check_positive(rows: pd.DataFrame, name: str) -> None:
    """Raises UsageError where no cell has a time or a bandwidth: a printed 0.00 is none."""
    if len(with_logs(rows)):
        return
    if bool((rows["value"] > 0).any()):
        unit = rows.loc[(rows["value"] > 0).fillna(False), "unit"].iloc[0]
        raise UsageError(f"a picture is of times and bandwidths, and {name} has {unit}: omb-py report draws it")
    raise UsageError(
        f"no value of {name} is above 0, so there is nothing to draw: choose others with --where or --store"
    )


def _select_counted(rows: pd.DataFrame, name: str, grid: PanelGrid) -> pd.DataFrame:
    """The rows with a count, or all over size. Raises UsageError where none has a count, or there is one to draw over.

    Rows of a log that does not say its ranks are drawn over size in a panel of their own, as 0 ranks.
    """
    if grid.across == SIZE:
        return rows
    own, rows = rows, rows[rows[grid.over].fillna(0) > 0]
    counted = COUNTED[grid.over]
    values = sorted({int(count) for count in rows[grid.over]})
    by_size = "--over size, or " if bool((own["size_bytes"] > 0).fillna(False).any()) else ""
    if not values and grid.over == "ranks":
        raise UsageError(
            f"the log of {name} does not say its ranks: {by_size}their number by omb-py results import LOG --again "
            "--set ranks=8"
        )
    if not values:
        raise UsageError(f"no cell of {name} was measured on {counted}: {by_size}--over ranks")
    if len(values) < 2:
        raise UsageError(
            f"{name} was measured on {values[0]} {counted} only: {by_size}measure other numbers of {counted}"
        )
    return rows

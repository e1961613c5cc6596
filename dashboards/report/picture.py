"""A picture that stands alone, for slides and issues: what was compared, on what hardware, and who is fastest where."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omb_py import __version__
from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.theme import Layout
from omb_py.dashboards.base.view import View, listed, plural
from omb_py.dashboards.changes.ratios import crossovers, fastest_at, title
from omb_py.dashboards.changes.sides import keep_common_method, named
from omb_py.dashboards.figures.curves import COUNTED, PanelGrid, Points, multiples, points
from omb_py.dashboards.views.cells import Cells
from omb_py.dashboards.views.first_screen import MOST_SIDES, FirstScreen, labels
from omb_py.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

WHO = ("backend", "library", "library_version")


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
    rows = cells.rows
    parts = [_span(rows[column], word) for column, word in (("devices", "GPU"), ("ranks", "rank"), ("nodes", "node"))]
    parts = parts[:1] + parts[2:] if parts[0].replace("GPU", "rank") == parts[1] else parts
    launches = rows.groupby([*WHO, "ranks"], observed=True, dropna=False)["launch_id"].nunique()
    low, high = int(launches.min()), int(launches.max())
    parts += [_hardware(cells)]
    parts += [f"{plural(high, 'launch') if low == high else f'{low} to {high} launches'} each"]
    parts += ["printed means, no samples"] if series.statistic(rows) == series.PRINTED_MEAN else []
    return " · ".join(part for part in [*parts, series.days(rows)] if part)


def _span(column: pd.Series[Any], word: str) -> str:
    values = sorted({int(value) for value in column.dropna() if value > 0})
    if not values:
        return ""
    return plural(values[0], word) if len(values) == 1 else f"{values[0]} to {values[-1]} {word}s"


def _hardware(cells: Cells) -> str:
    devices = [name for name in cells.rows["device_name"].unique() if not theme.absent(name)]
    if devices:
        return listed(devices)
    newest = cells.rows.sort_values("started_at").drop_duplicates([*WHO], keep="last")["launch_id"]
    nodes = [node for launch in newest for node in cells.provenance(str(launch)).get("node_facts") or ()]
    names = [str((node.get("cpu") or {}).get("model name") or "") for node in nodes if isinstance(node, dict)]
    return listed(" ".join(name.split()) for name in names if name)


WIDTH = 1200
"""Of a picture, in pixels."""
_PANEL, _MARGIN, _LEFT = 270, 34, 92
"""Height of a row of panels, free margin, and room for the y axis, in pixels."""
_SIZES = {"label": (17, 70), "title": (24, 78), "caption": (15, 150), "legend": (14, 150), "note": (13, 170)}
"""Of each kind of text: its size in pixels, and the letters of a line."""


@dataclass(frozen=True)
class Picture:
    """A figure that says everything by itself."""

    view: View
    labels: tuple[str, ...]
    """SIMULATED, STAGED, SHARED, and of what."""

    def spec(self, look: str) -> Layout:
        """Plotly's data and layout with all texts inside, in a theme; the layout has width and height."""
        if self.view.spec is None:
            raise ValueError("a picture has a figure")
        drawn: Layout = self.view.spec["layout"]
        beside = len({tuple(axis["domain"]) for name, axis in drawn.items() if name.startswith("xaxis")})
        rows = max(-(-int(name[5:] or 1) // beside) for name in drawn if name.startswith("yaxis"))
        heads = [*(("label", text) for text in self.labels), ("title", self.view.title), ("caption", self.view.caption)]
        above, legend_top = _stacked(heads, 14.0)
        foot, bottom = _stacked([("note", note) for note in self.view.notes], 58.0 if rows == 1 else 34.0)
        legend_top += 4
        top, inner = legend_top + 32 + (24 if rows == 1 else 0), rows * _PANEL
        texts = [{**text, "y": 1, "yshift": top - at, "yanchor": "top"} for text, at in above]
        texts += [{**text, "y": 0, "yshift": -at, "yanchor": "top"} for text, at in foot]
        left = (_MARGIN - _LEFT) / (WIDTH - _LEFT - _MARGIN)
        place = {"y": 1 + (top - legend_top) / inner, "yanchor": "top", "x": left}
        layout = {
            **{name: value for name, value in drawn.items() if name != "meta"},
            "width": WIDTH,
            "height": round(top + inner + bottom + 10),
            "template": theme.template(look),
            "margin": {"l": _LEFT, "r": _MARGIN, "t": round(top), "b": round(bottom + 10), "autoexpand": False},
            "annotations": [*drawn["annotations"], *texts],
            "legend": {**drawn["legend"], "font": {"size": _SIZES["legend"][0]}, **place},
            "showlegend": True,
            "hovermode": False,
        }
        return {"data": list(self.view.spec["data"]), "layout": layout}


def _stacked(texts: Iterable[tuple[str, str]], at: float) -> tuple[list[tuple[Layout, float]], float]:
    """Texts of some kinds below each other as annotations, each with its distance from the edge in pixels, and where
    the next one would begin."""
    annotations = []
    for kind, text in texts:
        size, letters = _SIZES[kind]
        lines = textwrap.wrap(text, letters) or [""]
        joined = "<br>".join(theme.escape(line) for line in lines)
        red = {"color": theme.VERDICT_COLOURS["SLOWER"]} if kind == "label" else {}
        left = {"showarrow": False, "align": "left", "x": 0, "xanchor": "left", "xshift": -(_LEFT - _MARGIN)}
        strong = f"<b>{joined}</b>" if kind in ("title", "label") else joined
        look = {"text": strong, "font": {"size": size, **red}, "xref": "paper", "yref": "paper"}
        annotations.append(({**look, **left}, at))
        at += 1.32 * size * len(lines) + 6
    return annotations, at


def picture(cells: Cells, name: str, words: Sequence[str], over: str, grid: PanelGrid) -> Picture:
    """Compare sides of a benchmark.

    Args:
        cells: the cells of the benchmark.
        name: the benchmark.
        words: what names the sides (:func:`omb_py.dashboards.changes.sides.named`); empty for those that the
            first screen would compare.
        over: ``size``, ``ranks`` or ``gpus``, as the user says it.
        grid: what stands on the axes.

    Raises:
        UsageError: nothing fits, or a word names no side; the text says what there is.
    """
    cells = replace(cells, rows=_counted(cells.timed, name, grid, over))
    screen = FirstScreen(cells)
    chosen = named(words, screen.sides) if words else screen.drawn
    if len(chosen) > MOST_SIDES:
        names = listed((side.name for side in chosen), len(chosen))
        raise UsageError(
            f"a picture has room for {MOST_SIDES} sides, and these are {len(chosen)}: {names}; name fewer by --compare"
        )
    sides, notes = keep_common_method(
        ((side.name, side.rows(cells.timed)) for side in chosen), "; --where chooses another"
    )
    known = points(sides, grid)
    if not known.known:
        what = "bus bandwidth" if grid.quantity == "busbw" else "time"
        raise UsageError(f"{name} has no {what} over {over}: choose another --quantity or --over")
    fastest = {panel: fastest_at(known, panel) for panel in known.panels}
    marks = {panel: crossovers(each, grid) for panel, each in fastest.items()}
    count = len(known.panels)
    beside = count if count <= 3 else 2 if count == 4 else 3
    view = multiples(sides, name, known, banded=True, columns=beside, room=0.13, marks=marks)
    assert view is not None
    shown = replace(cells, rows=series.concat(rows for _, rows in sides))
    notes = [legend(known, any(marks.values())), *notes]
    view = replace(view, kind="picture", title=title(name, known, fastest), caption=caption(shown), notes=tuple(notes))
    return Picture(view, labels(shown))


def _counted(rows: pd.DataFrame, name: str, grid: PanelGrid, over: str) -> pd.DataFrame:
    """The rows with a count. Raises UsageError where there is none, or only one to draw over."""
    counts = rows[grid.over].fillna(0) if grid.over in rows else rows["ranks"] * 0
    rows = rows[counts > 0]
    counted = COUNTED[grid.over]
    values = sorted({int(count) for count in rows[grid.over]})
    if not values:
        raise UsageError(f"no cell of {name} was measured on {counted}: --over ranks")
    if grid.across == grid.over and len(values) < 2:
        raise UsageError(
            f"{name} was measured on {values[0]} {counted} only: --over size, or measure other numbers of {counted}"
        )
    return rows

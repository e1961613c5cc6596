"""The panels of a figure: where they stand at a width, their axes, and the line above each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.theme import Layout, Trace


def axis_names(number: int) -> tuple[str, str]:
    """The axes of a panel, as traces and notes name them.

    >>> axis_names(0), axis_names(1)
    (('x', 'y'), ('x2', 'y2'))
    """
    digits = str(number + 1) if number else ""
    return f"x{digits}", f"y{digits}"


@dataclass(frozen=True)
class PanelPlaces:
    """Where the panels of a figure stand."""

    panels: int
    columns: int
    tall: int
    """Pixels of a panel."""
    between: int
    """Pixels between two rows of panels."""
    gap: float
    """Share of the width between two columns."""
    shares: Sequence[float] = ()
    """Widths of the columns among each other; all alike without."""

    @property
    def pixels(self) -> int:
        """Pixels of all rows of panels, without the margins of the figure."""
        rows = max(1, math.ceil(self.panels / self.columns))
        return rows * self.tall + (rows - 1) * self.between

    def moved(self, number: int) -> Layout:
        """The parts of the figure that the axes of a panel take, from left to right and from below."""
        row, column = divmod(number, self.columns)
        shares = self.shares or (1.0,) * self.columns
        unit = (1 - self.gap * (self.columns - 1)) / sum(shares)
        left = unit * sum(shares[:column]) + column * self.gap
        top = 1 - row * (self.tall + self.between) / self.pixels
        across = [left, min(1.0, left + unit * shares[column])]
        up = [max(0.0, top - self.tall / self.pixels), top]
        x, y = axis_names(number)
        return {f"xaxis{x[1:]}": {"domain": across}, f"yaxis{y[1:]}": {"domain": up}}

    def axes(self, number: int, x_axis: Layout, y_axis: Layout) -> Layout:
        """The axes of a panel, at its place."""
        x, y = axis_names(number)
        own = ({**x_axis, "anchor": y}, {**y_axis, "anchor": x})
        return {name: axis | place for axis, (name, place) in zip(own, self.moved(number).items(), strict=True)}

    def axes_alike(self, x_axis: Layout, y_axis: Layout) -> Layout:
        """The axes of all panels where all have the same: titles left and below only; all zoom together."""
        untitled = {"title": {"text": ""}}
        every: Layout = {}
        for number in range(self.panels):
            is_left, is_lowest = number % self.columns == 0, number + self.columns >= self.panels
            x = {**x_axis, **({"matches": "x"} if number else {}), **({} if is_lowest else untitled)}
            y = {**y_axis, "showticklabels": is_left, **({} if is_left else untitled)}
            every |= self.axes(number, x, y)
        return every


@dataclass(frozen=True)
class DrawnPanel:
    """What stands in a panel; traces, notes and shapes name no axes."""

    heading: str
    traces: Sequence[Trace]
    x_axis: Layout
    y_axis: Layout
    notes: Sequence[Layout] = ()
    """Annotations, beside the heading."""
    shapes: Sequence[Layout] = ()


def arrange(
    panels: Sequence[DrawnPanel], wide: PanelPlaces, fewer: Mapping[str, PanelPlaces], margin: Layout
) -> tuple[list[Trace], Layout]:
    """The traces of panels at their places, and the layout with that margin; its ``meta`` has by the names in `fewer`
    what changes where fewer panels stand beside each other."""
    traces: list[Trace] = []
    axes: Layout = {}
    texts: list[Layout] = []
    shapes: list[Layout] = []
    around = margin["t"] + margin["b"]
    other: dict[str, Layout] = {name: {"height": places.pixels + around} for name, places in fewer.items()}
    for number, panel in enumerate(panels):
        x, y = axis_names(number)
        traces += [{**trace, "xaxis": x, "yaxis": y} for trace in panel.traces]
        axes |= wide.axes(number, panel.x_axis, panel.y_axis)
        for name, places in fewer.items():
            other[name] |= places.moved(number)
        texts += [*({**note, "xref": x, "yref": y} for note in panel.notes), heading(panel.heading, number)]
        shapes += [{**shape, "xref": x, "yref": y} for shape in panel.shapes]
    drawn = {"annotations": texts, "shapes": shapes, "meta": other}
    return traces, theme.layout(height=wide.pixels + around, margin=margin, **drawn, **axes)


def place_axis(texts: Sequence[str], most: int, room: float = 1.0) -> Layout:
    """An axis with a place for each text, and ticks at `most` of them; `room` is its length in those of the places."""
    axis = theme.ticks(range(len(texts)), texts)
    look = {"tickangle": 0, "showgrid": False, "zeroline": False, "range": [-0.5, len(texts) * room - 0.5]}
    return {**axis, **theme.thinned(axis, most), **look, "tickfont": {"size": 10}}


def heading(text: str, number: int) -> Layout:
    """A line above a panel."""
    x, y = axis_names(number)
    inside = {"xref": f"{x} domain", "yref": f"{y} domain", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"}
    return {"text": text, "showarrow": False, **inside, "yshift": 4, "align": "left", "font": {"size": 13}}

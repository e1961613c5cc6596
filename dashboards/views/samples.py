"""Views of the samples and ranks of single cells, whose lists are read from the files when they are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from omb_py.dashboards.base.view import Shown, View, plural
from omb_py.dashboards.figures import distributions, stragglers
from omb_py.dashboards.views.cells import RANK_LISTS, Cells

if TYPE_CHECKING:
    import pandas as pd


MOST_LAUNCHES = 8
"""Launches of a cell whose samples are drawn, the newest: the boxes and lines of more cannot be told apart."""


def distribution_of(cells: Cells, cell: pd.DataFrame) -> View | None:
    """The distribution of a cell; None where the store no longer has it."""
    # an imported cell has no samples: its box is drawn from its quartiles and its extremes
    newest = cell.sort_values("started_at", kind="stable").tail(MOST_LAUNCHES)
    rows = cells.read_again(newest, "samples_us", "max_us")
    if not len(rows):
        return None
    left = len(cell) - len(newest)
    note = f"The newest {MOST_LAUNCHES} of {plural(len(cell), 'launch')}; the history has all."
    return distributions.distribution(rows).noted([note] if left else [])


def trace_of(cells: Cells, cell: pd.DataFrame) -> View | None:
    """The calls of a launch; None where it has no samples."""
    rows = cells.read_again(cell, "samples_us")
    return distributions.trace(rows) if len(rows) else None


def distribution(cells: Cells, size: int | None = None) -> Iterator[Shown]:
    """The distribution of each series at one size."""
    for cell in cells.sized(size):
        if view := distribution_of(cells, cell):
            yield Shown(view, cell)


def trace(cells: Cells, size: int | None = None) -> Iterator[Shown]:
    """The calls of the newest launch of each series at one size."""
    for cell in cells.sized(size):
        if view := trace_of(cells, cell.sort_values("started_at").tail(1)):
            yield Shown(view, cell)


def late_ranks(cells: Cells) -> Iterator[Shown]:
    """Late ranks in the newest launch of each series."""
    for panel in cells.panels():
        for line in panel.lines:
            newest = line.cells[line.cells["launch_id"] == line.cells.sort_values("started_at")["launch_id"].iloc[-1]]
            view = stragglers.stragglers(cells.read_again(newest, *RANK_LISTS))
            if view is not None:
                yield Shown(view, newest)

"""Times and bandwidths over message size and over the number of ranks; steps of workloads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from omb_py.dashboards.base import series
from omb_py.dashboards.base.view import Shown, View
from omb_py.dashboards.changes.fastest import fastest_at
from omb_py.dashboards.changes.fastest import title as finding
from omb_py.dashboards.figures import curves, multiples, roofline, steps
from omb_py.dashboards.views import fits
from omb_py.dashboards.views.cells import Cells, Panel
from omb_py.dashboards.views.first_screen import several_counts
from omb_py.results.store.paths import pass_over
from omb_py.results.store.read import load

if TYPE_CHECKING:
    import pandas as pd

RATIO = "ratio"
QUANTITIES = (*curves.QUANTITIES, RATIO)
"""What a reader of the explorer can choose; the last is the time over that of the first series."""
SMALL, LARGE = 4 * 1024, 64 * 1024
"""The report draws bus bandwidth from the first size on, in bytes, where messages reach the second."""


def over_size(cells: Cells, quantity: str = curves.QUANTITIES[0]) -> Iterator[Shown]:
    """Curves of each panel that has the quantity (one of :data:`QUANTITIES`)."""
    for panel in cells.panels():
        if quantity == RATIO:
            yield from _over_first(panel)
        elif quantity not in ("algbw", "busbw") or panel.rows[f"{quantity}_gbps"].notna().any():
            view = curves.curves(panel.rows, panel.name, quantity, cells.bound_of(panel), panel.lines)
            yield Shown(view, panel.rows)


def _over_first(panel: Panel) -> Iterator[Shown]:
    """Each series of a panel over its first, at the sizes that both have; nothing where there is only one."""
    sides = [(line.label, line.cells) for line in panel.lines]
    grid = multiples.Grid(quantity=RATIO)
    known = multiples.points(sides, grid) if len(sides) > 1 else None
    if known is None or len({side for side, _ in known.known}) < 2:
        return
    ranks = [series.word("ranks", count) for count in known.panels]
    name = ", ".join(word for word in panel.name.split(", ") if word not in ranks)
    view = multiples.multiples(sides, name, grid, known, banded=True)
    if view is not None:
        title = finding(name, known, {at: fastest_at(known, at) for at in known.panels})
        yield Shown(replace(view, title=title, caption=series.caption(panel.rows)), panel.rows)


def over_size_in_report(cells: Cells) -> Iterator[Shown]:
    """Curves and bus bandwidth of what was measured on one number of ranks; steps have another view.

    The first screen shows the others (:func:`omb_py.dashboards.views.first_screen.first_screen_in_report`). What has
    one point has no curve: the table of all measurements has its number.
    """
    rows = cells.timed
    others = [*several_counts(rows), *rows[rows["family"] == steps.FAMILY]["benchmark"].unique()]
    for panel in replace(cells, rows=rows[~rows["benchmark"].isin(others)]).panels():
        if panel.rows["size_bytes"].nunique() > 1:
            for view, shown in _curves_and_bandwidth(panel, cells.bound_of(panel)):
                yield Shown(replace(view, choice=str(shown["benchmark"].iloc[0])), shown)


def _curves_and_bandwidth(panel: Panel, bound: pd.DataFrame | None) -> Iterator[tuple[View, pd.DataFrame]]:
    rows = panel.rows
    yield curves.curves(rows, panel.name, bound=bound, lines=panel.lines), rows
    large = rows[(rows["size_bytes"].fillna(0) >= SMALL) & rows["busbw_gbps"].notna()]
    if rows["unit"].iloc[0] == "us" and len(large) and large["size_bytes"].max() >= LARGE:
        parts = [part for line in panel.lines if len((part := line.from_size(SMALL)).cells)]
        yield curves.curves(large, f"{panel.name}, bus bandwidth", "busbw", lines=parts), large


def fits_and_bounds(cells: Cells) -> Iterator[Shown]:
    """Fitted curves, then for each panel with a lower bound its times over that bound."""
    yield from fits.fits(cells.timed)
    for panel in cells.panels():
        yield from _over_bound(panel, cells.bound_of(panel))


def fits_and_bounds_in_report(cells: Cells) -> Iterator[Shown]:
    """The same of each benchmark on its largest number of ranks."""
    yield from fits.fits(cells.timed)
    rows = cells.timed
    largest = rows[rows["ranks"] == rows.groupby("benchmark", observed=True)["ranks"].transform("max")]
    bounded = largest[largest["benchmark"].isin(set(cells.bounds["benchmark"]))]
    for panel in replace(cells, rows=bounded).panels():
        yield from _over_bound(panel, cells.bound_of(panel))


def _over_bound(panel: Panel, bound: pd.DataFrame | None) -> Iterator[Shown]:
    if bound is not None and (view := roofline.roofline(panel.rows, bound, panel.name, panel.lines)):
        yield Shown(view, panel.rows)


def over_count(cells: Cells, count: str = "ranks") -> Iterator[Shown]:
    """Times over the number of ranks or GPUs (:data:`omb_py.dashboards.figures.curves.COUNTED`), a figure a series."""
    timed = cells.timed
    every = timed if (timed["unit"] == "us").all() else timed[timed["unit"] == "us"]
    counts = every.groupby("benchmark", sort=True, observed=True)[count].nunique()
    for benchmark in counts.index[counts > 1]:
        rows = every[every["benchmark"] == benchmark]
        for line in series.lines(rows, ignore=series.COUNTS):
            name = f"{benchmark}, {line.label}" if line.label else str(benchmark)
            view = curves.scaling(line.cells, name, over=count)
            if view is not None:
                yield Shown(view, line.cells)


def step_times(cells: Cells) -> Iterator[Shown]:
    """Step times of workloads; their parts are in no column that is kept in memory."""
    own = cells.rows[cells.rows["family"] == steps.FAMILY]
    if len(own):
        rows = load(cells.store, columns=[*series.NEEDED, "metrics"], on_skip=pass_over, **steps.rows_of(own))
        yield from (Shown(view, part) for view, part in steps.layouts(rows))

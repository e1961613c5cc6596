"""A state and the cells into the views on the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import View, listed
from omb_py.dashboards.explorer.data import Data, used
from omb_py.dashboards.explorer.state import State
from omb_py.dashboards.figures import (
    anomalies,
    comparison,
    curves,
    distributions,
    environment,
    history,
    repro_commands,
    roofline,
    steps,
    stored_comparisons,
    stored_fits,
    stored_guidelines,
    stored_links,
    stragglers,
)
from omb_py.results.store.lookup import provenance_of
from omb_py.results.store.read import load

if TYPE_CHECKING:
    import pandas as pd

MOST_FIGURES = 8
"""On one screen; filters make it fewer."""
OWN_ROWS = ("guidelines", "pairs")
"""Views of rows that no other view shows."""
MOST_FITS = 2
"""Curves that are fitted at once: each takes the better part of a second."""


def views(data: Data, state: State) -> tuple[list[View], str]:
    """The views and a line about what is left out or why there is none."""
    chosen = used(data.select(state.filters))
    if not len(data.frame):
        return [], f"{data.empty()}: omb-py allreduce -n 2 --store {data.store}"
    if not len(chosen):
        return [], "No cell fits these filters. Clear one of them; what there is: omb-py results list."
    provenance = provenance_of(data.store)
    asked = Asked(data, state, chosen, provenance)
    if state.view not in OWN_ROWS and not len(asked.rows):
        return [], "What fits these filters was measured by omb-py guidelines or links, which have views of their own."
    found = iter(_MAKERS[state.view](asked))
    again = repro_commands.Commands(provenance)
    kept = [view if view.commands else view.with_commands(again.of(part)) for view, part in islice(found, MOST_FIGURES)]
    if not kept:
        return [], _EMPTY[state.view]
    more = next(found, None) is not None
    return kept, f"These are the first {MOST_FIGURES} figures: filter by benchmark or ranks for others." if more else ""


class Asked:
    """What a maker of views is given."""

    def __init__(
        self, data: Data, state: State, chosen: pd.DataFrame, provenance: Callable[[str], Mapping[str, Any]]
    ) -> None:
        self.data = data
        self.state = state
        self.promised, rest = stored_guidelines.split(chosen)
        self.swept, rows = stored_links.split(rest)
        # categories that are left only among what was split off would show as empty groups
        self.rows = used(rows) if len(rows) < len(chosen) else rows
        self.provenance = provenance

    @property
    def panels(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Rows that belong on one axis, with their names."""
        return series.panels(self.rows)

    @cached_property
    def bounds(self) -> pd.DataFrame:
        """Lower bounds of all that is chosen."""
        return self.data.bounds(list(self.rows["benchmark"].unique()))

    def again(self, cell: pd.DataFrame, *columns: str) -> pd.DataFrame:
        """The same rows with columns of lists, which are not in memory."""
        read = load(
            self.data.store,
            columns=[*series.NEEDED, *columns],
            on_skip=lambda path, why: None,
            **anomalies.rows_of(cell),
        )
        return series.prepared(read)

    def one_size(self) -> Iterator[pd.DataFrame]:
        """Each series at the chosen size, or at its smallest."""
        for _, part in self.panels:
            for one in series.lines(part):
                size = int(self.state.size) if self.state.size else one.cells["size_bytes"].min()
                sized = one.cells["size_bytes"].notna().any()
                cell = one.cells[one.cells["size_bytes"] == size] if sized else one.cells
                if len(cell):
                    yield cell


Made = Iterable[tuple[View, "pd.DataFrame"]]
"""Views with the rows that they show, made one by one: no more of them than fit on the screen."""


def _curves(asked: Asked) -> Made:
    quantity = asked.state.quantity
    for name, part in asked.panels:
        if quantity not in ("algbw", "busbw") or part[f"{quantity}_gbps"].notna().any():
            yield curves.curves(part, name, quantity, roofline.of_panel(asked.bounds, part)), part


def _sides(asked: Asked) -> Iterator[tuple[str, tuple[str, str], pd.DataFrame, pd.DataFrame]]:
    """What may be put side by side: (benchmark, names, cells, cells), of two selections or of all that is chosen."""
    state = asked.state
    if not state.other:
        for name, part in asked.panels:
            for a, base, b, new in comparison.pairs_of_sides(series.lines(part)):
                yield name, (a, b), base, new
        return
    _, rest = stored_guidelines.split(asked.data.select(state.second()))
    other = used(stored_links.split(rest)[1])
    names = (_named(state.filters, state.other), listed(v for values in state.other.values() for v in values))
    for benchmark, part in asked.rows.groupby("benchmark", observed=True):
        yield str(benchmark), names, part, other[other["benchmark"] == benchmark]


def _named(first: dict[str, list[str]], other: dict[str, list[str]]) -> str:
    return listed(v for name in other for v in first.get(name, ["the rest"]))


def _beside(asked: Asked) -> Made:
    """Over message size: a figure for each number of ranks."""
    for name, names, base, new in _sides(asked):
        several = base["ranks"].nunique() > 1
        for count, part in base.groupby("ranks", dropna=False, observed=True):
            what = f"{name}, {series.word('ranks', count)}" if several else name
            view = comparison.beside(part, new[new["ranks"] == count] if not theme.absent(count) else new, names, what)
            if view is not None:
                yield view, part


def _beside_counts(asked: Asked) -> Made:
    if asked.state.other:
        found = _sides(asked)
    else:  # panels split by ranks what is to be drawn over ranks
        found = (
            (str(benchmark), (a, b), base, new)
            for benchmark, part in asked.rows.groupby("benchmark", observed=True)
            for a, base, b, new in comparison.pairs_of_sides(series.lines(part, ignore=series.COUNTS))
        )
    for name, names, base, new in found:
        view = comparison.beside_counts(base, new, names, name, asked.state.count)
        if view is not None:
            yield view, base


def _scaling(asked: Asked) -> Made:
    rows = asked.rows
    for benchmark, part in rows[rows["unit"] == "us"].groupby("benchmark", observed=True):
        for one in series.lines(part, ignore=series.COUNTS):
            name = ", ".join(w for w in (str(benchmark), one.label) if w)
            view = curves.scaling(one.cells, name, over=asked.state.count)
            if view is not None:
                yield view, one.cells


def _distribution(asked: Asked) -> Made:
    for one in asked.one_size():
        rows = asked.again(one, "samples_us")
        if len(rows):
            yield distributions.distribution(rows), one


def _trace(asked: Asked) -> Made:
    """Of each series its newest launch."""
    for one in asked.one_size():
        rows = asked.again(one.sort_values("started_at").tail(1), "samples_us")
        view = distributions.trace(rows) if len(rows) else None
        if view is not None:
            yield view, one


def _stragglers(asked: Asked) -> Made:
    for _, part in asked.panels:
        for one in series.lines(part):
            newest = one.cells[one.cells["launch_id"] == one.cells.sort_values("started_at")["launch_id"].iloc[-1]]
            frame = load(
                asked.data.store,
                columns=[*series.NEEDED, "rank_mean_us", "slowest_rank_share", "hosts"],
                on_skip=lambda path, why: None,
                launch_id=str(newest["launch_id"].iloc[0]),
                benchmark=str(newest["benchmark"].iloc[0]),
            )
            keys = newest["comparability_key"].unique()
            view = stragglers.stragglers(series.prepared(frame[frame["comparability_key"].isin(keys)]))
            if view is not None:
                yield view, newest


def _steps(asked: Asked) -> Made:
    mine = asked.rows[asked.rows["family"] == steps.FAMILY]
    if not len(mine):
        return
    read = load(
        asked.data.store,
        columns=[*series.NEEDED, "metrics"],
        on_skip=lambda path, why: None,
        **steps.rows_of(mine),
    )
    for view, rows in steps.layouts(read):
        yield view, mine[mine["launch_id"].isin(rows["launch_id"])]


def _model(asked: Asked) -> Made:
    """Fits, and the times of all that is chosen over their lower bound."""
    yield from stored_fits.fits(asked.rows, MOST_FITS)
    for name, part in asked.panels:
        bound = roofline.of_panel(asked.bounds, part)
        view = None if bound is None else roofline.roofline(part, bound, name, series.lines(part))
        if view is not None:
            yield view, part


def _history(asked: Asked) -> Made:
    """Levels where there are launches enough, else the launches."""
    chosen = list(islice(asked.one_size(), MOST_FIGURES + 1))
    found = [made for one in chosen for made in stored_fits.histories(one, asked.provenance, 1)]
    if found:
        return found
    return [(history.history(one, f"{distributions.cell_name(one)}, {series.common(one)}"), one) for one in chosen]


def _verdicts(asked: Asked) -> Made:
    keys = set(asked.rows["comparability_key"].dropna().unique())
    return [
        (view, asked.rows)
        for one in stored_comparisons.comparisons(asked.data.store, keys)
        for view in stored_comparisons.views(one, asked.data.store)
    ]


def _guidelines(asked: Asked) -> Made:
    return ((one.view, one.rows) for one in stored_guidelines.stored(asked.data.store, asked.promised))


def _pairs(asked: Asked) -> Made:
    return ((one.view, one.rows) for one in stored_links.stored(asked.data.store, asked.swept))


def _environment(asked: Asked) -> Made:
    view = environment.environments(asked.rows, asked.provenance)
    return [] if view is None else [(view, asked.rows)]


_MAKERS: Mapping[str, Callable[[Asked], Made]] = {
    "curves": _curves,
    "beside": _beside,
    "scaling": _scaling,
    "beside_counts": _beside_counts,
    "distribution": _distribution,
    "trace": _trace,
    "stragglers": _stragglers,
    "steps": _steps,
    "model": _model,
    "history": _history,
    "verdicts": _verdicts,
    "guidelines": _guidelines,
    "pairs": _pairs,
    "environment": _environment,
}
_NO_CELL = "No cell of that size is among what is chosen."
_EMPTY = {
    "curves": "The benchmarks that are chosen have no such bandwidth: choose another quantity.",
    "beside": "Nothing here measured the same thing twice: choose more than one library or binding, or a second "
    "selection.",
    "scaling": "Nothing here was measured on more than one such number.",
    "beside_counts": "Nothing here measured the same thing twice on more than one such number.",
    "distribution": _NO_CELL,
    "trace": _NO_CELL,
    "stragglers": "Nothing here was timed on two ranks or more.",
    "steps": "No step of a workload is among what is chosen: omb-py step.",
    "model": "A fit needs four message sizes, a lower bound latency in the same store.",
    "history": _NO_CELL,
    "verdicts": "No comparison of these cells is stored: omb-py compare.",
    "guidelines": "No guideline among what is chosen was measured: omb-py guidelines.",
    "pairs": "No sweep over all pairs of nodes is among what is chosen: omb-py links.",
    "environment": "All of this was measured in one environment.",
}

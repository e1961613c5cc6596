"""A state and the cells into the views on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omb_py.dashboards import board, cells, commands, curves, findings, others, spread
from omb_py.dashboards.explorer.data import Data, used
from omb_py.dashboards.explorer.state import State
from omb_py.dashboards.view import View, listed
from omb_py.results.lookup import provenance_of
from omb_py.results.reading import load

if TYPE_CHECKING:
    import pandas as pd

MOST_FIGURES = 8
"""On one screen; filters make it fewer."""


def views(data: Data, state: State) -> tuple[list[View], str]:
    """The views and a line about what is left out or why there is none."""
    rows = used(data.select(state.filters))
    if not len(rows):
        return [], "No cell fits these filters. Clear one of them; what there is: omb-py results list."
    made = _MAKERS[state.view](data, state, rows)
    again = commands.Commands(provenance_of(data.store))
    kept = [view.with_commands(again.of(part)) for view, part in made[:MOST_FIGURES]]
    if not kept:
        return [], _EMPTY[state.view]
    left = len(made) - len(kept)
    return kept, f"{left} more figures: filter by benchmark or ranks to see them." if left else ""


Made = list[tuple[View, "pd.DataFrame"]]


def _curves(data: Data, state: State, rows: pd.DataFrame) -> Made:
    made = []
    for name, part in _panels(rows):
        if state.quantity in ("algbw", "busbw") and part[f"{state.quantity}_gbps"].isna().all():
            continue
        made.append((curves.curves(part, name, state.quantity), part))
    return made


def _panels(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Panels of the first benchmarks: more than fit on the screen are counted, not drawn."""
    return list(cells.panels(rows))


def _beside(data: Data, state: State, rows: pd.DataFrame) -> Made:
    made = []
    if state.other:
        other = used(data.select(state.second()))
        names = (_named(state.filters, state.other), listed(v for values in state.other.values() for v in values))
        for benchmark, part in rows.groupby("benchmark", observed=True):
            view = board.beside(part, other[other["benchmark"] == benchmark], names, str(benchmark))
            if view is not None:
                made.append((view, part))
        return made
    for name, part in _panels(rows):
        for a, base, b, new in board.pairs_of_sides(cells.lines(part)):
            view = board.beside(base, new, (a, b), name)
            if view is not None:
                made.append((view, part))
    return made


def _named(first: dict[str, list[str]], other: dict[str, list[str]]) -> str:
    return listed(v for name in other for v in first.get(name, ["the rest"]))


def _scaling(data: Data, state: State, rows: pd.DataFrame) -> Made:
    made = []
    for benchmark, part in rows[rows["unit"] == "us"].groupby("benchmark", observed=True):
        for one in cells.lines(part, ignore=("ranks", "nodes", "devices")):
            view = curves.scaling(one.cells, ", ".join(w for w in (str(benchmark), one.label) if w))
            if view is not None:
                made.append((view, one.cells))
    return made


def _distribution(data: Data, state: State, rows: pd.DataFrame) -> Made:
    made = []
    for one in _cells_of_size(state, rows):
        read = load(
            data.store, columns=[*cells.NEEDED, "samples_us"], on_skip=lambda p, why: None, **findings.rows_of(one)
        )
        if len(read):
            made.append((spread.distribution(cells.prepared(read)), one))
        if len(made) == MOST_FIGURES:
            break
    return made


def _history(data: Data, state: State, rows: pd.DataFrame) -> Made:
    made = []
    for one in _cells_of_size(state, rows):
        made.append((others.history(one, f"{spread.cell_name(one)}, {cells.common(one)}"), one))
    return made


def _cells_of_size(state: State, rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Each series at the chosen size, or at its smallest."""
    found = []
    for _, part in _panels(rows):
        for one in cells.lines(part):
            size = int(state.size) if state.size else one.cells["size_bytes"].min()
            cell = one.cells[one.cells["size_bytes"] == size] if one.cells["size_bytes"].notna().any() else one.cells
            if len(cell):
                found.append(cell)
    return found


_MAKERS = {
    "curves": _curves,
    "beside": _beside,
    "scaling": _scaling,
    "distribution": _distribution,
    "history": _history,
}
_EMPTY = {
    "curves": "The benchmarks that are chosen have no such bandwidth: choose another quantity.",
    "beside": "Nothing here measured the same thing twice: choose more than one library or binding, or a second "
    "selection.",
    "scaling": "Nothing here was measured on more than one number of ranks.",
    "distribution": "No cell of that size is among what is chosen.",
    "history": "No cell of that size is among what is chosen.",
}

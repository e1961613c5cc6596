"""The views that the explorer shows for the state of its controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import View, listed
from omb_py.dashboards.explorer.data import Data, used
from omb_py.dashboards.explorer.state import State
from omb_py.dashboards.figures.distributions import cell_name
from omb_py.dashboards.views import registry
from omb_py.dashboards.views.cells import SecondSelection
from omb_py.dashboards.views.repro_commands import Commands

MOST_IN_DRAWER = 4000
"""Cells of a series, the last ones, that a drawer is made of."""
MOST_FIGURES = 8
"""On one screen; filters make it fewer."""


def views(data: Data, state: State) -> tuple[list[View], str]:
    """The views of a state, and a sentence where some are left out or there is none; else an empty text."""
    if not len(data.frame):
        return [], f"{data.empty()}: omb-py allreduce -n 2 --store {data.store}"
    chosen, left = data.drawn(state.filters)
    if not len(chosen):
        return [], "No cell fits these filters. Clear one of them; what there is: omb-py results list."
    entry = registry.offered()[state.view]
    cells = data.cells(chosen)
    if entry.views is None or not entry.needs.met(cells):
        return [], entry.needs.otherwise
    shown = (shown for shown in entry.views(cells, **_inputs(data, state, entry)) if shown.view is not None)
    commands = Commands(cells.provenance)
    drawn = [commands.on(view, rows) for view, rows, *_ in islice(shown, MOST_FIGURES) if view is not None]
    if not drawn:
        return [], entry.empty
    more = next(shown, None) is not None
    others = f"These are the first {MOST_FIGURES} figures: filter by benchmark or ranks for others." if more else ""
    return drawn, " ".join(text for text in (left, others) if text)


def drawer(data: Data, name: str) -> tuple[str, list[View]]:
    """What is known of one cell: its name, and the first figure of each view of the tab ``Cell``.

    The name is empty where the store has no such cell.
    """
    rows = data.cell(name)
    if not len(rows):
        return "", []
    own = used(rows.tail(1))
    cells = data.cells(used(rows.tail(MOST_IN_DRAWER)))
    size = own["size_bytes"].iloc[0]
    state = State(size="" if theme.absent(size) else str(size))
    commands = Commands(cells.provenance)
    drawn = []
    for entry in registry.offered_in("Cell").values():
        if entry.views is None or not entry.needs.met(cells):
            continue
        shown = entry.views(cells, **_inputs(data, state, entry))
        drawn += [commands.on(view, rows) for view, rows, *_ in islice(shown, 2) if view is not None]
    return f"{cell_name(own)}, {series.common(own)}", drawn


def _inputs(data: Data, state: State, entry: registry.Entry) -> dict[str, Any]:
    """The values of the controls that a view takes."""
    values: Mapping[registry.Input, Callable[[], Any]] = {
        "quantity": lambda: state.quantity,
        "count": lambda: state.count,
        "size": lambda: int(state.size) if state.size else None,
        "second": lambda: _second(data, state),
    }
    return {name: values[name]() for name in entry.inputs}


def _second(data: Data, state: State) -> SecondSelection | None:
    """The cells of the second selection; None where nothing is chosen in it."""
    if not state.other:
        return None
    first = listed(value for name in state.other for value in state.filters.get(name, ["the rest"]))
    names = (first, listed(value for values in state.other.values() for value in values))
    return SecondSelection(data.cells(used(data.select(state.second()))).rows, names)

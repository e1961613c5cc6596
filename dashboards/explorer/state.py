"""The state of the explorer's controls, its form as a URL query, and the views that it shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import parse_qs, urlencode

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.reading import why_nothing
from omb_py.dashboards.base.view import Input, View, ViewEntry
from omb_py.dashboards.explorer.data import FILTERS, Data, used
from omb_py.dashboards.figures.curves import COUNTED
from omb_py.dashboards.figures.launches import cell_name
from omb_py.dashboards.views import registry
from omb_py.dashboards.views.cells import Cells
from omb_py.dashboards.views.over_size import QUANTITIES
from omb_py.dashboards.views.repro_commands import Commands

COUNTS = tuple(COUNTED)
"""Columns over which scaling is drawn."""
THEMES = ("auto", "light", "dark")
"""``auto``: as the browser has it."""
CONTROLS = ("view", "quantity", "count", "size", "theme", "cell")
"""Controls of one value, in the order in which the URL has them."""


def choices() -> dict[str, tuple[str, ...]]:
    """The values of each control that has a fixed list of them; the first is the default."""
    return {"view": tuple(registry.offered()), "quantity": QUANTITIES, "count": COUNTS, "theme": THEMES}


@dataclass(slots=True)
class State:
    """Everything that a link restores."""

    view: str = next(iter(registry.offered()))
    quantity: str = QUANTITIES[0]
    count: str = COUNTS[0]
    size: str = ""
    """Message size in bytes of the views of one cell; empty for the smallest."""
    theme: str = THEMES[0]
    filters: dict[str, list[str]] = field(default_factory=dict)
    cell: str = ""
    """The cell in the drawer (:func:`omb_py.dashboards.base.series.cell_ids`); empty while it is closed."""


def state_of(values: Mapping[str, str | None], filters: Mapping[str, Sequence[str]]) -> State:
    """The state of the controls, by the names of :data:`CONTROLS` and ``FILTERS``; a value that is not
    known is left at its default, and a filter without values lets everything through."""
    known = {name: values.get(name) for name in CONTROLS}
    fixed = {name: value for name, allowed in choices().items() if (value := known[name]) in allowed}
    size = known["size"] or ""
    return State(
        **{name: value for name, value in fixed.items() if value is not None},
        size=size if size.isdecimal() else "",
        cell=known["cell"] or "",
        filters={name: [*filters[name]] for name in FILTERS if filters.get(name)},
    )


def query(state: State) -> str:
    """The query with its ``?``; empty for what an address without one shows."""
    default = State()
    values = [(name, getattr(state, name)) for name in CONTROLS]
    parts = [(name, value) for name, value in values if value != getattr(default, name)]
    parts += [(name, value) for name in FILTERS for value in state.filters.get(name, ())]
    return f"?{urlencode(parts)}" if parts else ""


def parse(text: str | None) -> State:
    """The state of a query; what it does not know is left at its default."""
    values = parse_qs((text or "").removeprefix("?"))
    return state_of({name: values[name][0] for name in CONTROLS if name in values}, values)


MOST_IN_DRAWER = 4000
"""Cells of a series, the last ones, that a drawer is made of."""
MOST_FIGURES = 8
"""On one screen; filters make it fewer."""


def views(data: Data, state: State) -> tuple[list[View], str]:
    """The views of a state, and a sentence where some are left out or there is none; else an empty text."""
    if not len(data.frame):
        return [], why_nothing(data.store, data.skipped)
    chosen, left = data.drawn(state.filters)
    if not len(chosen):
        return [], "No cell fits these filters. Clear one of them; what there is: omb-py results list."
    entry = registry.offered()[state.view]
    cells = data.cells(chosen)
    shown = _draw(state, entry, cells)
    drawn = [*islice(shown, MOST_FIGURES)]
    if not drawn:
        return [], registry.lacks(entry, cells) or entry.empty
    more = next(shown, None) is not None
    others = f"These are the first {MOST_FIGURES} figures: filter by benchmark or ranks for others." if more else ""
    return drawn, " ".join(text for text in (left, others) if text)


def drawer(data: Data, name: str) -> tuple[str, list[View]]:
    """What is known of one cell: its name, and the first figure of each view of the tab ``Cell``.

    The name is empty where the store has no such cell.
    """
    rows = series.of_cell(data.frame, name)
    if not len(rows):
        return "", []
    own = used(rows.tail(1))
    cells = data.cells(used(rows.tail(MOST_IN_DRAWER)))
    size = own["size_bytes"].iloc[0]
    state = State(size="" if theme.absent(size) else str(size))
    entries = registry.offered_in("Cell").values()
    drawn = [view for entry in entries for view in islice(_draw(state, entry, cells), 2)]
    return f"{cell_name(own)}, {series.common(own)}", drawn


def _draw(state: State, entry: ViewEntry, cells: Cells) -> Iterator[View]:
    if entry.views is not None and not registry.lacks(entry, cells):
        commands, size = Commands(cells.provenance), int(state.size) if state.size else None
        values: Mapping[Input, str | int | None] = {"quantity": state.quantity, "count": state.count, "size": size}
        for shown in entry.views(cells, **{name: values[name] for name in entry.inputs}):
            if shown.view is not None:
                yield commands.on(shown.view, shown.rows)

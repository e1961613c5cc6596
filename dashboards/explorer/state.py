"""The state of the explorer's controls, and its form as a URL query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode

from omb_py.dashboards.explorer.data import FILTERS
from omb_py.dashboards.figures.curves import COUNTED
from omb_py.dashboards.views import registry
from omb_py.dashboards.views.over_size import QUANTITIES

COUNTS = tuple(COUNTED)
"""Columns over which scaling is drawn."""
THEMES = ("auto", "light", "dark")
"""``auto``: as the browser has it."""
CONTROLS = ("view", "quantity", "count", "size", "theme", "cell")
"""Controls of one value, in the order in which the URL has them."""
SECOND = "b."
"""Prefix of the second selection's filters."""
FILTER_CONTROLS = (*FILTERS, *(SECOND + name for name in FILTERS))
"""Controls of several values: the filters of both selections."""


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
    other: dict[str, list[str]] = field(default_factory=dict)
    """The second selection of the side by side view; a column that it leaves open is as in the first."""
    cell: str = ""
    """The cell in the drawer (:func:`omb_py.dashboards.base.series.cell_ids`); empty while it is closed."""

    def second(self) -> dict[str, list[str]]:
        """Filters of the second selection."""
        return {**self.filters, **self.other}

    def chosen(self, name: str) -> list[str]:
        """The values of one of :data:`FILTER_CONTROLS`."""
        if name.startswith(SECOND):
            return self.other.get(name.removeprefix(SECOND), [])
        return self.filters.get(name, [])


def state_of(values: Mapping[str, str | None], filters: Mapping[str, Sequence[str]]) -> State:
    """The state of the controls; a value that is not known is left at its default.

    Args:
        values: by the names of :data:`CONTROLS`.
        filters: by the names of :data:`FILTER_CONTROLS`; without values: everything.
    """
    known = {name: values.get(name) for name in CONTROLS}
    fixed = {name: value for name, allowed in choices().items() if (value := known[name]) in allowed}
    size = known["size"] or ""
    return State(
        **{name: value for name, value in fixed.items() if value is not None},
        size=size if size.isdecimal() else "",
        cell=known["cell"] or "",
        filters={name: [*filters[name]] for name in FILTERS if filters.get(name)},
        other={name: [*filters[SECOND + name]] for name in FILTERS if filters.get(SECOND + name)},
    )


def query(state: State) -> str:
    """The query with its ``?``; empty for what an address without one shows."""
    default = State()
    values = [(name, getattr(state, name)) for name in CONTROLS]
    parts = [(name, value) for name, value in values if value != getattr(default, name)]
    parts += [(name, value) for name in FILTER_CONTROLS for value in state.chosen(name)]
    return f"?{urlencode(parts)}" if parts else ""


def parse(text: str | None) -> State:
    """The state of a query; what it does not know is left at its default."""
    values = parse_qs((text or "").removeprefix("?"))
    return state_of({name: values[name][0] for name in CONTROLS if name in values}, values)

"""What is on the screen as a query of the URL, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode

from omb_py.dashboards.explorer.data import FILTERS

VIEWS = (
    "curves",
    "beside",
    "scaling",
    "beside_counts",
    "distribution",
    "trace",
    "stragglers",
    "steps",
    "model",
    "history",
    "verdicts",
    "guidelines",
    "pairs",
    "environment",
)
"""What can be looked at; the first is the default."""
QUANTITIES = ("auto", "time", "algbw", "busbw")
COUNTS = ("ranks", "devices")
"""Over what the views over counts are drawn."""
THEMES = ("auto", "light", "dark")
"""``auto``: as the browser has it."""
SIDE = "b."
"""Prefix of the second selection's filters."""


@dataclass(slots=True)
class State:
    """Everything that a link restores."""

    view: str = VIEWS[0]
    quantity: str = QUANTITIES[0]
    count: str = COUNTS[0]
    size: str = ""
    """Message size in bytes of the views of one cell."""
    theme: str = THEMES[0]
    filters: dict[str, list[str]] = field(default_factory=dict)
    other: dict[str, list[str]] = field(default_factory=dict)
    """The second selection of the side by side view; a column that it leaves open is as in the first."""

    def second(self) -> dict[str, list[str]]:
        """Filters of the second selection."""
        return {**self.filters, **self.other}


def query(state: State) -> str:
    """The query with its ``?``; empty for what an address without one shows."""
    parts = [("view", state.view)] if state.view != VIEWS[0] else []
    parts += [("quantity", state.quantity)] if state.quantity != QUANTITIES[0] else []
    parts += [("count", state.count)] if state.count != COUNTS[0] else []
    parts += [("size", state.size)] if state.size else []
    parts += [("theme", state.theme)] if state.theme != THEMES[0] else []
    for prefix, chosen in (("", state.filters), (SIDE, state.other)):
        parts += [(prefix + name, value) for name in FILTERS for value in chosen.get(name, ())]
    return f"?{urlencode(parts)}" if parts else ""


def parse(text: str | None) -> State:
    """The state of a query; what it does not know is left at its default."""
    known: Mapping[str, list[str]] = parse_qs((text or "").removeprefix("?"))
    state = State()
    view, quantity, count, size, theme = (
        known.get(name, [""])[0] for name in ("view", "quantity", "count", "size", "theme")
    )
    state.view = view if view in VIEWS else state.view
    state.quantity = quantity if quantity in QUANTITIES else state.quantity
    state.count = count if count in COUNTS else state.count
    state.size = size if size.isdecimal() else ""
    state.theme = theme if theme in THEMES else state.theme
    state.filters = {name: known[name] for name in FILTERS if name in known}
    state.other = {name: known[SIDE + name] for name in FILTERS if SIDE + name in known}
    return state

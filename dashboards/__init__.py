"""What people look at. Importing this loads nothing heavy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omb_py.dashboards.terminal.tables import results_table, runs_table

_HOME = {"results_table": "terminal.tables", "runs_table": "terminal.tables"}

__all__ = ["results_table", "runs_table"]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})

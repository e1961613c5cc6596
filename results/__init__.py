"""Measured results: schema, journal, store, readers and writers. Importing this package loads nothing heavy.

Names that are also modules (``bandwidth``, ``runs``) are imported from those.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omb_py.results.statistics.summary import summarise
    from omb_py.results.store.journal import Journal
    from omb_py.results.store.keys import comparability_key, environment_key
    from omb_py.results.store.read import SkippedFile, files, load, read_provenance
    from omb_py.results.store.recovery import Recovered, recover
    from omb_py.results.store.redact import allowed_environment
    from omb_py.results.store.runs import show
    from omb_py.results.store.schema import SCHEMA_VERSION, blank_row
    from omb_py.results.store.write import check_writable, write_launch

_HOME = {
    "SCHEMA_VERSION": "store.schema",
    "Journal": "store.journal",
    "Recovered": "store.recovery",
    "SkippedFile": "store.read",
    "allowed_environment": "store.redact",
    "blank_row": "store.schema",
    "check_writable": "store.write",
    "comparability_key": "store.keys",
    "environment_key": "store.keys",
    "files": "store.read",
    "load": "store.read",
    "read_provenance": "store.read",
    "recover": "store.recovery",
    "show": "store.runs",
    "summarise": "statistics.summary",
    "write_launch": "store.write",
}

__all__ = [
    "SCHEMA_VERSION",
    "Journal",
    "Recovered",
    "SkippedFile",
    "allowed_environment",
    "blank_row",
    "check_writable",
    "comparability_key",
    "environment_key",
    "files",
    "load",
    "read_provenance",
    "recover",
    "show",
    "summarise",
    "write_launch",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})

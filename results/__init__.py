"""What was measured: schema, journal, store, readers and writers. Importing this loads nothing heavy.

Names that are also modules (``bandwidth``, ``runs``) are imported from those.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omb_py.results.journal import Journal
    from omb_py.results.keys import comparability_key, environment_key
    from omb_py.results.reading import SkippedFile, files, load, read_provenance
    from omb_py.results.recovery import Recovered, recover
    from omb_py.results.redact import allowed_environment
    from omb_py.results.runs import show
    from omb_py.results.schema import SCHEMA_VERSION, blank_row
    from omb_py.results.summary import summarise
    from omb_py.results.writing import check_writable, write_launch

_HOME = {
    "SCHEMA_VERSION": "schema",
    "Journal": "journal",
    "Recovered": "recovery",
    "SkippedFile": "reading",
    "allowed_environment": "redact",
    "blank_row": "schema",
    "check_writable": "writing",
    "comparability_key": "keys",
    "environment_key": "keys",
    "files": "reading",
    "load": "reading",
    "read_provenance": "reading",
    "recover": "recovery",
    "show": "runs",
    "summarise": "summary",
    "write_launch": "writing",
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

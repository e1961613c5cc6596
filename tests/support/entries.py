"""Entry points as installed packages would have them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType

import pytest

from omb_py import plug_ins

PACKAGE = "omb_py_test_package"
ABSENT, GONE = f"{PACKAGE}:NO_SUCH_THING", "no_such_module_of_anybody:B"
"""Values of entries without an object, and without a module."""


def install_entries(monkeypatch: pytest.MonkeyPatch, group: str, entries: Mapping[str, object]) -> None:
    """Let the installed packages have these entries of a group and no others; ends with :func:`forget_plug_ins`.

    Args:
        entries: name of each -> its value as text, or an object of the module :data:`PACKAGE`.
    """
    package = ModuleType(PACKAGE)
    vars(package).update(entries)
    monkeypatch.setitem(sys.modules, PACKAGE, package)
    values = {name: what if isinstance(what, str) else f"{PACKAGE}:{name}" for name, what in entries.items()}
    found = {group: tuple(plug_ins.EntryPointValue(*item) for item in values.items())}
    monkeypatch.setattr(plug_ins, "_entries", cache(lambda: found))
    forget_plug_ins()


def forget_plug_ins() -> None:
    """Look for installed packages anew."""
    plug_ins._entries.cache_clear()
    plug_ins.load_plug_ins.cache_clear()

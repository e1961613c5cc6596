"""Entry points as installed packages would have them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

from omb_py import plug_ins


def install_entries(monkeypatch: pytest.MonkeyPatch, group: str, values: Mapping[str, str]) -> None:
    """Let the installed packages have these entries of a group and no others; ends with :func:`forget_plug_ins`."""
    entries = {group: tuple(plug_ins.EntryPointValue(*item) for item in values.items())}
    monkeypatch.setattr(plug_ins, "_entries", cache(lambda: entries))
    forget_plug_ins()


def forget_plug_ins() -> None:
    """Look for installed packages anew."""
    plug_ins._entries.cache_clear()
    plug_ins.load_plug_ins.cache_clear()

"""Dialects of installed packages stand after ours, and replace none."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from omb_py.results.dialects import registry
from omb_py.results.dialects.dialect import Dialect
from tests.support.entries import forget_plug_ins, install_entries


def named(name: str) -> Dialect:
    return type("Theirs", (Dialect,), {"name": name})()


def test_a_dialect_of_a_package_replaces_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("omb_py_test_dialects")
    vars(package).update(IMB=named("imb"), PIPES=named("pipes"))
    monkeypatch.setitem(sys.modules, package.__name__, package)
    values = {name: f"{package.__name__}:{name.upper()}" for name in ("imb", "pipes")}
    install_entries(monkeypatch, registry.ENTRY_POINTS, values)
    try:
        assert [dialect.name for dialect in registry.installed()] == ["pipes"]
    finally:
        forget_plug_ins()

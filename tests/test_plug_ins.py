"""What installed packages add: whose error it is."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from omb_py import plug_ins
from omb_py.cli import main

SOURCE = """
def program(world, cell):
    return len(cell.size)
"""


def test_an_error_in_a_plug_in_is_the_plug_ins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs: dict[str, Any] = {"__name__": "their_ring.core"}
    exec(compile(SOURCE, "/site/their_ring/core.py", "exec"), theirs)
    monkeypatch.setattr(plug_ins, "_PACKAGES", {"omb_py", "their_ring"})
    run = ModuleType("omb_py.orchestrate.running.run")
    run.execute = lambda checked: theirs["program"](None, SimpleNamespace(size=8))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "omb_py.orchestrate.running.run", run)
    assert main(["allreduce", "--backend", "mock", "--no-store"]) == 3
    said = capsys.readouterr().err
    assert "TypeError: object of type 'int' has no len()" in said
    assert "raised in the plug-in their_ring.core, /site/their_ring/core.py line 3 (program)" in said
    assert "bug in omb-py" not in said


def test_an_error_elsewhere_is_not() -> None:
    with pytest.raises(TypeError) as caught:
        len(1)  # type: ignore[arg-type]
    assert plug_ins.raised_in(caught.value) == ""


def test_packages_whose_objects_are_loaded_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered: set[str] = set()
    monkeypatch.setattr(plug_ins, "_PACKAGES", remembered)
    plug_ins.load_plug_ins.cache_clear()
    plug_ins.load_plug_ins("omb_py.backends", object, named=False)
    assert "omb_py" in remembered

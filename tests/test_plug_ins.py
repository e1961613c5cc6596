"""What installed packages add: whose error it is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from omb_py import plug_ins
from omb_py.backends import registry
from omb_py.cli import main
from omb_py.cli.commands.info import list_command
from omb_py.launchers import registry as launchers
from omb_py.plugin import (
    Backend,
    Capabilities,
    Command,
    DeviceKind,
    Dialect,
    Launcher,
    Observer,
    Session,
)
from omb_py.suites import BENCHMARKS
from omb_py.suites.training.frameworks import OURS, frameworks
from tests.support.entries import PACKAGE, forget_plug_ins, install_entries

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


class Sketch(DeviceKind):
    """It lacks its methods."""


def test_a_method_that_a_plug_in_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plug_ins, "_PACKAGES", {"their_kinds"})
    monkeypatch.setattr(Sketch, "__module__", "their_kinds.sketch")
    with pytest.raises(NotImplementedError) as caught:
        Sketch("sketch").count()
    said = plug_ins.described(caught.value)
    assert said == "NotImplementedError: Sketch of the plug-in their_kinds.sketch must define count"


def test_an_error_that_no_plug_in_raised_names_those_that_are_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plug_ins, "_PACKAGES", {"omb_py", "their_ring"})
    run = ModuleType("omb_py.orchestrate.running.run")
    run.execute = lambda checked: len(1)  # type: ignore[attr-defined, arg-type]
    monkeypatch.setitem(sys.modules, "omb_py.orchestrate.running.run", run)
    assert main(["allreduce", "--backend", "mock", "--no-store"]) == 3
    assert "this is a bug in omb-py, or in a plug-in here (their_ring)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("group", "taken", "theirs"),
    [
        ("omb_py.benchmarks", "latency", BENCHMARKS["latency"]),
        ("omb_py.backends", "mock", Backend(Capabilities("mock"), Session)),
        ("omb_py.launchers", "srun", Launcher("srun", "", ())),
        ("omb_py.devices", "cuda", Sketch("cuda")),
        ("omb_py.observers", "energy", Observer),
        ("omb_py.dialects", "osu", type("Theirs", (Dialect,), {"name": "osu"})()),
        ("omb_py.commands", "run", Command("run", "", list_command)),
        ("omb_py.commands", "latency", Command("latency", "", list_command)),
        ("omb_py.frameworks", "torch", OURS["torch"]),
    ],
    ids=lambda what: what if isinstance(what, str) else "",
)
def test_list_tells_of_a_name_that_is_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], group: str, taken: str, theirs: object
) -> None:
    monkeypatch.setattr(plug_ins, "_BROKEN", {})
    monkeypatch.setattr(Observer, "name", "energy", raising=False)
    install_entries(monkeypatch, group, {taken: theirs})
    caches = (registry.backends, launchers.installed, frameworks)
    for remembered in caches:
        remembered.cache_clear()
    try:
        assert main(["list"]) == 0
    finally:
        forget_plug_ins()
        for remembered in caches:
            remembered.cache_clear()
    kind = group.removeprefix("omb_py.").removesuffix("s")
    said = f"{kind} {taken} of an installed package cannot be loaded: {PACKAGE}:{taken} needs another name"
    assert said in capsys.readouterr().out


def test_an_error_elsewhere_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plug_ins, "_PACKAGES", set())  # another test's plug-in may lie beside this file
    with pytest.raises(TypeError) as caught:
        len(1)  # type: ignore[arg-type]
    assert plug_ins.raised_in(caught.value) == ""


def install(entry: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that names a backend by this entry."""
    info = folder / "pigeon-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeon\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[omb_py.backends]\n{entry}\n")
    monkeypatch.syspath_prepend(folder)


def test_packages_whose_objects_are_loaded_are_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    remembered: set[str] = set()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(plug_ins, "_PACKAGES", remembered)
    install("pigeon = json:loads", tmp_path, monkeypatch)
    forget_plug_ins()
    plug_ins.load_plug_ins("omb_py.backends", object, named=False)
    assert "json" in remembered
    forget_plug_ins()


def test_entries_are_those_that_the_packages_have(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delitem(sys.modules, "importlib.metadata", raising=False)
    install("pigeon = pigeon:BACKEND", tmp_path, monkeypatch)
    forget_plug_ins()
    first, again = plug_ins._entries(), None
    assert "importlib.metadata" in sys.modules
    monkeypatch.delitem(sys.modules, "importlib.metadata")
    forget_plug_ins()
    again = plug_ins._entries()
    assert "importlib.metadata" not in sys.modules, "what was read once is remembered"
    assert again == first
    assert "pigeon" in {entry.name for entry in first["omb_py.backends"]}
    (tmp_path / "pigeon-1.dist-info" / "entry_points.txt").write_text("[omb_py.backends]\ndove = pigeon:BACKEND\n")
    forget_plug_ins()
    assert "dove" in {entry.name for entry in plug_ins._entries()["omb_py.backends"]}, "the package was changed"
    forget_plug_ins()


def test_an_entry_gives_the_object_that_it_names() -> None:
    assert plug_ins.EntryPointValue("lines", "os.path:join.__name__ [extra]").load() == "join"
    assert plug_ins.EntryPointValue("module", "os.path").load() is sys.modules["os.path"]
    with pytest.raises(AttributeError):
        plug_ins.EntryPointValue("gone", "os.path:no_such_name").load()

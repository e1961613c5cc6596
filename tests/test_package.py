"""The package: its folders, what it exports, and what a measuring rank does not load."""

from __future__ import annotations

import importlib.util
import json
import os
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import omb_py
from tests.support.machines.mpi import AS_ROOT, ROOT

HEAVY = {"pandas", "pyarrow", "plotly", "scipy", "click", "rich"}
SIDE_BY_SIDE = ("backends", "suites", "results", "dashboards")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def folders() -> set[str]:
    """Every folder of the checkout that holds a package, by its import name."""
    found = set()
    for top in ("omb_py", *SIDE_BY_SIDE):
        for file in (ROOT / top).rglob("__init__.py"):
            dotted = ".".join(file.parent.relative_to(ROOT).parts)
            found.add(dotted if top == "omb_py" else f"omb_py.{dotted}")
    return found


def test_an_editor_finds_the_folders_inside_the_package() -> None:
    """Static tools import nothing, so in a checkout links stand where an installation has the folders."""
    for top in SIDE_BY_SIDE:
        link = ROOT / "omb_py" / top
        assert not link.exists() or link.resolve() == (ROOT / top).resolve()


def test_what_is_installed_is_what_is_in_the_folders() -> None:
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == folders()


def test_every_folder_of_modules_is_a_package() -> None:
    for top in ("omb_py", *SIDE_BY_SIDE):
        for file in (ROOT / top).rglob("*.py"):
            assert (file.parent / "__init__.py").exists(), file


@pytest.mark.parametrize("name", sorted(folders()))
def test_every_module_can_be_imported(name: str) -> None:
    package = importlib.import_module(name)
    for module in pkgutil.iter_modules(package.__path__):
        if module.name != "__main__" and (name, module.name) != ("omb_py", "tests"):
            assert importlib.util.find_spec(f"{name}.{module.name}") is not None


def test_the_version_is_that_of_the_project() -> None:
    assert omb_py.__version__ == PROJECT["project"]["version"]


def test_it_is_typed() -> None:
    assert (ROOT / "omb_py" / "py.typed").exists()


TELL = """
import atexit, json, os, sys
def tell():
    if "omb_py.orchestrate.running.rank_process" in sys.orig_argv:
        with open(os.path.join({folder!r}, f"rank-{{os.getpid()}}.json"), "w") as file:
            json.dump(sorted(sys.modules), file)
atexit.register(tell)
"""
"""As sitecustomize of the rank processes: writes what they have loaded when they end."""


def loaded_by_ranks(folder: Path, *words: str) -> list[set[str]]:
    """The modules of each rank process of a run of the command."""
    (folder / "sitecustomize.py").write_text(TELL.format(folder=str(folder)))
    path = os.pathsep.join((str(folder), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-m", "omb_py", *words, "--store", str(folder / "store")],
        env={**os.environ, **AS_ROOT, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return [set(json.loads(file.read_text())) for file in sorted(folder.glob("rank-*.json"))]


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("binding", ["native", "mpi4py"])
def test_a_measuring_rank_loads_no_analysis_package(tmp_path: Path, binding: str) -> None:
    words = ("allreduce", "--binding", binding, "-n", "2", "-m", "8:8", "-i", "auto", "-c", "-z")
    ranks = loaded_by_ranks(tmp_path, *words)
    assert len(ranks) == 2
    for modules in ranks:
        assert {"omb_py.engine.measuring.measure", "mpi4py.MPI"} <= modules
        assert ("omb_py.engine.python_loop.loop" in modules) == (binding == "mpi4py")
        assert {name for name in modules if name.partition(".")[0] in HEAVY} == set()


def test_a_simulated_run_loads_no_mpi(tmp_path: Path) -> None:
    for modules in loaded_by_ranks(tmp_path, "allreduce", "--backend", "mock", "-n", "2", "-m", "8:8", "-i", "5"):
        assert "mpi4py.MPI" not in modules
        assert {name for name in modules if name.partition(".")[0] in HEAVY} == set()

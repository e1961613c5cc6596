"""The package: its folders, what it exports, and what a measuring rank does not load."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest
from setuptools import find_packages

import omb_py
from tests.support.machines.mpi import ROOT, run_omb_py

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


def test_links_stand_where_an_installation_has_the_folders() -> None:
    for top in SIDE_BY_SIDE:
        assert (ROOT / "omb_py" / top).resolve() == (ROOT / top).resolve()


def test_what_is_installed_is_what_is_in_the_folders() -> None:
    assert set(find_packages(str(ROOT), **PROJECT["tool"]["setuptools"]["packages"]["find"])) == folders()
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["*"]
    for name in folders():
        folder = ROOT / name.replace(".", "/")
        data = {file for file in (*folder.iterdir(), *folder.glob("assets/*")) if file.is_file() and not is_code(file)}
        assert data == {file for pattern in patterns for file in folder.glob(pattern)}


def is_code(file: Path) -> bool:
    return file.suffix in (".py", ".pyc")


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


def loaded_by_ranks(folder: Path, *words: str) -> set[str]:
    """The modules that the rank processes of a run of the command have loaded: Python writes them down."""
    done = run_omb_py(*words, "--store", str(folder / "store"), PYTHONPATH=str(ROOT), PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0, done.stderr
    printed = done.stderr.partition("the ranks printed:")[2].partition("\nomb-py:")[0]
    return set(re.findall(r"^import time: +\d+ \| +\d+ \| +([\w.]+)$", printed, re.M))


RANK = frozenset(
    (
        "backends backends.connecting backends.mpi backends.mpi.calls backends.mpi.clocks backends.mpi.rma "
        "backends.mpi.runners backends.mpi.session backends.mpi.start backends.mpi.types backends.mpi_values "
        "class_code digests distribution engine engine.measuring engine.measuring.cache_rotation "
        "engine.measuring.cell_result engine.measuring.host_memory engine.measuring.measure "
        "engine.measuring.process_sync engine.measuring.statistics engine.native engine.native.codegen "
        "engine.native.machine_code engine.native.opcodes engine.native.round_time engine.native.threads "
        "engine.native.translate "
        "engine.program engine.program.benchmark engine.program.buffers engine.program.datatype_layouts "
        "engine.program.dtypes engine.program.groups engine.program.language engine.program.requirements "
        "engine.program.rma engine.program.step_text engine.program.steps engine.python_loop "
        "engine.python_loop.runners engine.rank engine.rank.handshake "
        "engine.rank.lifetime engine.rank.link engine.rank.node_name engine.rank.plain_values "
        "engine.rank.reporting engine.rank.start_times engine.rank.system_info engine.samples engine.session "
        "engine.simple_queue "
        "errors grammar grammar.json_values grammar.rank_groups launchers orchestrate orchestrate.running "
        "orchestrate.running.rank_process orchestrate.supervision orchestrate.supervision.agent_start "
        "process_end results results.store results.store.redact suites suites.collective suites.collective.calls "
        "suites.collective.forms suites.lookup suites.shared user_cache"
    ).split()
)
"""All modules of omb-py that a native rank loads for ``allreduce``. A new one costs every rank its time."""


@pytest.mark.mpi
def test_a_rank_loads_these_modules_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ("allreduce", "-n", "2", "-m", "8:8", "-i", "5")
    first = loaded_by_ranks(tmp_path, *words)  # makes the machine code
    modules = loaded_by_ranks(tmp_path, *words)
    assert "llvmlite" in first
    ours = {name.removeprefix("omb_py.") for name in modules if name.startswith("omb_py.")}
    assert ours - RANK == set()
    heavy = {
        "ast",  # what inspect brings, for which dataclasses ask
        "dis",
        "numpy",
        "llvmlite",
        "asyncio",
        "email",
        "pathlib",
        "platform",
        "unittest",
        "logging",
        "statistics",
        *HEAVY,
    }
    assert {name.partition(".")[0] for name in modules} & heavy == set()
    assert not [name for name in modules if name.startswith("importlib.metadata")]


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("binding", ["native", "mpi4py"])
def test_a_measuring_rank_loads_no_analysis_package(tmp_path: Path, binding: str) -> None:
    words = ("allreduce", "--binding", binding, "-n", "2", "-m", "8:8", "-i", "auto", "-c", "-z")
    modules = loaded_by_ranks(tmp_path, *words)
    assert {"omb_py.engine.measuring.measure", "mpi4py.MPI"} <= modules
    assert ("omb_py.engine.python_loop.loop" in modules) == (binding == "mpi4py")
    assert {name for name in modules if name.partition(".")[0] in HEAVY} == set()

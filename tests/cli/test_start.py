"""The command line starts fast, because it loads little."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py import load
from tests.support.machines.mpi import run_command
from tests.support.patience import PATIENCE_S
from tests.support.tiers import few_quick

HEAVY = ("numpy", "pandas", "pyarrow", "rich", "scipy", "plotly", "llvmlite", "mpi4py")
MOST_MODULES = {("--help",): 100, ("allreduce", "--help"): 155, ("list",): 210, ("compare", "--help"): 145}
"""Modules of omb-py that a start may load. How long it takes is measured by tests/lab/startup.py."""
OTHERS = (
    *(("latency", "-n", "3"), ("--version",), ("alreduce",), ("explain", "bw")),
    *((command, "--help") for command in ("aa", "run", "accept")),
)


def run(*words: str, python: tuple[str, ...] = (), **more: str) -> subprocess.CompletedProcess[str]:
    code = "from omb_py.cli import main; raise SystemExit(main())"
    return run_command([sys.executable, *python, "-c", code, *words], **more)


@pytest.mark.parametrize("words", few_quick([*MOST_MODULES, *OTHERS], 2))
def test_nothing_heavy_and_few_modules_are_imported(words: tuple[str, ...]) -> None:
    done = run(*words, python=("-X", "importtime"))
    loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]
    assert 5 < len([name for name in loaded if name.startswith("omb_py")]) <= MOST_MODULES.get(words, 210)


@pytest.mark.parametrize("words", [("--help",), ("completions",)])
def test_no_command_is_imported_before_one_is_named(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    if words == ("completions",):
        for name, value in (("_OMB_PY_COMPLETE", "zsh_complete"), ("COMP_WORDS", "omb-py "), ("COMP_CWORD", "1")):
            monkeypatch.setenv(name, value)
    done = run(*words, python=("-X", "importtime"))
    assert "guidelines" in done.stdout and "allreduce" in done.stdout
    assert "omb_py.cli.app" in done.stderr and "omb_py.cli.commands" not in done.stderr


def test_importing_the_command_line_does_not_import_click() -> None:
    code = "import sys, omb_py.cli; sys.exit('click' in sys.modules or 'omb_py.suites' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=PATIENCE_S).returncode == 0


WITHOUT_A_STORE = ("allreduce", "-n", "2", "-m", "8:8", "-i", "5", "--no-store")


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with what a measurement keeps for the next one."""
    folder = str(tmp_path_factory.mktemp("cache"))
    run(*WITHOUT_A_STORE, XDG_CACHE_HOME=folder)
    return folder


@pytest.mark.mpi
@pytest.mark.parametrize("more", few_quick(["", "--full", "--format imb", "--format nccl-tests"]))
def test_a_measurement_without_a_store_loads_nothing_heavy_and_few_modules(more: str, cached: str) -> None:
    done = run(*WITHOUT_A_STORE, *more.split(), python=("-X", "importtime"), XDG_CACHE_HOME=cached)
    loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert done.returncode == 0 and "omb_py.orchestrate.running.run" in loaded
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]
    assert len([name for name in loaded if name.startswith("omb_py")]) <= 200
    # of inspect, of an option that click does not find at once, and of readers of logs
    assert not {"ast", "difflib", "gzip"} & loaded


@pytest.mark.mpi
def test_a_measurement_with_a_store_loads_what_writes_alone(tmp_path: Path) -> None:
    words = ("latency", "-n", "2", "-m", "8:8", "-i", "5", "--store", str(tmp_path / "results"))
    done = run(*words, python=("-X", "importtime"))
    loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert done.returncode == 0 and "pyarrow.lib" in loaded
    assert not {"numpy._core", "pandas.core", "pyarrow.compute", "dateutil", "zoneinfo"} & loaded
    assert [len(samples) for samples in load(tmp_path / "results")["samples_us"]] == [5]


def test_the_installed_command() -> None:
    """The entry point beside this Python, from another folder."""
    script = Path(sys.executable).with_name("omb-py")
    if not script.exists():
        pytest.skip("omb-py is not installed beside this Python")
    done = run_command([script, "latency", "-n", "3"], cwd="/", env=os.environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "omb-py: error: latency needs exactly 2 ranks, not 3: use -n 2\n"

"""A real package of somebody else, installed beside omb-py, adds a benchmark (docs/extending.md)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machines.mpi import AS_ROOT

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package, built from a copy so that nothing is left behind in the tree."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "omb_py_ring.py"):
        (source / name).write_bytes((ROOT / "tests" / "plugin" / name).read_bytes())
    words = ["install", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--target", folder]
    done = subprocess.run([sys.executable, "-m", "pip", *map(str, words), str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def omb_py(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "omb_py", *words],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=folder,
        env={**os.environ, **AS_ROOT, "PYTHONPATH": path},
    )


def test_it_is_listed_explained_and_has_a_help_page(ring: Path) -> None:
    assert re.search(r"^ring +collective|^ring ", omb_py(ring, "list").stdout, re.M)
    explained = omb_py(ring, "explain", "ring", "-n", "3").stdout
    assert "| isend 8 B to 1, request 0" in explained and "| recv 8 B from 2" in explained
    assert "a message to the next rank" in omb_py(ring, "--help").stdout
    assert "--message-size" in omb_py(ring, "ring", "--help").stdout


def test_it_is_measured_and_checked_on_the_simulation(ring: Path) -> None:
    done = omb_py(ring, "ring", "--backend", "mock", "-n", "5", "-m", "1:64:8", "-c", "--no-store")
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.strip().splitlines()[-4:]
    assert head == "# Size       Avg Latency(us)        Validation"
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [("1", "Pass"), ("8", "Pass"), ("64", "Pass")]
    assert "# omb-py ring Test v" in done.stdout


@pytest.mark.mpi
@pytest.mark.one_library
def test_it_is_measured_and_checked_on_real_ranks(ring: Path) -> None:
    for binding in ("native", "mpi4py"):
        done = omb_py(ring, "ring", "-n", "2", "-m", "8:64:8", "-c", "--binding", binding, "-i", "20")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("Pass") == 2
    stored = omb_py(ring, "results", "list")
    assert "ring" in stored.stdout, stored.stderr

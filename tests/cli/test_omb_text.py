"""OMB's text from real MPI: every benchmark, both bindings, every rank count up to 4 that it admits, all checked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.suites import BENCHMARKS
from tests.support.mpi import ROOT, environment

pytestmark = pytest.mark.mpi
BRIEFLY = ("reduce", "reduce_scatter_block", "gather", "scatter")
"""Their data is looked at by tests/backends/test_conformance.py at every rank count; here it is about the text."""
COMBINATIONS = [
    (name, binding, ranks)
    for name, benchmark in BENCHMARKS.items()
    for binding in ("native", "mpi4py")
    for ranks in (2, 3, 4)
    if benchmark.family != "one-sided"  # tests/cli/test_one_sided.py
    and benchmark.ranks.admits(ranks)
    and (name not in BRIEFLY or (binding, ranks) in (("native", 3), ("mpi4py", 4)))
]
NUMBER = r"\d+\.\d\d"


def run(store: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "omb_py", *words, "--store", str(store), "--quiet"],
        capture_output=True, text=True, timeout=100, cwd=ROOT, env=environment(),
    )  # fmt: skip


@pytest.mark.parametrize(("name", "binding", "ranks"), COMBINATIONS)
def test_is_printed_and_every_byte_is_right(name: str, binding: str, ranks: int, tmp_path: Path) -> None:
    sizes = ("-m", "8:16", "-c") if BENCHMARKS[name].sizes else ()  # a barrier has no data
    done = run(tmp_path, name, "--binding", binding, "-n", str(ranks), *sizes, "-i", "5", "-x", "1")
    assert done.returncode == 0, done.stderr
    heads = [line for line in done.stdout.splitlines() if line.startswith("#")]
    rows = [line for line in done.stdout.splitlines() if line.strip() and not line.startswith("#")]
    assert re.match(r"# OSU MPI .*Test v7\.5", heads[0]), done.stdout
    if not sizes:
        assert len(rows) == 1 and re.fullmatch(rf"\s*{NUMBER}\s*", rows[0]), done.stdout
        return
    fields = [re.fullmatch(rf"(\d+)\s+({NUMBER})\s+Pass", row) for row in rows]
    assert all(fields), done.stdout
    assert [int(field[1]) for field in fields if field] == [8, 16]
    assert all(float(field[2]) > 0 for field in fields if field)


@pytest.mark.parametrize("binding", ["native", "mpi4py"])
def test_one_wrong_byte_is_a_fail_and_exit_code_1(binding: str, tmp_path: Path) -> None:
    done = run(
        tmp_path, "allgather", "--binding", binding, "-n", "3", "-m", "8:32", "-i", "5", "-c", "--inject", "flip:2:16"
    )
    assert done.returncode == 1, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit()]
    assert [(row[0], row[-1]) for row in rows] == [("8", "Pass"), ("16", "Fail")]

"""Real MPI over several hosts (network namespaces): what needs several nodes runs, and every byte is right."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mpi import ROOT, environment
from tests.support.nodes import OVER_TCP, hosts, why_not

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(2, 1), (3, 1), (2, 2)])
@pytest.mark.parametrize("name", ["bw_fan_in", "bw_fan_out"])
def test_a_node_and_the_others_exchange_windows(name: str, nodes: int, ranks_per_node: int, tmp_path: Path) -> None:
    if why_not():
        pytest.skip(why_not())
    words = [
        sys.executable,
        "-m",
        "omb_py",
        name,
        "-m",
        "8:16",
        "-i",
        "5",
        "-x",
        "1",
        "-W",
        "4",
        "-c",
        "--format",
        "csv",
    ]
    both = ["--format", "csv", "--binding", "native,mpi4py", "--thread-level", "multiple", "--no-store", "--quiet"]
    with hosts(nodes) as cluster:
        done = subprocess.run(
            [*cluster.launcher(tmp_path, ranks_per_node), *words, *both],
            capture_output=True, text=True, timeout=100, cwd=ROOT, env=environment(**OVER_TCP),
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [(row["binding"], row["size_bytes"], row["validated"]) for row in csv.DictReader(io.StringIO(done.stdout))]
    assert rows == [(binding, size, "true") for binding in ("native", "mpi4py") for size in ("8", "16")]


@pytest.mark.parametrize("name", ["bw_fan_in", "bw_fan_out"])
def test_one_node_is_refused(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "omb_py", name, "-n", "2", "--no-store"],
        capture_output=True, text=True, timeout=100, cwd=ROOT, env=environment(),
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert "needs several nodes with equally many ranks on each, but here are 2 on " in done.stderr

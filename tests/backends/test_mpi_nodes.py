"""Real MPI over several hosts (network namespaces): what needs several nodes runs, and every byte is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mpi import ROOT, environment
from tests.support.nodes import OVER_TCP, hosts, why_not

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(
    ("name", "binding", "nodes", "ranks_per_node"),
    [("bw_fan_in", "native", 2, 1), ("bw_fan_in", "mpi4py", 2, 2), ("bw_fan_out", "native", 3, 1),
     ("bw_fan_out", "mpi4py", 2, 1)],
)  # fmt: skip
def test_a_node_and_the_others_exchange_windows(
    name: str, binding: str, nodes: int, ranks_per_node: int, tmp_path: Path
) -> None:
    if why_not():
        pytest.skip(why_not())
    words = [sys.executable, "-m", "omb_py", name, "--binding", binding, "-m", "8:16", "-i", "5", "-x", "1", "-W", "4"]
    with hosts(nodes) as cluster:
        done = subprocess.run(
            [*cluster.launcher(tmp_path, ranks_per_node), *words, "-c", "--no-store", "--quiet"],
            capture_output=True, text=True, timeout=100, cwd=ROOT, env=environment(**OVER_TCP),
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit()]
    assert [(row[0], row[-1]) for row in rows] == [("8", "Pass"), ("16", "Pass")]


@pytest.mark.parametrize("name", ["bw_fan_in", "bw_fan_out"])
def test_one_node_is_refused(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "omb_py", name, "-n", "2", "--no-store"],
        capture_output=True, text=True, timeout=100, cwd=ROOT, env=environment(),
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert "needs several nodes with equally many ranks on each, but here are 2 on " in done.stderr

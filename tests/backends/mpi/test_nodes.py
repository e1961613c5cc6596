"""Real MPI over several hosts (network namespaces): what needs several nodes runs, and every byte is right."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omb_py.results.store.read import load
from tests.support.machines.cluster import YIELD
from tests.support.machines.mpi import ROOT, run_command, run_omb_py
from tests.support.machines.nodes import hosts, why_not

pytestmark = pytest.mark.mpi


BOTH = ("bw_fan_in", "bw_fan_out")
SUITE = f"""
name = "windows"
description = "between a node and the others"
[[entry]]
benchmarks = {list(BOTH)}
"""


@cache
def told(folder: Path, nodes: int, ranks_per_node: int) -> list[dict[str, Any]]:
    """The rows of one launch with both benchmarks and bindings."""
    (folder / "windows.toml").write_text(SUITE)
    few = ["-m", "8:16", "-i", "5", "-x", "1", "-W", "4", "-c", "--format", "json", "--no-store", "--quiet"]
    both = ["--binding", "native,mpi4py", "--thread-level", "multiple"]
    with hosts(nodes) as cluster:
        launcher = cluster.launcher(folder, ranks_per_node)
        done = run_command(
            [*launcher, sys.executable, "-m", "omb_py", "run", str(folder / "windows.toml"), *few, *both],
            cwd=ROOT,
            **YIELD,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "ranks_per_node"), [(2, 1), *(pytest.param(*shape, marks=pytest.mark.slow) for shape in ((3, 1), (2, 2)))]
)
@pytest.mark.parametrize("name", BOTH)
def test_a_node_and_the_others_exchange_windows(
    name: str, nodes: int, ranks_per_node: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if why_not():
        pytest.skip(why_not())
    rows = told(tmp_path_factory.getbasetemp(), nodes, ranks_per_node)
    mine = [(row["binding"], row["size_bytes"], row["validated"]) for row in rows if row["benchmark"] == name]
    assert mine == [(binding, size, True) for binding in ("native", "mpi4py") for size in (8, 16)]


@pytest.mark.parametrize("name", BOTH)
def test_one_node_is_refused(name: str) -> None:
    done = run_omb_py(name, "-n", "2", "--no-store", cwd=ROOT)
    assert done.returncode == 3
    assert done.stdout == "" and done.stderr.count("omb-py: error: ") == 1
    assert "needs several nodes with equally many ranks on each, but here are 2 on " in done.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("called", [True, False], ids=["by address", "by host name"])
def test_nodes_with_one_host_name_are_two_nodes_and_named_as_the_user_did(called: bool, tmp_path: Path) -> None:
    if why_not():
        pytest.skip(why_not())
    with hosts(2) as cluster:
        names = [cluster.address(0), cluster.address(1)] if called else list(cluster.names)
        launcher = " ".join(cluster.words(tmp_path, "image" if called else "$host"))
        few = ["-m", "8", "-i", "5", "-x", "1", "-W", "4", "--store", str(tmp_path)]
        where = ["--hosts", ",".join(names), "--launcher-args", launcher]
        done = run_omb_py("bw_fan_in", "-n", "2", *where, *few, cwd=ROOT, **YIELD)
    assert done.returncode == 0, done.stdout + done.stderr
    # bw_fan_in is refused where all ranks are on one node
    assert {tuple(hosts) for hosts in load(tmp_path)["hosts"]} == {tuple(names)}

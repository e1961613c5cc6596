"""``omb-py links`` over real MPI on several hosts: what is wrong with a host is found and named.

Once here, a slow link in tests/orchestrate/launching/test_rehearsal.py, and what several hosts behind a slow uplink
give on simulated ranks (tests/cli/commands/test_links.py); ``python -m tests.lab.real_ranks.links_cluster --times 20``
counts how often, on real hosts these too, packets that are lost and healthy hosts. Of a host that is cut off the other
commands are tried on simulated ranks (tests/orchestrate/running/test_lost_nodes.py).
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import omb_py
from tests.support.machines.cluster import FAULTS, YIELD, broken, command, named
from tests.support.machines.mpi import ROOT, environment, run_command
from tests.support.machines.nodes import hosts, why_not
from tests.support.patience import PATIENCE_S
from tests.support.patient import PATIENT

pytestmark = [pytest.mark.mpi, pytest.mark.slow]

SUITE = """
name = "long"
description = "too long for a cable to be taken out unnoticed"
[[entry]]
benchmarks = ["allreduce", "alltoall"]
message-size = "8:16"
iterations = 50
[[entry]]
benchmarks = ["allgather"]
message-size = "8:8"
iterations = 20000
[[entry]]
benchmarks = ["bcast"]
message-size = "8:8"
iterations = 50
"""


@pytest.fixture(autouse=True)
def _possible() -> None:
    if why_not():
        pytest.skip(why_not())


@pytest.mark.alone
def test_a_late_node_is_named() -> None:
    """By one sweep; where another user of the machine hid it, by most of three.

    Ranks on two cores beside other work have slow links of their own. How often one of them is named too depends on
    that work: simulated machines and the bench say it.
    """
    wanted = FAULTS["a late node"].names
    with broken(4, "a late node", gross=True) as sweep:
        sweeps = [sweep()]
        if not wanted <= named(sweeps[0][1]):
            sweeps += [sweep(), sweep()]
    for code, found, err in sweeps:
        assert found["nodes"] == [f"node{k}" for k in range(4)], err
        assert code == bool(named(found))
    told = Counter(name for _, found, _ in sweeps for name in named(found))
    assert all(2 * told[name] > len(sweeps) for name in wanted), told


def test_hosts_that_do_not_answer_are_named(tmp_path: Path) -> None:
    with hosts(3) as cluster:
        words = command(cluster, tmp_path, "links", "--no-store", "--timeout", "20")
        words[words.index("--hosts") + 1] += ",node7"
        done = run_command(words, cwd=ROOT, **YIELD)
    assert done.returncode == 3 and done.stdout == ""
    assert "no answer from node7: look at node7, or leave it out of --hosts" in done.stderr


def finished(store: Path, benchmark: str) -> int:
    """Cells of a benchmark in the journals of launches that run."""
    lines = [line for path in store.glob(".journal/*.jsonl") for line in path.read_bytes().split(b"\n")[1:]]
    return sum(f'"benchmark":"{benchmark}"'.encode() in line for line in lines)


def hosts_of(rows: pd.DataFrame) -> set[str]:
    return {host for hosts in rows["hosts"] for host in hosts}


def test_the_rest_of_a_suite_is_measured_without_the_host(tmp_path: Path) -> None:
    """What was left is measured on two hosts, the first line of the end names the third, and the exit code is 3."""
    store = tmp_path / "store"
    (tmp_path / "long.toml").write_text(SUITE)
    line = f"run {tmp_path}/long.toml --quiet -n 3 --store {store} --timeout 6"
    with hosts(3) as cluster:
        child = subprocess.Popen(
            command(cluster, tmp_path, *line.split(), program=PATIENT),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=environment(**YIELD),
        )
        try:
            until = time.monotonic() + PATIENCE_S
            while finished(store, "alltoall") < 2:  # both sizes; what follows is long
                assert time.monotonic() < until and child.poll() is None
                time.sleep(0.1)
            time.sleep(0.3)
            cluster.cut(2)
            _, err = child.communicate(timeout=PATIENCE_S)
        finally:
            child.kill()
            child.communicate()
    assert child.returncode == 3, err
    assert err.startswith("omb-py: lost node2: the rest was measured on node0, node1: node2: "), err
    rows = omb_py.load(store).set_index("benchmark")
    assert set(rows.index) == {"allreduce", "alltoall", "allgather", "bcast"} and len(set(rows["run_id"])) == 1
    assert hosts_of(rows.loc[["allreduce", "alltoall"]]) == {"node0", "node1", "node2"}
    assert hosts_of(rows.loc[["allgather", "bcast"]]) == {"node0", "node1"}

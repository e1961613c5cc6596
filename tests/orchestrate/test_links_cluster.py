"""``omb-py links`` over real MPI on several hosts: what is wrong with a cable is found and named.

Once each here; ``python -m tests.bench.links_cluster --times 20`` counts how often.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

import omb_py
from tests.support.cluster import FAULTS, YIELD, command, named, swept
from tests.support.mpi import ROOT, environment
from tests.support.nodes import hosts, why_not

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]

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
iterations = 5000000
"""


@pytest.fixture(autouse=True)
def _possible() -> None:
    if why_not():
        pytest.skip(why_not())


@pytest.mark.parametrize(("nodes", "fault"), [*((4, fault) for fault in FAULTS), (8, "a link of 1 Gbit/s")])
def test_what_is_wrong_is_named(nodes: int, fault: str) -> None:
    """In one sweep; where another user of the machine spoiled that one, in both of the next two."""
    wanted = FAULTS[fault][1]
    sweeps = [swept(nodes, fault)]
    if named(sweeps[0][1]) != wanted:
        sweeps = [swept(nodes, fault), swept(nodes, fault)]
    for code, found, err in sweeps:
        assert named(found) == wanted, (found.get("found"), err)
        assert code == bool(wanted)
        assert found["nodes"] == [f"node{k}" for k in range(nodes)]


def test_hosts_that_do_not_answer_are_named(tmp_path: Path) -> None:
    with hosts(3) as cluster:
        words = command(cluster, tmp_path, "links", "--no-store", "--timeout", "20")
        words[words.index("--hosts") + 1] += ",node7"
        done = subprocess.run(words, capture_output=True, text=True, timeout=100, cwd=ROOT, env=environment(**YIELD))
    assert done.returncode == 3 and done.stdout == ""
    assert "no answer from node7: look at node7, or leave it out of --hosts" in done.stderr


def test_a_host_is_cut_off_in_the_middle_of_a_suite(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(SUITE)
    store = tmp_path / "store"
    with hosts(3) as cluster:
        words = command(cluster, tmp_path, "run", str(tmp_path / "long.toml"), "-n", "3", "--store", str(store),
                        "--timeout", "6")  # fmt: skip
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
                                 env=environment(**YIELD))  # fmt: skip
        try:
            until = time.monotonic() + 60
            while sum(path.read_bytes().count(b"\n") for path in store.rglob("*.jsonl")) < 5:
                assert time.monotonic() < until and child.poll() is None
                time.sleep(0.1)
            time.sleep(1)
            cluster.cut(2)
            _, err = child.communicate(timeout=90)
        finally:
            child.kill()
            child.communicate()
    assert child.returncode == 3, err
    assert "node2" in err and "rank 2" in err, err
    rows = omb_py.load(store)
    assert sorted(set(rows["benchmark"])) == ["allreduce", "alltoall"] and len(rows) == 4

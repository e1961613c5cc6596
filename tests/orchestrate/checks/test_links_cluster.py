"""``omb-py links`` over real MPI on several hosts: what is wrong with a cable is found and named.

Once each here; ``python -m tests.lab.real_ranks.links_cluster --times 20`` counts how often.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import omb_py
from tests.support.machines.cluster import FAULTS, UPLINK, YIELD, broken, command, named
from tests.support.machines.mpi import ROOT, environment, run_command
from tests.support.machines.nodes import hosts, why_not
from tests.support.patience import PATIENCE_S

pytestmark = [pytest.mark.mpi, pytest.mark.slow]

SUITE = """
name = "long"
description = "too long for a cable to be taken out unnoticed"
[accept]
launches = 2
most-launches = 2
confidence = "60%"
[[criterion]]
id = "small"
benchmark = "allreduce"
max = "1 s"
[[criterion]]
id = "long"
benchmark = "allgather"
max = "1 s"
[[entry]]
benchmarks = ["allreduce", "alltoall"]
message-size = "8:16"
iterations = 50
[[entry]]
benchmarks = ["allgather"]
message-size = "8:8"
iterations = 5000000
"""
AFTER = """
[[entry]]
benchmarks = ["bcast"]
message-size = "8:8"
iterations = 50
"""


@pytest.fixture(autouse=True)
def _possible() -> None:
    if why_not():
        pytest.skip(why_not())


@pytest.mark.parametrize(("nodes", "fault"), [*((4, fault) for fault in FAULTS if fault != UPLINK), (8, UPLINK)])
def test_what_is_wrong_is_named(nodes: int, fault: str) -> None:
    """By one sweep; where another user of the machine hid it, by most of three.

    Eight ranks on two cores beside other work have slow links of their own. How often one of them is named too depends
    on that work: simulated machines and the bench say it.
    """
    wanted = FAULTS[fault].names
    with broken(nodes, fault, gross=True) as sweep:
        sweeps = [sweep()]
        if not wanted <= named(sweeps[0][1]):
            sweeps += [sweep(), sweep()]
    for code, found, err in sweeps:
        assert found["nodes"] == [f"node{k}" for k in range(nodes)], err
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


def cut_off(folder: Path, line: str, begun: Callable[[Path], bool]) -> tuple[int, str, str]:
    """Run a command on three hosts, of which the last is cut off once it has begun: exit code, stdout, stderr."""
    store = folder / "store"
    with hosts(3) as cluster:
        words = command(cluster, folder, *f"{line} -n 3 --store {store} --timeout 6".split())
        where, rest = words[4:8], words[8:]  # a benchmark comes before its options
        child = subprocess.Popen(
            [*words[:4], *rest, *where],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(**YIELD),
        )
        try:
            until = time.monotonic() + PATIENCE_S
            while not begun(store):
                assert time.monotonic() < until and child.poll() is None
                time.sleep(0.1)
            time.sleep(1)
            cluster.cut(2)
            out, err = child.communicate(timeout=PATIENCE_S)
        finally:
            child.kill()
            child.communicate()
    return child.returncode, out, err


def in_long_entry(store: Path) -> bool:
    return finished(store, "alltoall") == 2  # both sizes; what follows is long


def accept_cut_off(folder: Path, suite: str, form: str) -> tuple[int, str, str]:
    (folder / "long.toml").write_text(suite)
    return cut_off(folder, f"accept {folder}/long.toml --no-correctness --format {form}", in_long_entry)


def test_a_host_is_cut_off_in_the_middle_of_an_acceptance(tmp_path: Path) -> None:
    """Named, finished cells kept and judged as far as they go, what is missing an ERROR."""
    code, out, err = accept_cut_off(tmp_path, SUITE, "json")
    assert code == 3, err
    told = json.loads(out)
    assert list(told["missing_nodes"]) == ["node2"] and told["verdict"] == "ERROR"
    assert any("rank 2" in one["reason"] and one["failed"] for one in told["incidents"]), told["incidents"]
    small, _, long = told["verdicts"]
    assert [len(one["launches"]) for one in (small, long)] == [1, 0] and long["verdict"] == "ERROR"
    rows = omb_py.load(tmp_path / "store")
    assert {"allreduce", "alltoall"} <= set(rows["benchmark"]) and "allgather" not in set(rows["benchmark"])


def test_the_rest_goes_on_without_the_host_where_the_suite_allows_it(tmp_path: Path) -> None:
    """Every row is filled on the hosts that are left, and the first line names the one that was lost."""
    suite = SUITE.replace("[accept]\n", "[accept]\nallow-missing-nodes = true\n").replace("5000000", "50000")
    code, out, err = accept_cut_off(tmp_path, suite, "table")
    first = next(line for line in out.splitlines() if " verdicts; " in line)
    assert code == 0, f"{out}\n{err}"
    assert first.startswith("PASS: 3 pass of 3 verdicts") and first.endswith("missing: node2"), out
    assert "node2 stopped answering: the rest was measured on 2 nodes" in out and "missing node node2: " in out
    rows = omb_py.load(tmp_path / "store")
    long = rows[rows["benchmark"] == "allgather"]
    assert set(long["ranks"]) == {2} and {host for hosts in long["hosts"] for host in hosts} == {"node0", "node1"}


def hosts_of(rows: pd.DataFrame) -> set[str]:
    return {host for hosts in rows["hosts"] for host in hosts}


def test_the_rest_of_a_suite_is_measured_without_the_host(tmp_path: Path) -> None:
    """What was left is measured on two hosts, the first line of the end names the third, and the exit code is 3."""
    suite = SUITE.partition("[accept]")[0] + SUITE[SUITE.index("[[entry]]") :].replace("5000000", "50000") + AFTER
    (tmp_path / "long.toml").write_text(suite)
    code, _, err = cut_off(tmp_path, f"run {tmp_path}/long.toml --quiet", in_long_entry)
    assert code == 3, err
    assert err.startswith("omb-py: lost node2: the rest was measured on node0, node1: node2: "), err
    rows = omb_py.load(tmp_path / "store").set_index("benchmark")
    assert set(rows.index) == {"allreduce", "alltoall", "allgather", "bcast"} and len(set(rows["run_id"])) == 1
    assert hosts_of(rows.loc[["allreduce", "alltoall"]]) == {"node0", "node1", "node2"}
    assert hosts_of(rows.loc[["allgather", "bcast"]]) == {"node0", "node1"}


def test_a_comparison_begins_again_without_the_host(tmp_path: Path) -> None:
    """Both sides are on two hosts in every launch that counts."""
    line = "compare --option NEW:warmup=20 allreduce -m 8:8 -i 2000 --launches 3 --rounds 1"
    code, out, err = cut_off(tmp_path, line, lambda store: len(list(store.glob("date=*/*.parquet"))) >= 2)
    assert code in (1, 3) and "without node2, which stopped answering" in out.splitlines()[0], f"{out}\n{err}"
    rows = omb_py.load(tmp_path / "store")
    (before, after) = (rows[rows["run_id"] == run] for run in sorted(set(rows["run_id"])))
    assert hosts_of(before) == {"node0", "node1", "node2"} and hosts_of(after) == {"node0", "node1"}
    assert len(after) == 6 and "3 launches" in out


def test_a_tuning_begins_again_without_the_host(tmp_path: Path) -> None:
    line = f"tune allreduce -m 8:8 -i 50 --no-guidelines --delta 50% --folder {tmp_path}/tuned --candidate a=X=1"
    code, out, err = cut_off(tmp_path, line, lambda store: len(list(store.glob("date=*/*.parquet"))) >= 2)
    assert code in (1, 3) and "without node2, which stopped answering" in out, f"{out}\n{err}"
    rows = omb_py.load(tmp_path / "store")
    assert hosts_of(rows[rows["ranks"] == 2]) == {"node0", "node1"} and set(rows["ranks"]) == {2, 3}

"""A real Slurm on this machine: srun, an allocation without srun, and jobs that omb-py submits itself."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator

import pytest

from omb_py.launchers.mpi_library import mpi_library
from omb_py.launchers.srun import srun_type
from omb_py.results.store.read import load
from omb_py.suites.shipped import shipped
from tests.support.machines import slurm
from tests.support.machines.slurm import Slurm

pytestmark = [pytest.mark.slow, pytest.mark.mpi, pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing())]
OMB = (sys.executable, "-m", "omb_py")
SRUN = ("srun", "-N", "2", "-n", "2")
PLACED = ("latency-distant", "mbw_mr-core-distant", "alltoall-odd")
"""Rows of nersc10 on nodes without accelerators: one rank on each of two ends, several there, and some of the nodes."""
TINY = ("-m", "8:8", "-i", "5", "-x", "1", "--quiet")


def mpi_type() -> tuple[str, ...]:
    """What srun is told for the MPI library here: pmi2 for MPICH, pmix for Open MPI."""
    return (f"--mpi={srun_type(mpi_library(sys.executable).vendor, ('pmi2', 'pmix'))}",)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    """Four nodes of two cores."""
    with slurm.cluster(4) as made:
        yield made


@pytest.mark.each_library
def test_srun_starts_the_ranks_on_nodes_that_are_named_as_slurm_names_them(cluster: Slurm) -> None:
    """All slurmd are on one host, whose name is that of none of the nodes."""
    done = cluster.run(*SRUN, *mpi_type(), *OMB, "allreduce", *TINY, "--store", "joined")
    assert done.returncode == 0, done.stderr + cluster.logs()
    assert "# OSU MPI Allreduce Latency Test" in done.stdout
    (row,) = load(cluster.folder / "joined").to_dict("records")
    assert (row["ranks"], list(row["hosts"]), row["nodes"]) == (2, ["node1", "node2"], 2)


@pytest.mark.each_library
def test_an_allocation_says_how_many_ranks(cluster: Slurm) -> None:
    """omb-py starts srun itself, with the tasks that the user asked salloc for; latency takes its two."""
    told = f"{sys.executable} -m omb_py"
    script = f"{told} allreduce {' '.join(TINY)} --store taken && {told} latency {' '.join(TINY)} --store taken"
    done = cluster.run("salloc", "-n", "3", "sh", "-c", script)
    assert done.returncode == 0, done.stderr + cluster.logs()
    frame = load(cluster.folder / "taken")
    assert dict(zip(frame["benchmark"], frame["ranks"], strict=True)) == {"allreduce": 3, "latency": 2}


def test_a_node_outside_the_allocation_is_refused(cluster: Slurm) -> None:
    words = ("-N", "2", "-n", "2", *OMB, "allreduce", *TINY, "--hosts", "node1,node9", "--no-store")
    refused = cluster.run("salloc", *words)
    assert refused.returncode == 2, refused.stderr
    assert "has no node9: leave it out of --hosts; its nodes are node1, node2" in refused.stderr


def test_a_submitted_array_is_collected(cluster: Slurm) -> None:
    """Two jobs alike, each on nodes of its own, in one store."""
    suite = cluster.folder / "tiny.toml"
    suite.write_text(
        'name = "tiny"\ndescription = "one"\n[[entry]]\nbenchmarks = ["allreduce"]\nmessage-size = "8:8"\n'
    )
    words = ("run", "./tiny.toml", "-n", "2", "-i", "5", "--submit", "slurm", "--nodes", "1", "--array", "2")
    done = cluster.run(*OMB, *words, "--store", "batched")
    assert done.returncode == 0, done.stdout + done.stderr + cluster.logs()
    assert done.stdout.count("# OSU MPI Allreduce") == 2 and "# job " in done.stdout
    frame = load(cluster.folder / "batched")
    assert frame["run_id"].nunique() == 2 and set(frame["ranks"]) == {2}
    assert "submitted job" in done.stderr and "has ended with 0" in done.stderr


def test_a_job_that_fails_says_why(cluster: Slurm) -> None:
    done = cluster.run(*OMB, "run", "nowhere.toml", "--submit", "slurm")
    assert done.returncode == 2, done.stderr
    inside = cluster.run(*OMB, "run", "quick", "--backend", "nccl", "--submit", "slurm")
    assert inside.returncode == 3 and "left no exit code" not in inside.stderr, inside.stderr
    refused = cluster.run(*OMB, "run", "quick", "--submit", "slurm", "--subset", "node9")
    assert refused.returncode == 3 and "node" in refused.stderr.splitlines()[-1].lower()


def test_nersc10_fills_its_table_in_a_job(cluster: Slurm) -> None:
    """From sbatch to the page, without an edit by hand: srun places the ranks of a row on the job's nodes.

    Three placements: on simulated ranks all rows are filled (tests/orchestrate/accept/test_contract_file.py).
    With MPICH alone: Open MPI fails in some launches between four slurmd that share a host. With two launches, since
    what eight say is known from simulated ranks.
    """
    head, *tables = re.split(r"^(?=\[\[)", shipped()["nersc10"].read_text(), flags=re.M)
    few = [table for table in tables if re.search(rf'^(name|id) = "({"|".join(PLACED)})"$', table, re.M)]
    (cluster.folder / "nersc10.toml").write_text(
        head.replace("launches = 8", 'launches = 2\nmost-launches = 2\nconfidence = "60%"') + "".join(few)
    )
    (cluster.folder / "c.toml").write_text('[machine]\ncores = 2\n[promised]\nlatency-distant = "1 s"\n')
    words = ("accept", "./nersc10.toml", "-n", "8", "-i", "3", "--no-correctness", "--quiet", "--contract", "c.toml")
    words += ("--output", "page.html", "--output", "data.json", "--submit", "slurm", "--nodes", "4")
    done = cluster.run(*OMB, *words, "--store", "accepted", timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr + cluster.logs()
    data = json.loads((cluster.folder / "data.json").read_text())
    placed = {verdict["criterion"]: verdict["placed"] for verdict in data["verdicts"]}
    assert all(verdict["measured"] for verdict in data["verdicts"])
    assert placed == {
        "latency-distant": "2 ranks on node1, node4",
        "mbw_mr-core-distant": "4 ranks on node1, node4",
        "alltoall-odd": "3 ranks on node1, node2, node3",
    }
    assert data["verdicts"][0]["verdict"] == "PASS" and "Slurm job" in data["job"]
    assert "signed for the customer" in (cluster.folder / "page.html").read_text()

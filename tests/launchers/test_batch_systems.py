"""What batch systems say of a job, read from recorded environments and node files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import EnvironmentProblem
from omb_py.launchers.batch_systems import count_slots
from omb_py.launchers.flux import parse_resources
from omb_py.launchers.launcher import Allocation, expand_hosts
from omb_py.launchers.registry import batch_around, job_around
from omb_py.launchers.srun import expand_counts
from omb_py.orchestrate.launching.launch_command import ranks_for
from omb_py.suites import find

SLURM_BATCH = {
    "SLURM_JOB_ID": "814",
    "SLURM_JOBID": "814",
    "SLURM_JOB_NODELIST": "node[01-04,7]",
    "SLURM_JOB_NUM_NODES": "5",
    "SLURM_NNODES": "5",
    "SLURM_NTASKS": "17",
    "SLURM_NPROCS": "17",
    "SLURM_TASKS_PER_NODE": "4(x4),1",
    "SLURM_JOB_CPUS_PER_NODE": "8(x4),2",
    "SLURM_CLUSTER_NAME": "alps",
}
COUNTS = ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE")
SLURM_SALLOC = {
    "SLURM_JOB_ID": "9",
    "SLURM_JOB_NODELIST": "n1",
    "SLURM_TASKS_PER_NODE": "2",
    "SLURM_JOB_CPUS_PER_NODE": "2",
}
PBS_PRO = {
    "PBS_JOBID": "4711.pbs01",
    "PBS_ENVIRONMENT": "PBS_BATCH",
    "PBS_QUEUE": "workq",
    "PBS_NUM_PPN": "2",
    "NCPUS": "2",
    "OMP_NUM_THREADS": "1",
}
PBS_NODEFILE = "r1i0n0.ib0\nr1i0n0.ib0\nr1i0n3.ib0\nr1i0n3.ib0\n"
FLUX_BATCH = {
    "FLUX_URI": "local:///tmp/flux-abc/local-0",
    "FLUX_ENCLOSING_ID": "fA7b2",
    "FLUX_KVS_NAMESPACE": "job-1",
    "FLUX_TERMINUS_SESSION": "0",
}


@pytest.mark.parametrize(
    ("environ", "job", "advice"),
    [
        (
            {**SLURM_BATCH, "SLURM_JOB_PARTITION": "gpu"},
            "Slurm job 814 (gpu)",
            "take out of service: scontrol update nodename=n1,n2 state=drain reason=omb-py; "
            "leave out of a job: sbatch --exclude=n1,n2",
        ),
        ({**PBS_PRO, "PBS_NODEFILE": "/x"}, "PBS job 4711.pbs01 (workq)", "take out of service: pbsnodes -o n1 n2"),
        ({"LSB_JOBID": "4"}, "LSF job 4", "take out of service: badmin hclose n1 n2"),
        (
            FLUX_BATCH,
            "Flux job fA7b2",
            "take out of service: flux resource drain n1,n2 omb-py; "
            "leave out of a job: flux batch --requires=-host:n1,n2",
        ),
        ({"PE_HOSTFILE": "/x", "JOB_ID": "4"}, "Grid Engine job 4", ""),
    ],
)
def test_the_job_and_how_its_bad_nodes_are_kept_from_others(environ: dict[str, str], job: str, advice: str) -> None:
    system = batch_around(environ)
    assert system is not None
    assert system.job_text(environ) == job and system.job_text({}) == ""
    assert system.out_of_service(["n1", "n2"]) == advice
    assert batch_around({}) is None


def test_slurm() -> None:
    found = job_around(SLURM_BATCH)
    assert found == Allocation(
        "Slurm", "814", (("node01", 4), ("node02", 4), ("node03", 4), ("node04", 4), ("node7", 1))
    )
    assert found.ranks == 17 and found.hosts[:2] == ("node01:4", "node02:4")
    shell = job_around(SLURM_SALLOC)
    assert shell is not None and shell.nodes == (("n1", 2),) and not shell.asked


def test_a_shell_step_on_one_node_of_a_job() -> None:
    """After ``salloc -N5``, ``srun -N1 --pty bash``: the number of tasks is the step's, the nodes are the job's."""
    job = job_around({**SLURM_BATCH, "SLURM_TASKS_PER_NODE": "1", "SLURM_NTASKS": "1"})
    assert job is not None and job.hosts == ("node01:8", "node02:8", "node03:8", "node04:8", "node7:2")
    assert not job.asked, "the task that was asked for is the shell"


def test_pbs(tmp_path: Path) -> None:
    file = tmp_path / "4711.pbs01"
    file.write_text(PBS_NODEFILE)
    found = job_around({**PBS_PRO, "PBS_NODEFILE": str(file)})
    assert found == Allocation("PBS", "4711.pbs01", (("r1i0n0.ib0", 2), ("r1i0n3.ib0", 2)))
    assert found.ranks == 4


def test_flux() -> None:
    asked: list[tuple[str, ...]] = []

    def ask(words: tuple[str, ...]) -> str:
        asked.append(words)
        return "corona[171-172] 2 96\ncorona9 1 24\n"

    found = job_around(FLUX_BATCH, ask)
    assert found == Allocation("Flux", "fA7b2", (("corona171", 48), ("corona172", 48), ("corona9", 24)), asked=False)
    assert asked[0][:3] == ("flux", "resource", "list")


def test_outside() -> None:
    assert job_around({}) is None
    assert job_around({"SLURM_JOB_ID": "1"}) is None, "no node is named"


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({**SLURM_BATCH, "SLURM_JOB_NODELIST": "node[1-"}, r"SLURM_JOB_NODELIST=node\[1- is no list of hosts"),
        ({**SLURM_BATCH, "SLURM_JOB_NODELIST": "n[4-2]"}, "'4-2' is no range of numbers"),
        ({**SLURM_BATCH, "SLURM_TASKS_PER_NODE": "4x4"}, r"'4x4' is no count, as 2\(x3\)"),
        ({**SLURM_BATCH, **dict.fromkeys(COUNTS, "4")}, "is of 1 nodes, SLURM_JOB_NODELIST of 5: give -n and"),
        ({**PBS_PRO, "PBS_NODEFILE": "/nowhere"}, "PBS_NODEFILE=/nowhere cannot be read"),
        ({**PBS_PRO, "PBS_NODEFILE": "/dev/null"}, "PBS_NODEFILE=/dev/null names no node"),
    ],
)
def test_what_cannot_be_read(environ: dict[str, str], says: str) -> None:
    with pytest.raises(EnvironmentProblem, match=says):
        job_around(environ)


@pytest.mark.parametrize("text", ["", "corona1 x 4", "corona1 0 4", "corona1 2"])
def test_a_flux_that_says_something_else(text: str) -> None:
    with pytest.raises(EnvironmentProblem, match="flux resource list"):
        parse_resources(text, "f1")


def test_a_flux_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentProblem, match="does not answer"):
        monkeypatch.setenv("PATH", "/nowhere")
        job_around(FLUX_BATCH)


@given(st.integers(0, 300), st.integers(0, 40), st.integers(1, 4))
def test_a_range_is_all_its_numbers(first: int, more: int, width: int) -> None:
    low = f"{first:0{width}d}"
    found = expand_hosts(f"n[{low}-{first + more}],x", "X")
    assert found == [f"n{n:0{len(low)}d}" for n in range(first, first + more + 1)] + ["x"]


@given(st.lists(st.tuples(st.integers(0, 128), st.integers(1, 9)), min_size=1, max_size=6))
def test_counts(runs: list[tuple[int, int]]) -> None:
    text = ",".join(f"{n}(x{times})" if times > 1 else str(n) for n, times in runs)
    assert expand_counts(text, "X") == [n for n, times in runs for _ in range(times)]


@given(st.text(max_size=20))
def test_no_text_is_a_traceback(text: str) -> None:
    for read in (expand_hosts, expand_counts):
        try:
            assert read(text, "X")
        except EnvironmentProblem as problem:
            assert "\n" not in str(problem) or "\n" in text
    assert all(slots > 0 for _, slots in count_slots(text))


def test_ranks_are_those_that_were_asked_for() -> None:
    found = job_around(SLURM_BATCH)
    assert ranks_for(find("allreduce"), found) == 17
    assert ranks_for(find("latency"), found) is None, "it needs exactly 2"
    assert ranks_for(find("allreduce"), job_around(SLURM_SALLOC)) is None, "cores were allocated, no tasks"
    assert ranks_for(find("allreduce"), None) is None

"""Inside a foreign launcher: ``mpiexec -n 2 omb-py …``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import cast

import pytest

from omb_py.engine.rank.launcher_variables import Joined
from omb_py.engine.rank.link import Link
from omb_py.engine.rank.watcher import Watcher
from omb_py.errors import UsageError
from omb_py.launchers.mpi_library import mpi_library
from omb_py.options.request import Request
from omb_py.orchestrate.running import joined_run
from omb_py.orchestrate.running.joined_run import _choose_fitting, started_ranks
from omb_py.orchestrate.running.run import connection_of, new_run, spec_of
from tests.lab.hostile.foreign_launches import try_cell
from tests.support.machines.mpi import run_command, run_omb_py
from tests.support.machines.standin import library, needs_compiler
from tests.support.patience import PATIENCE_S
from tests.support.planning import plan

OVERSUBSCRIBE = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
"""Open MPI starts no more ranks than cores without being asked to."""
MPIEXEC = str(Path(sys.executable).parent / "mpiexec")


def under_mpiexec(
    ranks: int, *words: str, python: tuple[str, ...] = ("-m", "omb_py")
) -> subprocess.CompletedProcess[str]:
    return run_command([MPIEXEC, "-n", str(ranks), sys.executable, *python, *words], **OVERSUBSCRIBE)


@pytest.mark.each_library
@pytest.mark.mpi
def test_the_ranks_join_one_world_and_one_table_is_printed(tmp_path: Path) -> None:
    from omb_py.results.store.read import load

    told = under_mpiexec(2, "allreduce", "-m", "8:32", "-i", "20", "-c", "--store", str(tmp_path))
    assert told.returncode == 0, told.stderr
    rows = [line.split() for line in told.stdout.splitlines() if line[:1].isdigit()]
    assert [(row[0], row[-1]) for row in rows] == [("8", "Pass"), ("16", "Pass"), ("32", "Pass")]
    assert told.stdout.count("# OSU MPI Allreduce") == 1
    assert load(tmp_path)["size_bytes"].tolist() == [8, 16, 32]


def test_a_launcher_that_does_not_say_its_size_is_an_error_without_n() -> None:
    unsized = Joined("prterun", 1, None)
    with pytest.raises(UsageError, match="prterun does not say how many ranks it started: add -n N"):
        started_ranks(None, unsized)
    assert started_ranks(4, unsized) == 4 and started_ranks(None, Joined("srun", 0, 3)) == 3


@pytest.mark.slow
@pytest.mark.mpi
def test_the_rank_rule_is_told_once(tmp_path: Path) -> None:
    told = under_mpiexec(3, "latency", "--store", str(tmp_path))
    assert told.returncode != 0
    assert told.stderr.count("latency needs exactly 2 ranks, not 3") == 1


@pytest.mark.slow
@pytest.mark.mpi
def test_the_api_gives_rows_to_rank_0_only(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "import omb_py\n"
        "result = omb_py.run('allreduce', sizes='8:16', iterations='10', store=None, quiet=True)\n"
        "print('rows', result.root, result.frame['size_bytes'].tolist(), flush=True)\n"
    )
    told = under_mpiexec(2, python=(str(script),))
    assert told.returncode == 0, told.stderr
    assert sorted(told.stdout.split("\n")[:2]) == ["rows False []", "rows True [8, 16]"]


@pytest.mark.slow
@pytest.mark.each_library
@pytest.mark.mpi
def test_worlds_of_one_are_an_error_that_says_so(tmp_path: Path) -> None:
    # what a launcher of another MPI library does: its variables are there, but the library does not know them
    env = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}
    told = run_omb_py("allreduce", "--store", str(tmp_path), **env)
    assert told.returncode == 3
    vendor = mpi_library(sys.executable).vendor
    assert re.search(rf"did not join one world: .* each world of {vendor} \S+ has 1", told.stderr.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.each_library
@pytest.mark.mpi
def test_what_no_rank_can_measure_is_said_once_with_its_code() -> None:
    """The first rank that exits lets the launcher end the others, MPICH's with signal 9, and close its pipes."""
    for _ in range(3):
        told = under_mpiexec(2, "bw_fan_in", "-m", "8:8", "--no-store")
        assert told.returncode in (3, 9), told.stderr
        assert told.stderr.count("omb-py: error: bw_fan_in needs several nodes") == 1


def test_what_does_not_fit_into_one_job_is_skipped_with_the_reason() -> None:
    launches = plan(Request("allreduce", bindings=("native", "mpi4py"), launches=2), 2)
    chosen, skips = _choose_fitting(launches)
    assert chosen is launches[0]
    other = "binding mpi4py (mpi at thread level multiple)"
    assert [skip.what for skip in skips] == [other, "launch 3", other]
    assert "started once, for mpi at thread level funneled" in skips[0].reason
    assert "one launch" in skips[1].reason


@pytest.mark.slow
def test_a_collector_whose_rank_0_died_says_so_in_a_line() -> None:
    words = [sys.executable, "-m", "omb_py.orchestrate.running.joined_collector"]
    done = subprocess.run(words, input="", capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    says = "omb-py: error: rank 0 ended before it had given the collector its task\n"
    assert (done.returncode, done.stderr) == (3, says)


@pytest.mark.slow
def test_a_collector_whose_address_nobody_reads_says_so_in_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    (launch,) = plan(Request("allreduce", store=None), 2)
    collector = joined_run.CollectorProcess(joined_run.Job(launch, "mpiexec"))
    with open(os.devnull) as nothing:  # in place of the pipe, whose last reader goes so
        os.dup2(nothing.fileno(), collector._reader)
    collector.begin()
    assert collector.wait() == 3
    assert capfd.readouterr().err == "omb-py: error: rank 0 ended before it had the address of its collector\n"


def test_rank_0_says_that_the_machine_is_busy_and_the_collector_stores_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "busy machine: other programs use 6.0 of 8 cores: end them, or expect wide spreads"
    monkeypatch.setattr("omb_py.orchestrate.running.run.busy_now", lambda started: said)
    (launch,) = plan(Request("allreduce", store=None), 2)
    monkeypatch.setattr(joined_run.subprocess, "Popen", lambda *words, **more: SimpleNamespace(pid=1))
    collector = joined_run.CollectorProcess(joined_run.Job(launch, "mpiexec"))
    os.close(collector._reader)
    assert collector._job.busy == said and capfd.readouterr().err == f"omb-py: warning: {said}\n"


@pytest.mark.slow
@pytest.mark.each_library
@pytest.mark.mpi
@pytest.mark.faults
def test_a_rank_that_ends_before_init_leaves_nobody_waiting(tmp_path: Path) -> None:
    """MPICH's rank 0 waited in MPI_Init for ever. The whole table: python -m tests.lab.hostile.foreign_launches."""
    rank = [sys.executable, "-m", "omb_py", "allreduce", "-m", "8:8", "--timeout", "3", "--no-store"]
    done = run_command([MPIEXEC, "-n", "1", *rank, ":", "-n", "1", "/bin/sh", "-c", "exit 3"], **OVERSUBSCRIBE)
    assert done.returncode != 0 and "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.each_library
@pytest.mark.mpi
@pytest.mark.faults
@pytest.mark.parametrize(
    ("who", "when"), [("collector", "before init"), ("collector", "first cell"), ("rank 1", "in init")]
)
def test_whoever_dies_in_a_foreign_launch_ends_the_job_and_is_named(who: str, when: str, tmp_path: Path) -> None:
    assert not re.search("HANG|TRACEBACK|not named|nobody", try_cell(who, when, tmp_path))


@pytest.mark.mpi
@needs_compiler
def test_a_joined_rank_connects_with_the_cells_and_keeps_the_library_s_lines_off_stdout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The session needs to know them before the library is first called: NCCL reads its variables once."""
    monkeypatch.setenv("OMB_PY_NCCL", str(library()))
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    words = "allreduce --backend nccl -d sim -m 64:64 -i 5 -x 1 --format json --no-store --quiet"
    told = under_mpiexec(2, *words.split())
    assert told.returncode == 0 and json.loads(told.stdout), told.stderr
    assert "stand-in: NCCL version" in told.stderr
    told = under_mpiexec(2, *words.split(), "--nccl", "log=tuning")
    assert json.loads(told.stdout)[0]["parameters"]["algorithm_used"] == "RING", told.stderr


@pytest.mark.parametrize("benchmark", ["latency", "allreduce"])
def test_both_ways_of_starting_give_a_session_the_same_description(benchmark: str) -> None:
    (launch,) = plan(Request(benchmark, hosts=("a", "b"), store=None), 2)
    request = launch.requests[0]
    joined, launched = connection_of(request, launch), spec_of(new_run(request, [launch]), launch)
    assert {"SLURM_JOB_ID", "PBS_JOBID", "PE_HOSTFILE", "FLUX_URI"} < set(cast(list[str], joined["batch_signs"]))
    assert joined.items() <= launched.items() and joined["cells"] and joined["hosts"] == ["a", "b"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_rank_reports_an_interrupt_before_it_ends(number: signal.Signals) -> None:
    """Its launcher sends it to each rank, of which one that it ended would be named as dead."""
    reported: SimpleQueue[str] = SimpleQueue()
    link = SimpleNamespace(send=reported.put, when_lost=None)
    before = signal.signal(number, signal.SIG_DFL)
    try:
        joined_run._report_interrupts(cast(Link, link))
        signal.raise_signal(number)
        assert reported.get(timeout=PATIENCE_S) == "interrupted" and link.when_lost is not None
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(number, before)


def test_a_rank_that_leaves_is_deaf_to_interrupts_bound_to_its_launcher_and_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bound: list[int] = []
    monkeypatch.setattr(joined_run, "die_with_parent", lambda launcher: bound.append(launcher) or True)
    before = signal.getsignal(signal.SIGINT)
    told: list[str] = []
    watcher = cast(Watcher, SimpleNamespace(leaving=lambda: told.append("leaving")))
    try:
        joined_run._leave(7, watcher)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert bound == [7] and told == ["leaving"]

"""What the three launchers print when a rank dies, word by word as they printed it."""

from __future__ import annotations

import pytest

from omb_py.orchestrate.supervision.failure_messages import (
    DeathReport,
    advice,
    cause,
    first_report,
    how_ended,
    last_words,
    reports,
)
from omb_py.orchestrate.supervision.rank_state import RankState

MPICH_KILLED = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 4796 RUNNING AT vm
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
"""
OPEN_MPI_KILLED = """
prterun noticed that process rank 1 with PID 4811 on node vm exited on
signal 9 (Killed).
"""
OPEN_MPI_ENDED = """
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-vm-4817@1,1]
   Exit code:    16
"""
INTEL_KILLED = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 0 PID 4831 RUNNING AT vm
=   KILLED BY SIGNAL: 9 (Killed)
===================================================================================
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 1 PID 4832 RUNNING AT vm
=   KILLED BY SIGNAL: 11 (Segmentation fault)
===================================================================================
"""
SRUN = "srun: error: node2: task 1: Segmentation fault\nsrun: error: node1: task 0: Exited with exit code 5\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (MPICH_KILLED, [DeathReport(4796, None, 9, None)]),
        (MPICH_KILLED.replace("CODE: 9", "CODE: 1280"), [DeathReport(4796, None, None, 5)]),
        (OPEN_MPI_KILLED, [DeathReport(4811, 1, 9, None, first=True)]),
        (OPEN_MPI_ENDED, [DeathReport(None, 1, None, 16, first=True)]),
        (INTEL_KILLED, [DeathReport(4831, 0, 9, None), DeathReport(4832, 1, 11, None)]),
        (SRUN, [DeathReport(None, 1, 11, None), DeathReport(None, 0, None, 5)]),
    ],
    ids=["nothing", "mpich signal", "mpich exit", "open mpi signal", "open mpi exit", "intel", "srun"],
)
def test_the_launchers_words_are_understood(text: str, found: list[DeathReport]) -> None:
    assert reports(text) == found


def rank(number: int, pid: int) -> RankState:
    return RankState(host="vm", pid=pid, ticks=None, env_rank=number, seen=0.0)


def test_only_words_about_that_rank_count() -> None:
    assert cause(rank(1, 4796), MPICH_KILLED) == "killed by signal 9 (SIGKILL)"
    assert cause(rank(0, 4795), MPICH_KILLED) == ""
    assert cause(rank(1, 1), OPEN_MPI_ENDED) == "exit status 16"
    assert cause(rank(1, 1), OPEN_MPI_KILLED) == "", "the number of another process"


def test_a_cause_brings_advice() -> None:
    assert "dmesg on vm" in advice("killed by signal 9 (SIGKILL)", "vm")
    assert "crashed" in advice("killed by signal 11 (SIGSEGV)", "vm")
    assert "last words" in advice("exit status 1", "vm")
    assert "last words" in advice("", "vm")


def test_a_status_in_words() -> None:
    assert how_ended(-9) == "was killed by signal 9 (SIGKILL)"
    assert how_ended(-250) == "was killed by signal 250"
    assert how_ended(7) == "ended with exit status 7"


@pytest.mark.parametrize("text", [MPICH_KILLED, OPEN_MPI_KILLED, OPEN_MPI_ENDED, INTEL_KILLED])
def test_frames_are_left_out_of_a_quotation(text: str) -> None:
    lines = [line.strip() for line in ("ssh: no route to host\n" + text).splitlines()]
    assert last_words([line for line in lines if line.strip("= ")]) == "ssh: no route to host"


def test_what_is_told_of_a_process_that_never_came() -> None:
    assert first_report(OPEN_MPI_KILLED) == "rank 1: killed by signal 9 (SIGKILL)"
    assert first_report(MPICH_KILLED) == "process 4796: killed by signal 9 (SIGKILL)"
    assert first_report("") == ""


def test_torchrun_says_signals_as_negative_exit_codes() -> None:
    line = "E1121 21:48:09 18064 torch/api.py:1002] failed (exitcode: {}) local_rank: 1 (pid: 18251) of binary: python"
    assert reports(line.format(-9)) == [DeathReport(18251, 1, 9, None)]
    assert reports(line.format(3)) == [DeathReport(18251, 1, None, 3)]


def test_what_ssh_says_is_quoted_before_the_launchers_own_lines() -> None:
    lines = [
        "ssh: Could not resolve hostname nod7: Name or service not known",
        "[mpiexec@head] control_cb (mpiexec/pmiserv_cb.c:280): assert (!closed) failed",
        "[mpiexec@head] HYD_pmci_wait_for_completion (mpiexec/pmiserv_pmci.c:197): error waiting for event",
    ]
    assert last_words(lines) == lines[0]

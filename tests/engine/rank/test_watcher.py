"""A rank that waits for ever is ended by the process beside it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from omb_py.engine.rank.watcher import process_state
from tests.support.machines.mpi import run_command
from tests.support.patience import PATIENCE_S

RANK = """
import os, signal, subprocess, sys, time
from omb_py.engine.rank.watcher import Watcher, process_state
collector = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=-3, stderr=-3)  # DEVNULL
print(collector.pid, flush=True)
watcher = Watcher({rank}, {limit}, {collector})
{then}
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
while True:  # as in MPI_Init: no signal of Python's and no thread ends it
    time.sleep(1)
"""


def watched(then: str, rank: int = 0, limit: float = 1.0, collector: str = "collector.pid") -> tuple[int, str, int]:
    """(return code of the rank, its stderr, process id of its collector, which is ended)."""
    code = RANK.format(rank=rank, limit=limit, collector=collector, then=then)
    done = run_command([sys.executable, "-c", code])
    pid = int(done.stdout.split()[0])
    return done.returncode, done.stderr, pid


def is_gone(pid: int) -> bool:
    """Whether it ends; a process that was killed needs a moment."""
    until = time.monotonic() + PATIENCE_S
    while process_state(pid)[0] not in "ZX" and time.monotonic() < until:
        time.sleep(0.02)
    return process_state(pid)[0] in "ZX"


def end(pid: int) -> None:
    if process_state(pid)[0] not in "ZX":
        os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_never_joins(rank: int) -> None:
    code, err, pid = watched("", rank, collector="None" if rank else "collector.pid")
    end(pid)
    assert code == -signal.SIGKILL
    assert err.startswith(f"omb-py: error: rank {rank} has not joined within 1 s: another rank ended before MPI_Init")


@pytest.mark.slow
def test_a_collector_that_was_killed_is_named() -> None:
    code, err, pid = watched("collector.kill()", limit=600)
    assert code == -signal.SIGKILL
    assert err == f"omb-py: error: the collector of this job (process {pid}, started by rank 0) was ended by signal 9\n"


@pytest.mark.slow
def test_a_collector_that_ended_by_itself_has_spoken() -> None:
    then = "collector = subprocess.Popen(['true']); watcher.end(); watcher = Watcher(0, 600, collector.pid)"
    code, err, pid = watched(then)
    end(pid)
    assert (code, err) == (-signal.SIGKILL, "")


@pytest.mark.slow
def test_a_rank_that_has_seen_its_collector_end_may_join_to_say_so() -> None:
    """torchrun's rank 0, which imports PyTorch first, was ended before it had said anything."""
    code, err, _ = watched("collector.kill(); collector.wait()", limit=5)
    assert code == -signal.SIGKILL and err.startswith("omb-py: error: rank 0 has not joined within 5 s")


@pytest.mark.slow
@pytest.mark.parametrize("joined", ["", "watcher.joined()"])
def test_a_stopped_collector_is_named_and_ended(joined: str) -> None:
    code, err, pid = watched(
        f"{joined}; collector.send_signal(signal.SIGSTOP)" if joined else "collector.send_signal(signal.SIGSTOP)"
    )
    assert code == -signal.SIGKILL and f"(process {pid}, started by rank 0) was stopped for" in err
    assert is_gone(pid)


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["os.kill(os.getpid(), 9)", "watcher.end(); sys.exit(7)"])
def test_a_stopped_collector_does_not_outlive_its_rank(ends: str) -> None:
    """torchrun ends rank 0 where another rank has failed, before the limit of a stopped collector is over."""
    stopped = "while process_state(collector.pid)[0] != 'T': time.sleep(0.01)"
    code, err, pid = watched(f"collector.send_signal(signal.SIGSTOP)\n{stopped}\n{ends}", limit=600)
    assert code in (-signal.SIGKILL, 7) and is_gone(pid)
    assert err.startswith(f"omb-py: error: the collector of this job (process {pid}, started by rank 0) was stopped")


def test_a_collector_that_works_outlives_its_rank() -> None:
    code, err, pid = watched("os.kill(os.getpid(), 9)", limit=600)
    assert process_state(pid)[0] not in "ZX"
    end(pid)
    assert (code, err) == (-signal.SIGKILL, "")


@pytest.mark.slow
def test_a_rank_that_has_joined_waits_as_long_as_it_needs() -> None:
    code, err, pid = watched("watcher.joined(); time.sleep(3); watcher.end(); sys.exit(7)", limit=2.0)
    end(pid)
    assert (code, err) == (7, "")


@pytest.mark.slow
@pytest.mark.parametrize("collector", ["collector.pid", "None"])
def test_a_rank_that_never_ends(collector: str) -> None:
    """srun does not end the others where one is killed in MPI_Finalize."""
    code, err, pid = watched("watcher.joined(); time.sleep(2.5); watcher.leaving()", 1, 2.0, collector)
    end(pid)
    assert code == -signal.SIGKILL
    assert err.startswith("omb-py: error: rank 1 has not ended within 2 s, though all cells are done: another rank was")


def test_a_watcher_that_was_killed_ends_no_rank() -> None:
    then = "os.kill(watcher._pid, 9); os.waitpid(watcher._pid, 0); watcher.joined(); watcher.leaving(); watcher.end()"
    code, err, pid = watched(f"{then}; sys.exit(7)")
    end(pid)
    assert (code, err) == (7, "")


@pytest.mark.slow
def test_the_watcher_ends_with_its_rank(tmp_path: Path) -> None:
    """Even where that is killed, and it holds no file of the rank."""
    then = "print(watcher._pid, sorted(os.listdir(f'/proc/{watcher._pid}/fd')), flush=True); os.kill(os.getpid(), 9)"
    code = RANK.format(rank=1, limit=600, collector="None", then=f"time.sleep(0.5); {then}")
    done = run_command([sys.executable, "-c", code])
    collector, watcher, files = done.stdout.split(maxsplit=2)
    end(int(collector))
    assert len(files.split(",")) <= 5 and is_gone(int(watcher))

"""Threads and forked children over real MPI: a hang names its thread, and nothing is left of what was forked."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.machines.mpi import ROOT, environment, run_command
from tests.support.patience import PATIENCE_S
from tests.support.patient import PATIENT

pytestmark = [pytest.mark.mpi, pytest.mark.each_library]


def words(*more: str, program: str = "omb_py") -> list[str]:
    return [sys.executable, "-m", program, *more, "--no-store", "--quiet", "-n", "2"]


def forked(marker: str) -> list[int]:
    """Processes that hold a variable with this value in their environment."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and marker.encode() in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(int(name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("binding", ["native", "mpi4py"])
def test_several_senders_and_receivers_exchange_the_right_bytes(binding: str) -> None:
    done = run_command(
        words("latency_mt", "-t", "2:3", "--binding", binding, "-m", "8:16", "-i", "12", "-x", "1", "-c"), cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit()]
    assert [(row[0], row[-1]) for row in rows] == [("8", "Pass"), ("16", "Pass")]


@pytest.mark.slow
@pytest.mark.parametrize("binding", ["native", "mpi4py"])
def test_a_hang_names_rank_and_thread(binding: str) -> None:
    line = f"latency_mt --binding {binding} -m 4:8 -i 12 -x 1 --inject lost:1:8 --timeout 3"
    done = run_command(words(*line.split(), program=PATIENT), cwd=ROOT)
    assert done.returncode == 3
    assert re.search(r"rank 1 on \S+ .* thread [01]: recv 1 B from 0\.", done.stderr), done.stderr


@pytest.mark.slow
def test_nothing_is_left_of_forked_children_when_all_is_killed() -> None:
    marker = f"OMB_PY_TEST_MARKER={os.getpid()}"
    name, _, value = marker.partition("=")
    run = subprocess.Popen(
        words("latency_mp", "-t", "2:3", "-m", "8:8", "-i", "100000000"),
        cwd=ROOT,
        env=environment(**{name: value}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        sleeping: list[int] = []
        while len(sleeping) < 5 and time.monotonic() < deadline:
            time.sleep(0.1)
            sleeping = [pid for pid in forked(marker) if _holds_no_file(pid)]
        assert len(sleeping) == 5  # two beside rank 0, three beside rank 1
    finally:
        os.kill(run.pid, signal.SIGKILL)
        run.wait(PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while forked(marker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert forked(marker) == []


def _holds_no_file(pid: int) -> bool:
    try:
        return os.listdir(f"/proc/{pid}/fd") == [] and Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False

"""Another job at the same time: real processes with simulated ranks."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.accept.background_job import other_job
from omb_py.orchestrate.supervision import processes
from tests.support.patience import PATIENCE_S

WORDS = ("barrier", "--backend", "mock", "-n", "2", "-i", "5")


@pytest.mark.slow
@pytest.mark.faults
def test_it_runs_until_it_is_told_to_end() -> None:
    with other_job(WORDS, 60.0) as ended:
        assert ended() == ""


@pytest.mark.slow
@pytest.mark.faults
def test_one_that_cannot_begin_says_why() -> None:
    with (
        pytest.raises(EnvironmentProblem, match=r"the other job .*has ended: .*barrier needs"),
        other_job((*WORDS[:3], "-n", "1"), 60.0),
    ):
        raise AssertionError


PARENT = """
import sys, time
from omb_py.orchestrate.accept.background_job import other_job
sys.executable = sys.argv[1]
with other_job(["barrier"], 60.0):
    print("begun", flush=True)
    time.sleep(600)
"""


@pytest.mark.faults
def test_it_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """Also one that prints no further line, and so does not meet the closed pipe."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho 8 1.0\nexec sleep 600\n")
    program.chmod(0o755)
    words = [sys.executable, "-c", PARENT, str(program)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "begun\n"
        (number,) = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        job = processes.identify(int(number))
        parent.kill()
    assert job is not None
    try:
        until = time.monotonic() + PATIENCE_S
        while processes.alive(job) and time.monotonic() < until:
            time.sleep(0.05)
        assert not processes.alive(job)
    finally:
        processes.kill(job)

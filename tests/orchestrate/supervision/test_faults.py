"""Ranks and agents killed, stopped and starved: nothing measured is lost or left. tests/lab/torture kills more."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from omb_py.engine.rank.link import AGENTS_VARIABLE
from tests.orchestrate.supervision.faultlab import Run, announced, stored
from tests.support.patient import PATIENT

pytestmark = [pytest.mark.mpi, pytest.mark.faults, pytest.mark.each_library]


@pytest.mark.slow
def test_stopped_rank_is_named_within_the_timeout(tmp_path: Path) -> None:
    words = "allreduce -n 2 -m 4:8 -i 4:50,0:100000000 --timeout 5".split()
    run = Run(tmp_path, *words, program=PATIENT)
    run.wait_for_cells(1)
    run.wait_for("rank 1").kill(signal.SIGSTOP)
    code, _, err = run.finish()
    assert code == 3
    assert "rank 1" in err.rstrip().splitlines()[-1]
    run.assert_no_orphans()


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["rank 1", "agent"])
def test_ranks_behind_an_agent(victim: str, tmp_path: Path) -> None:
    """A killed rank is named; a killed agent ends nothing."""
    run = Run(tmp_path, "allreduce", "-n", "2", "-m", "8:16", "-i", "8:100,0:200000", env={AGENTS_VARIABLE: "1"})
    run.wait_for_cells(1)
    run.wait_for(victim).kill()
    code, out, err = run.finish()
    run.assert_no_orphans()
    assert stored(tmp_path) == announced(out)
    if victim == "agent":
        assert (code, announced(out)) == (0, [8, 16]), err
        assert "its ranks went on with a connection of their own" in err
    else:
        assert code == 3
        assert "rank 1" in err.rstrip().splitlines()[-1]


@pytest.mark.slow
def test_receive_that_never_comes_is_named(tmp_path: Path) -> None:
    """With mpi4py: tests/backends/mpi/test_threads.py."""
    run = Run(tmp_path, *"latency -n 2 -m 8:32 -i 50 --timeout 5 --inject lost:1:32".split(), program=PATIENT)
    code, out, err = run.finish()
    last = err.rstrip().splitlines()[-1]
    assert code == 3
    assert "rank 1" in last and "recv 1 B" in last and "latency 32 B" in last, last
    assert announced(out) == [8, 16]
    assert stored(tmp_path) == [8, 16]
    run.assert_no_orphans()


@pytest.mark.slow
def test_interrupt_ends_a_long_loop(tmp_path: Path) -> None:
    run = Run(tmp_path, "allreduce", "-n", "2", "-m", "8:16", "-i", "8:100,0:100000000")
    run.wait_for_cells(1)
    time.sleep(0.5)
    run.process.send_signal(signal.SIGINT)
    code, out, _ = run.finish()
    assert code == 130
    assert stored(tmp_path) == announced(out) == [8]
    run.assert_no_orphans()


def test_a_wrong_byte_on_real_ranks_fails_the_row(tmp_path: Path) -> None:
    run = Run(tmp_path, "allgather", "-n", "2", "-m", "8:64", "-i", "20", "-c", "--inject", "flip:1:16")
    code, out, _ = run.finish()
    assert code == 1
    rows = [line.split() for line in out.splitlines() if line[:1].isdigit()]
    assert [(row[0], row[-1]) for row in rows] == [("8", "Pass"), ("16", "Fail")]
    assert "DATA VALIDATION ERROR" in out

from __future__ import annotations

import re

import pytest

from omb_py.engine.rank.start_times import StartTimes, now_ns, process_start_ns
from tests.support.machines.mpi import ROOT


def test_stages_follow_each_other_and_make_up_the_whole() -> None:
    times = StartTimes(1_000_000_000)
    times.end("Python", 1_040_000_000)
    times.end("library", 1_240_000_000)
    assert times.text() == "0.240 s: Python 0.040, library 0.200"


def test_this_process_has_begun() -> None:
    began = process_start_ns()
    assert 0 < began < now_ns()
    assert process_start_ns() == began, "the kernel's number, whenever it is asked"


@pytest.mark.slow
def test_no_duration_is_taken_from_the_clock_of_day() -> None:
    """It is set, steps, and differs from host to host; `hello` and the stages of a start went by it."""
    asks = re.compile(r"\btime\.time(?:_ns)?\(|from time import|\bCLOCK_REALTIME\b")
    folders = (
        "omb_py/cli",
        "omb_py/engine",
        "omb_py/launchers",
        "omb_py/orchestrate",
        "backends",
        "suites",
        "results/dialects",
    )
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 250
    found = [str(path.relative_to(ROOT)) for path in files if asks.search(path.read_text())]
    assert found == ["results/dialects/log_files.py"], "a date of rows that came by a pipe"

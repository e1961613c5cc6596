from __future__ import annotations

import time

from omb_py.engine.rank.start_times import StartTimes, process_start_ns


def test_stages_follow_each_other_and_make_up_the_whole() -> None:
    times = StartTimes(1_000_000_000)
    times.end("Python", 1_040_000_000)
    times.end("library", 1_240_000_000)
    assert times.text() == "0.240 s: Python 0.040, library 0.200"


def test_this_process_has_begun() -> None:
    began = process_start_ns()
    assert began < time.time_ns()
    assert abs(process_start_ns() - began) < 50_000_000, "the kernel's number, whenever it is asked"

"""Another job at the same time: real processes with simulated ranks."""

from __future__ import annotations

import pytest

from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.accept.background_job import other_job

WORDS = ("barrier", "--backend", "mock", "-n", "2", "-i", "5")


@pytest.mark.faults
def test_it_runs_until_it_is_told_to_end() -> None:
    with other_job(WORDS, 60.0) as ended:
        assert ended() == ""


@pytest.mark.faults
def test_one_that_cannot_begin_says_why() -> None:
    with (
        pytest.raises(EnvironmentProblem, match=r"the other job .*has ended: .*barrier needs"),
        other_job((*WORDS[:3], "-n", "1"), 60.0),
    ):
        raise AssertionError

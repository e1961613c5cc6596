"""The torture itself: what it draws, what it calls wrong, and one real moment of each kind."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict

import pytest

from tests.lab.torture.__main__ import alone, isolated
from tests.lab.torture.moment import ACTIONS, TARGETS, Moment, draw
from tests.lab.torture.workloads import WORKLOADS, announced, missing

LIBRARIES = ("MPICH", "Open MPI")
PRINTED = "# Size       Avg Latency(us)\n8                       1.00\n64      2.50\n512       9."


def test_moments_are_the_same_for_a_seed_and_reach_everything() -> None:
    moments = draw(120, 1, LIBRARIES)
    assert moments == draw(120, 1, LIBRARIES) != draw(120, 2, LIBRARIES)
    assert {m.workload for m in moments} == set(WORKLOADS) and {m.action for m in moments} == set(ACTIONS)
    struck = Counter((m.library, m.target) for m in moments)
    assert struck["MPICH", "agent"] == 15 and struck["Open MPI", "agent"] == 0
    assert all(0 < m.after < 1 and 0 <= m.rank < WORKLOADS[m.workload].ranks for m in moments)


def test_only_whole_lines_are_announced() -> None:
    assert announced(PRINTED) == [(8, "1.00"), (64, "2.50")]


def test_each_printed_row_needs_a_stored_row_of_its_own() -> None:
    rows = announced(PRINTED)
    assert missing(rows, [(64, 2.499), (8, 1.004), (512, 3.0)]) == []
    assert missing([*rows, (8, "1.00")], [(64, 2.5), (8, 1.0)]) == [(8, "1.00")]
    assert missing(rows, [(8, 1.0), (64, 2.51)]) == [(64, "2.50")]


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.each_library
@pytest.mark.parametrize("target", [target for target in TARGETS if target != "agent"])
def test_a_real_moment(target: str) -> None:
    """One kill of each process of a suite, with everything counted that ``make torture`` counts."""
    try:
        alone()
    except RuntimeError as error:
        pytest.skip(str(error))
    moment = Moment(0, "this one", "run", target, "kill", 1, 0.5)
    outcome = isolated(sys.executable, "tests.lab.torture.moment", json.dumps(asdict(moment)), "4")
    assert outcome["wrong"] == [] and outcome["code"] in (3, -9, 0)

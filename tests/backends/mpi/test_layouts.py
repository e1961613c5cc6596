"""Derived datatypes over real MPI: exactly the bytes of the layout travel, in every benchmark that takes -D."""

from __future__ import annotations

import pytest

from omb_py.suites.registry import BENCHMARKS
from tests.support.kinds import one_of_each
from tests.support.machines.mpi import report

pytestmark = [pytest.mark.mpi, pytest.mark.each_library]


TAKES = [name for name, benchmark in BENCHMARKS.items() if "ddt" in benchmark.options]


@pytest.mark.parametrize(
    ("ranks", "names"),
    [
        (2, one_of_each(TAKES)),
        pytest.param(2, TAKES, marks=pytest.mark.slow),
        pytest.param(3, TAKES, marks=pytest.mark.slow),
    ],
    ids=["quick", "all", "three ranks"],
)
def test_exactly_what_the_layout_says_travels(ranks: int, names: list[str]) -> None:
    told = report("tests.support.sessions.layouts", ranks, names)
    assert told["wrong"] == []
    rules = [BENCHMARKS[name].ranks for name in names]
    measured = sum(rule.admits(ranks) and not rule.over_nodes for rule in rules)
    assert told["checked"] == measured * (4 if ranks == 2 else 1)  # three layouts, the last by both bindings; or one
    assert told["flipped"][0] is False and told["flipped"][1] > 0

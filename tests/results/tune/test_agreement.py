"""Several points share one proposal only where all of them want the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omb_py.results.compare.judge import Answer
from omb_py.results.tune.segments import Proposal, agreed, disputed, everywhere, segments, summed_up

SIZES = (8, 16, 32, 64, 128)
FASTER = Answer("FASTER", "median", 2.0, 1.0, 0.5, 0.4, 0.6, 0.001, 0.01, 0.01, 1, (10, 10), True, 0.05, None)


def test_one_point_is_taken_as_it_is() -> None:
    choices = {0: 0, 2: 1, 4: 2}
    assert agreed([Proposal(SIZES, choices)]) == choices
    assert disputed([Proposal(SIZES, choices)]) == []


def test_where_points_differ_nothing_is_set() -> None:
    summed, larger = Proposal(SIZES, {0: 1, 2: 1, 3: 2, 4: 2}), Proposal(SIZES, {0: 1, 1: 1, 2: 2, 4: 2})
    assert agreed([summed, larger]) == {0: 1, 1: 1, 2: 0, 3: 2, 4: 2}
    assert disputed([summed, larger]) == [32]


def test_a_point_says_nothing_beyond_its_sizes() -> None:
    small, large = Proposal((8, 16), {0: 1, 1: 1}), Proposal((64, 128), {0: 2, 1: 2})
    assert agreed([small, large]) == {0: 1, 1: 1, 2: 2, 3: 2}
    assert disputed([small, large]) == []


def test_one_setting_for_every_measured_size() -> None:
    for choices, whole in (({0: 1, 4: 1}, True), ({0: 1, 4: 2}, False), ({0: 0, 4: 1}, False), ({0: 0}, False)):
        assert everywhere(segments(choices, SIZES), choices) is whole


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [(["FASTER", "SLOWER"], "SLOWER"), (["UNCLEAR", "FASTER", "SAME"], "FASTER"), (["SAME", "SAME"], "SAME")],
)
def test_the_worst_answer_of_a_size_stands_for_it(verdicts: list[str], expected: str) -> None:
    answers = [replace(FASTER, verdict=verdict, ratio=0.5 + k / 10) for k, verdict in enumerate(verdicts)]
    assert summed_up(answers).verdict == expected


def test_of_answers_alike_the_one_with_the_least_gain_stands_for_the_size() -> None:
    assert summed_up([FASTER, replace(FASTER, ratio=0.9), replace(FASTER, ratio=0.7)]).ratio == 0.9

"""Slower at the end than at the beginning?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from omb_py.results.analysis.drift import drift, rise
from omb_py.results.statistics.sequential import AcceptRule, decide
from tests.lab.error_rates.drift import rates


def test_a_straight_line_is_known_exactly() -> None:
    found, note = drift([[0.01 * k for k in range(11)]])
    assert found.difference == pytest.approx(0.1) and found.error == 0 and found.freedom == 9
    assert "no step" in note


def test_too_few_passes_say_nothing() -> None:
    found, _ = drift([[1.0, 2.0]])
    assert found.freedom == 0 and decide(found, 1.0, AcceptRule(1, 1)).word == "MARGINAL"


def test_launches_are_averaged() -> None:
    up, down = [0.01 * k for k in range(5)], [-0.01 * k for k in range(5)]
    assert drift([up, down])[0].difference == pytest.approx(0.0)


def test_a_step_is_named() -> None:
    draw = np.random.default_rng(1)
    passes = draw.normal(0, 0.005, 40) + np.r_[np.zeros(20), np.full(20, math.log(1.3))]
    _, note = drift([passes.tolist()])
    assert "1.3" in note and "from pass 21 on" in note


@pytest.mark.slow
def test_wandering_is_not_taken_for_knowledge() -> None:
    """Of passes that know of each other the error is wider: a drift of nothing is called one as rarely as is said."""
    for launches, correlation, most in (
        ((30,), 0.0, 0.06),
        ((30,), 0.5, 0.065),
        ((60,), 0.6, 0.065),
        ((10,), 0.5, 0.08),
        ((10, 10, 10), 0.5, 0.05),
    ):
        assert max(rates(launches, correlation, 1000)) <= most, (launches, correlation)


def test_a_launch_of_few_passes_is_not_trusted_for_the_many_of_another() -> None:
    assert max(rates((4, 200), 0.0, 1000)) <= 0.07
    long, short = np.random.default_rng(3).normal(0, 0.02, (2, 60)).tolist()
    assert rise([long, short[:4]]).difference == rise([long]).difference
    assert rise([short[:3], short[:4]]).freedom < 5, "where there are no others they count"


def test_a_drift_is_still_found() -> None:
    draw, found = np.random.default_rng(4), 0
    for _ in range(100):
        passes = draw.normal(0, 0.02, 30) + np.linspace(0, 0.1, 30)
        found += decide(rise([passes.tolist()]), 0.05, AcceptRule(1, 1)).word == "FAIL"
    assert found >= 90

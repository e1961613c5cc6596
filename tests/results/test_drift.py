"""Slower at the end than at the beginning?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from omb_py.results.decisions import Rule, decide
from omb_py.results.drift import drift


def test_a_straight_line_is_known_exactly() -> None:
    found, note = drift([[0.01 * k for k in range(11)]])
    assert found.difference == pytest.approx(0.1) and found.error == 0 and found.freedom == 9
    assert "no step" in note


def test_too_few_passes_say_nothing() -> None:
    found, _ = drift([[1.0, 2.0]])
    assert found.freedom == 0 and decide(found, 1.0, Rule(1, 1)).word == "MARGINAL"


def test_launches_are_averaged() -> None:
    up, down = [0.01 * k for k in range(5)], [-0.01 * k for k in range(5)]
    assert drift([up, down])[0].difference == pytest.approx(0.0)


def test_a_step_is_named() -> None:
    draw = np.random.default_rng(1)
    passes = draw.normal(0, 0.005, 40) + np.r_[np.zeros(20), np.full(20, math.log(1.3))]
    _, note = drift([passes.tolist()])
    assert "1.3" in note and "from pass 21 on" in note


def test_wandering_is_not_taken_for_knowledge() -> None:
    """Of passes that know of each other the error is wider: a drift of nothing is called a FAIL rarely."""
    draw, wrong = np.random.default_rng(2), 0
    for _ in range(200):
        steps = draw.normal(0, 0.02, 60)
        passes = [0.0]
        for step in steps:
            passes.append(0.6 * passes[-1] + step)
        found, _ = drift([passes[1:9] + passes[9:]])
        wrong += decide(found, 0.0, Rule(1, 1)).word == "FAIL"
    assert wrong <= 0.10 * 200

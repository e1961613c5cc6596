"""Bounds on launches know no side, so sign flips of the bounded pairs stay exact."""

from __future__ import annotations

import math

import numpy as np
import pytest

from omb_py.results.compare.judge import CompareRound, CompareRules, Launched, judge
from omb_py.results.statistics.sign_flips import bounded, spread


def test_names_of_the_sides_change_nothing() -> None:
    """Each pair may exchange its sides by itself: the same numbers come back, exchanged."""
    rng = np.random.default_rng(1)
    base, new = rng.normal(0, 0.02, 10), rng.normal(-0.1, 0.02, 10)
    new[3] += 0.5
    once = bounded(base.tolist(), new.tolist())
    for _ in range(20):
        exchanged = rng.random(10) < 0.5
        sides = np.where(exchanged, new, base).tolist(), np.where(exchanged, base, new).tolist()
        again = bounded(*sides)
        assert [set(pair) for pair in zip(*again, strict=True)] == [set(pair) for pair in zip(*once, strict=True)]


def test_a_slow_launch_counts_up_to_the_bound_and_the_others_as_they_are() -> None:
    base = (0.00, 0.02, -0.02, 0.01, -0.01, 0.40, 0.0, 0.0, 0.01)
    new = (-0.10, -0.12, -0.08, 0.39, -0.11, -0.09, -0.1, -0.1, -0.09)
    bounds = bounded(base, new)
    high = max(bounds[0])
    assert 0.02 < high < 0.1
    assert (bounds[0][5], bounds[1][3]) == (high, high)
    assert bounds[0][:5] == base[:5]


def test_no_pairs_and_equal_launches() -> None:
    assert bounded((), ()) == ((), ())
    assert bounded((1.0, 1.0), (1.0, 1.0)) == ((1.0, 1.0), (1.0, 1.0))
    assert spread([1.0, 1.0]) > 0


@pytest.mark.parametrize(("bound", "verdict"), [(False, "UNCLEAR"), (True, "FASTER")])
def test_a_gain_of_a_tenth_is_seen_through_slow_launches(bound: bool, verdict: str) -> None:
    rng = np.random.default_rng(4)
    base, new = rng.normal(0, 0.02, 20), rng.normal(math.log(0.9), 0.02, 20)
    base[[3, 11]] += math.log(1.5)
    new[[5, 6, 17]] += math.log(1.5)
    sides = [tuple(Launched(math.exp(log), math.exp(log)) for log in side) for side in (base, new)]
    measured = CompareRound(sides[0], sides[1], paired=True, bounded=bound)
    (judged,) = judge([[measured]], CompareRules())
    assert judged.answers["median"].verdict == verdict

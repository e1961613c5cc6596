"""Bounds on launches know no side; launches of two kinds are told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from omb_py.results.statistics.launch_kinds import bounded, kinds_of, spread


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


def test_two_kinds_are_told_where_the_gap_is_wide_and_both_sides_have_one() -> None:
    rng = np.random.default_rng(2)
    base, new = rng.normal(0, 0.02, (2, 20))
    assert kinds_of(base.tolist(), new.tolist()) is None
    assert kinds_of(base.tolist(), (new + 1).tolist()) is None, "all launches of NEW are slow: a change, no kind"
    new[[1, 5]] += math.log(3)
    kinds = kinds_of(base.tolist(), new.tolist())
    assert kinds is not None and (kinds.base, kinds.new) == ((0, 20), (2, 20)) and kinds.shares_differ
    assert kinds.factor == pytest.approx(3, rel=0.1) and abs(kinds.within) < 0.03
    assert kinds_of([0.0, 0.7], [0.0]) is None, "three launches tell nothing"

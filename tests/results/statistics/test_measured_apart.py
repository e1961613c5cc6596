"""Sides of different nights: nights are the unit, and a steady drift is no change."""

from __future__ import annotations

import math
from datetime import datetime

import numpy as np
import pytest
from scipy import stats

from omb_py.results.statistics.nights import FEWEST_NIGHTS, by_night, days_of, drift_allowed_for
from omb_py.results.statistics.t_test import Estimate, rounding


def apart(values: np.ndarray, base: int, floor: float = 0.0) -> Estimate:
    days = np.arange(len(values), dtype=float)
    return drift_allowed_for((days[:base], values[:base]), (days[base:], values[base:]), floor)


def test_nights() -> None:
    at = datetime.fromisoformat
    runs = [("a", at("2026-11-20T22:00")), ("b", at("2026-11-21T03:00")), ("c", at("2026-11-21T22:00"))]
    nights = days_of([*runs, ("c", at("2026-11-22T23:00"))])
    assert nights["a"] == nights["b"] and nights["c"] == pytest.approx(nights["a"] + 1)
    days, means = by_night([2.0, 1.0, 2.0], [1.0, 5.0, 3.0])
    assert days.tolist() == [1, 2] and means.tolist() == [5, 2]


def test_too_few_nights_tell_nothing() -> None:
    estimate = apart(np.arange(11) * 0.01, FEWEST_NIGHTS)
    assert estimate.p == 1 and estimate.error == math.inf and (estimate.base, estimate.new) == (6, 5)


def test_it_is_least_squares_with_a_line() -> None:
    rng = np.random.default_rng(1)
    values = 0.02 * rng.standard_normal(14)
    estimate = apart(values, 6)
    side, days = np.repeat([0.0, 1.0], [6, 8]), np.arange(14.0)
    # the difference beside a line is the slope of what the line leaves of both
    left = [part - np.polyval(np.polyfit(days, part, 1), days) for part in (side, values)]
    slope = stats.linregress(*left)
    assert estimate.difference == pytest.approx(slope.slope)
    assert estimate.error == pytest.approx(slope.stderr * math.sqrt(12 / 11)) and estimate.freedom == 11


def test_a_steady_drift_is_no_change_and_a_step_is_one() -> None:
    rng = np.random.default_rng(3)
    drift = 0.02 * np.arange(16)
    noise = 0.01 * rng.standard_normal(16)
    assert apart(drift + noise, 8).p > 0.05
    stepped = apart(drift + noise + 0.1 * (np.arange(16) >= 8), 8)
    assert stepped.p < 0.001 and stepped.difference == pytest.approx(0.1, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["normal", "heavy", "bimodal", "night", "drift", "unequal"])
def test_false_alarms_are_as_many_as_promised(what: str) -> None:
    rng = np.random.default_rng(7)
    reports, base, new = 3000, 6, 14 if what == "unequal" else 6
    launches = np.empty((reports, base + new, 5))
    for values in launches:
        values[:] = 0.02 * (rng.standard_t(3, values.shape) if what == "heavy" else rng.standard_normal(values.shape))
        if what in ("bimodal", "unequal"):
            values += math.log(2) * (rng.random(values.shape) < 0.1)
        if what == "night":
            values += 0.02 * rng.standard_normal((base + new, 1))
        if what == "drift":
            values += 0.005 * np.arange(values.size).reshape(values.shape)
    alarms = sum(apart(night, base).p <= 0.01 for night in launches.mean(axis=2))
    assert alarms <= stats.binom.ppf(0.999, reports, 0.01)


def test_equal_nights_have_the_spread_of_their_rounding() -> None:
    values = np.repeat([0.0, 0.05], 6)
    assert apart(values, 6).p < 1e-6, "without it a step of the clock is certain"
    assert apart(values, 6, floor=rounding(values.tolist())).error > 0.01


def test_rounding_shows_in_values_that_occur_twice() -> None:
    assert rounding([0.1, 0.2, 0.3]) == 0 and rounding([0.1, 0.1]) == 0 and rounding([]) == 0
    assert rounding([0.1, 0.2, 0.2, 0.4]) == pytest.approx(0.1 / math.sqrt(12))
    ticks = np.round(np.random.default_rng(1).normal(100, 3, 400))
    assert rounding(np.log(ticks).tolist()) == pytest.approx(0.01 / math.sqrt(12), rel=0.1)

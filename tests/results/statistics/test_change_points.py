from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from omb_py.results.statistics.change_points import ALPHA, LEAST, MOST, _divergence, change_points

numbers = st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=6, max_size=30)


@given(numbers, st.integers(0, 100))
def test_divergence_is_scipys_energy_distance(x: list[float], where: int) -> None:
    t = 3 + where % (len(x) - 5)
    m, n = t, len(x) - t
    wanted = m * n / (m + n) * stats.energy_distance(x[:t], x[t:]) ** 2
    assert _divergence(np.array([x]), np.array([0]), np.array([t]))[0, 0] == pytest.approx(wanted, abs=1e-9)


def series(levels: list[tuple[int, float]], spread: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([np.log(time) + spread * rng.standard_normal(n) for n, time in levels])


@pytest.mark.parametrize(
    ("levels", "steps"),
    [
        ([(15, 10.0), (15, 11.0)], [15]),
        ([(20, 10.0), (4, 13.0)], [20]),
        ([(12, 10.0), (12, 12.0), (12, 10.0)], [12, 24]),
        ([(20, 10.0), (10, 12.0), (15, 9.0), (15, 10.5)], [20, 30, 45]),
        ([(40, 10.0)], []),
        ([(20, 10.0), (20, 10.1)], []),
    ],
)
def test_known_steps_are_found_where_they_are(levels, steps) -> None:
    for seed in range(2):
        x = series(levels, 0.015, seed)
        found = change_points(x)
        assert [change.at for change in found] == pytest.approx(steps, abs=1)
        assert len(found) == len(steps)
        for change, (_, before), (_, after) in zip(found, levels, levels[1:], strict=False):
            assert change.ratio == pytest.approx(after / before, rel=0.03) and change.p <= ALPHA


@pytest.mark.parametrize("far", [[4, 13], [9, 10], [29]])
def test_nights_far_from_the_others_hide_no_step_and_are_none(far: list[int]) -> None:
    x = series([(15, 10.0), (15, 11.0)], 0.015, 3)
    x[far] += np.log(5)
    (found,) = change_points(x)
    assert found.at == 15 and found.ratio == pytest.approx(1.1, rel=0.03)
    flat = series([(30, 10.0)], 0.015, 3)
    flat[far] += np.log(5)
    assert change_points(flat) == []


def test_three_nights_far_from_the_others_are_a_level() -> None:
    x = series([(20, 10.0), (3, 50.0), (20, 10.0)], 0.015, 1)
    assert [change.at for change in change_points(x)] == [20, 23]


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["normal", "heavy", "bimodal"])
def test_false_alarms_are_as_rare_as_said(shape: str) -> None:
    """300 series of 30 launches without a change, delta 0: at most alpha have one, within chance (99.9 %)."""
    rng = np.random.default_rng(7)
    draw = {
        "normal": lambda: rng.standard_normal(30),
        "heavy": lambda: rng.standard_t(3, 30),
        "bimodal": lambda: np.where(rng.random(30) < 0.3, 1.0, 0.0) + 0.1 * rng.standard_normal(30),
    }[shape]
    alarms = sum(bool(change_points(0.03 * draw(), delta=0.0)) for _ in range(300))
    assert alarms <= stats.binom.ppf(0.999, 300, ALPHA)


@pytest.mark.slow
def test_a_step_of_ten_percent_is_found() -> None:
    found = sum(bool(change_points(series([(10, 10.0), (10, 11.0)], 0.02, seed))) for seed in range(30))
    assert found >= 28


@pytest.mark.slow
def test_a_creep_of_one_percent_a_month_is_found_within_a_year() -> None:
    """None of its steps is as large as what is told, and a year of them is."""
    year = [(4, 1.01**month) for month in range(12)]
    for seed in range(10):
        changes = change_points(series(year, 0.01, seed))
        assert changes and all(change.ratio > 1 for change in changes)


def test_too_few_too_many_and_not_finite() -> None:
    assert change_points([0.0] * (LEAST // 2 - 1) + [1.0] * (LEAST // 2)) == []
    assert [c.at for c in change_points([0.0] * 5 + [1.0] * 5)] == [5]
    assert change_points([1.0] * 20) == [] and change_points([]) == []
    for bad in ([math.nan] * 12, [0.0] * (MOST + 1)):
        with pytest.raises(ValueError, match="finite values"):
            change_points(bad)


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 1000), st.floats(-3, 3), st.floats(1.5, 4))
def test_units_do_not_matter(seed: int, shift: float, step: float) -> None:
    x = series([(8, 1.0), (8, step)], 0.02, seed)
    assert [c.at for c in change_points(x + shift)] == [c.at for c in change_points(x)] == [8]

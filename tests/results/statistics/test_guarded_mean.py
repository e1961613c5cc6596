"""The guarded mean: clipped, widened, and that of Student where nothing is to be clipped or widened."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.statistics.guarded_mean import CLIPPED, FREEDOM, clipped, distance, widened

LOGS = st.lists(st.floats(-3, 3).map(lambda x: round(x, 6)), min_size=4, max_size=20)


@given(LOGS, st.floats(-1, 1))
def test_both_sides_of_a_limit_are_treated_alike(logs: list[float], limit: float) -> None:
    one, other = distance(logs, limit), distance([-x for x in logs], -limit)
    assert one.difference == pytest.approx(-other.difference, abs=1e-9)
    assert one.error == pytest.approx(other.error, abs=1e-9) and one.freedom == pytest.approx(FREEDOM * (len(logs) - 1))


@given(LOGS, st.floats(-1, 1))
def test_no_launch_counts_more_than_three_times_the_usual_distance(logs: list[float], limit: float) -> None:
    over = np.asarray(logs) - limit
    most = CLIPPED * np.median(np.abs(over))
    assert clipped(logs, limit).difference == pytest.approx(np.clip(over, -most, most).mean(), abs=1e-9)
    assert abs(distance(logs, limit).difference) <= most + 1e-9


@given(LOGS, st.integers(4, 100))
def test_the_error_is_that_of_correlated_launches(logs: list[float], launches: int) -> None:
    """Of the mean of n values of an AR(1) process, written out."""
    plain = clipped(logs, 0.0)
    wide = widened(plain, launches)
    places = np.arange(launches)
    variance_of_mean = (0.5 ** abs(places[:, None] - places)).mean()
    variance_shown = (1 - variance_of_mean) * launches / (launches - 1)
    expected = plain.error * math.sqrt(len(logs) / launches) * math.sqrt(launches * variance_of_mean / variance_shown)
    assert wide.error == pytest.approx(expected, abs=1e-12) and wide.freedom == pytest.approx(FREEDOM * (launches - 1))


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=3))
def test_up_to_three_launches_have_no_known_spread(logs: list[float]) -> None:
    assert distance(logs, 0.0).freedom == 0 and distance(logs, 0.0).error == math.inf


def test_one_outlier_does_not_hide_the_others() -> None:
    logs = [0.10, 0.11, 0.09, 0.12, 0.10, 0.10, 0.11, 3.0]
    sure = distance(logs, 0.0)
    assert sure.difference > 2 * sure.error, "a plain mean of 0.47 has an error of 0.36"


@given(LOGS, st.floats(0.5, 0.94), st.floats(0.0, 0.5))
def test_launches_that_resemble_each_other_more_are_less_sure(logs: list[float], rho: float, less: float) -> None:
    plain = distance(logs, 0.0, rho)
    assert distance(logs, 0.0, less) == distance(logs, 0.0)
    more = distance(logs, 0.0, rho + 0.05)
    assert more.error >= plain.error and more.freedom <= plain.freedom and more.difference == plain.difference


def test_launches_with_a_correlation_of_0_9_count_as_very_few() -> None:
    logs = [0.1, 0.2] * 12
    assert distance(logs, 0.0, 0.9).freedom < 3 and distance(logs, 0.0, 0.9).error > 2 * distance(logs, 0.0).error

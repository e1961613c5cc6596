"""The guarded mean: clipped, widened, and that of Student where nothing is to be clipped or widened."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.statistics.guarded_mean import CLIPPED, clipped, distance, widened

LOGS = st.lists(st.floats(-3, 3).map(lambda x: round(x, 6)), min_size=4, max_size=20)


@given(LOGS, st.floats(-1, 1))
def test_both_sides_of_a_limit_are_treated_alike(logs: list[float], limit: float) -> None:
    one, other = distance(logs, limit), distance([-x for x in logs], -limit)
    assert one.difference == pytest.approx(-other.difference, abs=1e-9)
    assert one.error == pytest.approx(other.error, abs=1e-9) and one.freedom == len(logs) - 1


@given(LOGS, st.floats(-1, 1))
def test_no_launch_counts_more_than_three_times_the_usual_distance(logs: list[float], limit: float) -> None:
    over = np.asarray(logs) - limit
    most = CLIPPED * np.median(np.abs(over))
    assert clipped(logs, limit).difference == pytest.approx(np.clip(over, -most, most).mean(), abs=1e-9)
    assert abs(distance(logs, limit).difference) <= most + 1e-9


@given(LOGS, st.integers(4, 100))
def test_the_error_is_that_of_correlated_launches(logs: list[float], launches: int) -> None:
    """τ = 3 for a correlation of 0.5; more launches with the same spread have a smaller error."""
    plain = clipped(logs, 0.0)
    wide = widened(plain, launches)
    expected = plain.error * math.sqrt(len(logs) / launches) * math.sqrt(3 / (1 - 2 / (launches - 1)))
    assert wide.error == pytest.approx(expected, abs=1e-12) and wide.freedom == launches - 1


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=3))
def test_up_to_three_launches_have_no_known_spread(logs: list[float]) -> None:
    assert distance(logs, 0.0).freedom == 0 and distance(logs, 0.0).error == math.inf


def test_one_outlier_does_not_hide_the_others() -> None:
    logs = [0.10, 0.11, 0.09, 0.12, 0.10, 0.10, 0.11, 3.0]
    sure = distance(logs, 0.0)
    assert sure.difference > 2 * sure.error, "a plain mean of 0.47 has an error of 0.36"

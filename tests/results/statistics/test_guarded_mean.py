"""The guarded mean: clipped, and judged by the law of correlated launches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omb_py.results.statistics.guarded_mean import CLIPPED, CORRELATION, distance, mean_tail

LOGS = st.lists(st.floats(-3, 3).map(lambda x: round(x, 6)), min_size=4, max_size=20)


@given(LOGS, st.floats(-1, 1))
def test_both_sides_of_a_limit_are_treated_alike(logs: list[float], limit: float) -> None:
    one, other = distance(logs, limit), distance([-x for x in logs], -limit)
    assert one.mean == pytest.approx(-other.mean, abs=1e-9) and one.spread == pytest.approx(other.spread, abs=1e-9)
    assume(one.spread > 1e-3)
    assert one.p_beyond == pytest.approx(other.p_within, abs=1e-6)
    assert one.p_beyond + one.p_within == pytest.approx(1)


@given(LOGS, st.floats(-1, 1))
def test_no_launch_counts_more_than_three_times_the_usual_distance(logs: list[float], limit: float) -> None:
    over = np.asarray(logs) - limit
    most = CLIPPED * np.median(np.abs(over))
    clipped = np.clip(over, -most, most)
    found = distance(logs, limit)
    assert found.mean == pytest.approx(clipped.mean(), abs=1e-9) and abs(found.mean) <= most + 1e-9
    assert found.spread == pytest.approx(clipped.std(ddof=1), abs=1e-9)


@given(LOGS, st.floats(0.0, 0.95))
def test_its_p_value_is_that_of_correlated_launches(logs: list[float], rho: float) -> None:
    found = distance(logs, 0.0, rho)
    assume(found.spread > 1e-3)
    quotient = found.mean / found.spread
    assert found.p_beyond == pytest.approx(mean_tail(quotient, len(logs), max(rho, CORRELATION)), rel=1e-9)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=3))
def test_up_to_three_launches_have_no_known_spread(logs: list[float]) -> None:
    found = distance(logs, 0.0)
    assert found.p_beyond == found.p_within == 1


def test_launches_that_are_all_alike_are_sure() -> None:
    beyond, at_the_limit = distance([0.5] * 8, 0.0), distance([0.0] * 8, 0.0)
    assert (beyond.p_beyond, beyond.p_within) == (0.0, 1.0)
    assert at_the_limit.p_beyond == at_the_limit.p_within == 1.0


def test_one_outlier_does_not_hide_the_others() -> None:
    assert distance([0.10, 0.11, 0.09, 0.12, 0.10, 0.10, 0.11, 3.0], 0.0).p_beyond < 0.02
    assert mean_tail(0.466 / 1.02, 8, CORRELATION) > 0.15, "a plain mean of 0.47 has a spread of 1.02"


def test_less_than_the_usual_correlation_counts_as_that() -> None:
    logs = [0.1, 0.2, 0.05] * 4
    assert distance(logs, 0.0, 0.0).p_beyond == distance(logs, 0.0).p_beyond < distance(logs, 0.0, 0.9).p_beyond

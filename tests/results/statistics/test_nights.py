"""Nights: which runs are of one night, and what one more night may be."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.statistics.nights import (
    FREEDOM,
    LONGEST,
    PAUSE,
    nights_of,
    nights_to_decide,
    one_more_night,
    spread_of,
)

FIRST = datetime(2026, 11, 1, 22)
LOGS = st.floats(-3, 3)


@given(st.lists(st.floats(0, 200), min_size=1, max_size=12))
def test_a_night_ends_with_a_pause_and_after_a_day(hours: list[float]) -> None:
    runs = [(str(k), FIRST + timedelta(hours=hour)) for k, hour in enumerate(hours)]
    nights = nights_of(runs)
    in_order = sorted(runs, key=lambda item: item[1])
    numbers = [nights[run] for run, _ in in_order]
    first = in_order[0][1]
    assert numbers[0] == 0
    for at in range(1, len(runs)):
        start, before = in_order[at][1], in_order[at - 1][1]
        ends = start - before > PAUSE or start - first >= LONGEST
        assert numbers[at] == numbers[at - 1] + ends
        first = start if ends else first


@pytest.mark.parametrize("hours", [0.5, 2.0])
def test_measuring_all_the_time_has_a_night_a_day(hours: float) -> None:
    runs = [(str(n), FIRST + timedelta(hours=n * hours)) for n in range(int(72 / hours))]
    assert max(nights_of(runs).values()) == 2


def test_a_run_that_lasts_longer_is_one_night() -> None:
    long = [("a", FIRST + timedelta(hours=hour)) for hour in range(0, 30, 3)]
    assert nights_of(long) == {"a": 0}


@given(st.lists(LOGS, min_size=2, max_size=12), LOGS)
def test_one_more_night_has_the_prediction_interval_of_the_books(earlier: list[float], tonight: float) -> None:
    estimate = one_more_night(earlier, tonight)
    assert estimate.difference == pytest.approx(tonight - np.mean(earlier), abs=1e-9)
    expected = np.std(earlier, ddof=1) * math.sqrt(1 + 1 / len(earlier))
    assert estimate.error == pytest.approx(expected, abs=1e-9) and estimate.freedom == FREEDOM * (len(earlier) - 1)


def test_one_night_has_no_spread() -> None:
    assert one_more_night([0.0], 1.0).freedom == 0 and spread_of([2.0, 2.0]) == 0.0
    with pytest.raises(ValueError, match="no nights"):
        one_more_night([], 1.0)


@given(st.floats(0.01, 0.2), st.floats(0, 1), st.sampled_from([0.001, 0.05]))
def test_so_many_nights_would_decide(spread: float, distance: float, alpha: float) -> None:
    needed = nights_to_decide(spread, distance, alpha)

    def margin(nights: int) -> float:
        return float(scipy.stats.t.ppf(1 - alpha, FREEDOM * (nights - 1)) * spread * math.sqrt(1 + 1 / nights))

    if needed is None:
        assert margin(1000) >= distance
    else:
        assert margin(needed) < distance and (needed == 2 or margin(needed - 1) >= distance)

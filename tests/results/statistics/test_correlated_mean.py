"""The law of mean over spread: Student's for independent launches, and counted for those that are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from omb_py.results.statistics.guarded_mean import FARTHEST, mean_tail
from tests.lab.error_rates.launch_effects import autoregressive

LAUNCHES = st.integers(2, 60)
CORRELATIONS = st.floats(0.0, 0.95)


@given(st.floats(-5, 50), LAUNCHES)
def test_of_independent_launches_it_is_students_t(quotient: float, launches: int) -> None:
    known = stats.t.sf(quotient * math.sqrt(launches), launches - 1)
    assert mean_tail(quotient, launches, 0.0) == pytest.approx(known, rel=1e-4 if quotient < 0.1 else 1e-9, abs=1e-300)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.5, 0.9])
@pytest.mark.parametrize("launches", [4, 12, 24])
def test_of_an_autoregressive_process_it_is_what_is_counted(rho: float, launches: int) -> None:
    series = autoregressive(rho)(np.random.default_rng(4), 40_000, launches)
    quotients = series.mean(axis=1) / series.std(axis=1, ddof=1)
    for chance in (0.2, 0.05, 0.005):
        told = 40_000 * mean_tail(float(np.quantile(quotients, 1 - chance)), launches, rho)
        low, high = stats.binom.ppf([0.0005, 0.9995], 40_000, chance)
        assert low <= told <= high, (chance, told)


@pytest.mark.slow
@given(st.floats(1e-4, 1e3), LAUNCHES, CORRELATIONS)
def test_both_sides_are_alike_and_more_is_rarer(quotient: float, launches: int, rho: float) -> None:
    tail = mean_tail(quotient, launches, rho)
    assert mean_tail(-quotient, launches, rho) == pytest.approx(1 - tail)
    assert 0 <= mean_tail(quotient * 1.01, launches, rho) <= tail * (1 + 1e-9) <= 0.5 * (1 + 1e-8)
    assert mean_tail(0.0, launches, rho) == pytest.approx(0.5)


@pytest.mark.slow
@given(st.floats(0.01, 100), st.integers(3, 60), st.floats(0.0, 0.9))
def test_launches_that_resemble_each_other_more_are_less_sure(quotient: float, launches: int, rho: float) -> None:
    assert mean_tail(quotient, launches, rho + 0.05) >= mean_tail(quotient, launches, rho) * (1 - 1e-9)


def test_what_is_beyond_all_rounding_counts_as_the_farthest() -> None:
    assert mean_tail(1e300, 4, 0.5) == mean_tail(FARTHEST, 4, 0.5) < 1e-12

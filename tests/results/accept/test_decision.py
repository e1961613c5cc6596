"""How often a decision is wrong for launches as machines make them, simulated: the benches count the same at length."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from tests.lab.error_rates.accept import CONTRACTS, QUESTIONS, failed, passed
from tests.lab.error_rates.launch_effects import NIGHTS

PROMISED = 0.05
KINDS = ("10 % twice as slow", "50 % twice as slow", "AR(1), 0.5", "AR(1), 0.9", NIGHTS)


def most(reports: int) -> int:
    """As many wrong reports as one in a thousand seeds would show, if the rate were just what is promised."""
    return int(binom.ppf(0.999, reports, PROMISED))


@pytest.mark.parametrize("kind", KINDS)
def test_a_median_at_the_bound_rarely_passes(kind: str) -> None:
    assert passed(CONTRACTS[kind], QUESTIONS, 12) <= most(12 * QUESTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_medians_at_their_bounds_rarely_fail(kind: str) -> None:
    assert failed(CONTRACTS[kind], QUESTIONS, 30) <= most(30)

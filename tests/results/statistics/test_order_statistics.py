"""Counts of launches beyond a limit: against SciPy, against every order of signs, against drawn launches."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from omb_py.results.statistics.order_statistics import (
    INDEPENDENT,
    allowed_counts,
    count_tail,
    fewest_launches,
    launches_to_decide,
    median,
    share_bound,
    stays_of,
)
from tests.lab.error_rates.launch_effects import autoregressive

STAYING = st.sampled_from([INDEPENDENT, 0.6, 0.7, 0.9])
ALPHAS = st.sampled_from([0.003, 0.01, 0.05, 0.2, 0.4])
LOOKS = st.lists(st.integers(1, 12), min_size=1, max_size=4).map(lambda steps: tuple(itertools.accumulate(steps)))


@given(st.integers(1, 60), st.integers(0, 60))
def test_independent_launches_are_binomial(launches: int, count: int) -> None:
    expected = scipy.stats.binom.cdf(min(count, launches), launches, 0.5)
    assert count_tail(launches, count, INDEPENDENT) == pytest.approx(expected, abs=1e-12)


def paths(launches: int, stays: float) -> list[tuple[tuple[bool, ...], float]]:
    """Every order of signs with its probability."""
    every = []
    for signs in itertools.product((False, True), repeat=launches):
        same = sum(a == b for a, b in itertools.pairwise(signs))
        every.append((signs, 0.5 * stays**same * (1 - stays) ** (launches - 1 - same)))
    return every


@pytest.mark.slow
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), ALPHAS, STAYING, st.integers(0, 2))
@settings(max_examples=60)
def test_no_look_errs_more_often_than_all_may(steps: list[int], alpha: float, stays: float, more: int) -> None:
    """The chance that any look finds few enough, over every order of signs that there is."""
    looks = tuple(itertools.accumulate(steps))
    counts = allowed_counts(looks, len(looks) + more, alpha, stays)
    wrong = math.fsum(
        p
        for signs, p in paths(looks[-1], stays)
        if any(sum(signs[:launches]) <= count for launches, count in zip(looks, counts, strict=True))
    )
    assert wrong <= alpha * (1 + 1e-9)


@pytest.mark.slow
@given(LOOKS, ALPHAS, STAYING)
def test_counts_of_earlier_looks_stand_before_later_ones_are_known(
    looks: tuple[int, ...], alpha: float, stays: float
) -> None:
    counts = allowed_counts(looks, len(looks), alpha, stays)
    assert all(-1 <= count < launches / 2 for count, launches in zip(counts, looks, strict=True))
    for known in range(1, len(looks)):
        assert allowed_counts(looks[:known], len(looks), alpha, stays) == counts[:known]


@given(st.integers(1, 40), STAYING, st.integers(0, 12))
def test_launches_that_know_of_each_other_prove_less(launches: int, stays: float, count: int) -> None:
    if 2 * count < launches - 1:
        assert count_tail(launches, count, stays) >= count_tail(launches, count, INDEPENDENT) - 1e-12


@given(ALPHAS, STAYING)
def test_the_fewest_launches_are_the_fewest(alpha: float, stays: float) -> None:
    fewest = fewest_launches(alpha, stays)
    assert count_tail(fewest, 0, stays) <= alpha * (1 + 1e-9)
    assert fewest == 1 or count_tail(fewest - 1, 0, stays) > alpha
    assert allowed_counts((fewest,), 1, alpha, stays)[0] >= 0


@given(st.integers(1, 40), st.integers(0, 40), ALPHAS)
@settings(max_examples=50)
def test_so_many_launches_would_decide(launches: int, count: int, alpha: float) -> None:
    needed = launches_to_decide(min(count, launches), launches, alpha)
    if 2 * count >= launches:
        assert needed is None
    elif needed is not None:
        assert needed > launches
        assert count_tail(needed, math.ceil(count / launches * needed - 1e-9)) <= alpha


@given(st.integers(0, 30), st.integers(1, 30), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_share_is_the_limit_of_clopper_and_pearson(count: int, launches: int, level: float) -> None:
    count = min(count, launches)
    expected = (
        scipy.stats.binomtest(count, launches).proportion_ci(2 * level - 1, "exact").high if level > 0.5 else None
    )
    share = share_bound(count, launches, level)
    assert expected is None or share == pytest.approx(expected)
    assert count / launches <= share <= 1 or level == 0.5


def test_a_median() -> None:
    assert median([1.0, 100.0, 2.0]) == 2.0
    with pytest.raises(ValueError, match="no launches"):
        median([])


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.5, 0.7])
def test_the_model_of_signs_covers_launches_of_an_autoregressive_process(correlation: float) -> None:
    """Gaussian AR(1) launches whose median is the limit: few beyond it at any look in at most 5 % of acceptances."""
    draw, looks = np.random.default_rng(5), (8, 16, 24)
    values = np.empty((40_000, looks[-1]))
    values[:, 0] = draw.standard_normal(len(values))
    for k in range(1, looks[-1]):
        fresh = draw.standard_normal(len(values))
        values[:, k] = correlation * values[:, k - 1] + math.sqrt(1 - correlation**2) * fresh
    counts = allowed_counts(looks, 3, 0.05, stays_of(correlation))
    few = [np.sum(values[:, :launches] > 0, axis=1) <= count for launches, count in zip(looks, counts, strict=True)]
    assert np.any(few, axis=0).mean() <= 0.052


@pytest.mark.parametrize("alpha", [0.4999999999, 0.5, 0.9])
def test_a_coin_needs_one_launch(alpha: float) -> None:
    assert fewest_launches(alpha) == fewest_launches(alpha, 0.5) == 1


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_the_chain_has_as_many_launches_on_one_side_as_an_autoregressive_process(correlation: float) -> None:
    launches = autoregressive(correlation)(np.random.default_rng(8), 60_000, 24)
    for count in (8, 24):
        share = float((launches[:, :count] < 0).all(axis=1).mean())
        chain = count_tail(count, 0, stays_of(correlation))
        assert share - 0.001 <= chain <= 1.3 * share + 0.003, count

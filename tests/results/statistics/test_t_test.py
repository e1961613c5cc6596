from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import integrate, stats

from omb_py.results.statistics import t_test as t

logs = st.floats(-2, 2, allow_nan=False).map(lambda x: round(x, 9))
sets = st.lists(logs, min_size=2, max_size=40)


@pytest.mark.slow
@given(sets, sets)
def test_welch_is_scipys(base: list[float], new: list[float]) -> None:
    assume(np.std(base) > 1e-3 and np.std(new) > 1e-3)
    found, known = t.welch(base, new), stats.ttest_ind(new, base, equal_var=False)
    assert found.p == pytest.approx(known.pvalue, rel=1e-6, abs=1e-12)
    assert found.freedom == pytest.approx(known.df, rel=1e-6)
    expected = known.confidence_interval(0.99)
    assert found.limits(0.99) == pytest.approx([expected.low, expected.high], rel=1e-6, abs=1e-9)


@pytest.mark.slow
@given(st.lists(st.tuples(logs, logs), min_size=2, max_size=40))
def test_paired_is_scipys(pairs: list[tuple[float, float]]) -> None:
    base, new = zip(*pairs, strict=True)
    assume(np.std(np.subtract(new, base)) > 1e-3)
    found, known = t.paired(base, new), stats.ttest_rel(new, base)
    assert found.p == pytest.approx(known.pvalue, rel=1e-6, abs=1e-12)
    assert found.freedom == known.df
    expected = known.confidence_interval(0.9)
    assert found.limits(0.9) == pytest.approx([expected.low, expected.high], rel=1e-6, abs=1e-9)


@given(sets, sets)
def test_exchanging_the_sides_turns_the_ratio_round(base: list[float], new: list[float]) -> None:
    one, other = t.welch(base, new), t.welch(new, base)
    assert one.difference == -other.difference
    assert one.p == pytest.approx(other.p)


def test_one_launch_says_nothing() -> None:
    for one in (t.paired([1.0], [2.0]), t.welch([1.0], [2.0, 2.1, 2.2])):
        assert one.p == 1.0
        assert one.limits(0.99) == (-math.inf, math.inf)
        assert t.detectable(one, 0.01, 0.8) == math.inf
        assert t.launches_needed(one, 1.1, 0.01, 0.8) is None


def test_no_spread_at_all() -> None:
    same, other = t.paired([0.1] * 3, [0.1] * 3), t.paired([0.1] * 3, [0.3] * 3)
    assert (same.p, same.limits(0.99)) == (1.0, (0.0, 0.0))
    assert other.p == 0.0
    assert t.detectable(other, 0.01, 0.8) == 1.0


def test_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no launches"):
        t.welch([], [1.0])
    with pytest.raises(ValueError):
        t.paired([1.0], [1.0, 2.0])


@given(st.floats(0, 1), st.floats(0.5, 1000))
def test_quantile_is_scipys(p: float, freedom: float) -> None:
    assume(1e-6 < p < 1 - 1e-6)
    assert t.quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("n", "alpha"), [(5, 0.01), (8, 0.01 / 120), (30, 0.01 / 120)])
def test_the_detectable_change_has_the_power_that_it_says(n: int, alpha: float) -> None:
    estimate = t.Estimate(0.0, 0.02 * math.sqrt(2 / n), n - 1.0, n, n, paired=True)
    nc = math.log(t.detectable(estimate, alpha, 0.8)) / estimate.error
    critical = stats.t.ppf(1 - alpha / 2, n - 1)

    def rejects(z: float) -> float:
        """Where the mean is off by z errors: the chance that the spread seen is small enough."""
        return float(stats.norm.pdf(z) * stats.chi2.cdf((n - 1) * ((nc + z) / critical) ** 2, n - 1))

    power, _ = integrate.quad(rejects, max(-nc, -8), 8)
    assert power == pytest.approx(0.8, abs=0.01)


@given(st.floats(0.001, 0.3), st.integers(3, 20), st.floats(1.02, 2.0), st.booleans())
def test_with_the_launches_needed_the_change_is_detectable(
    error: float, n: int, change: float, is_paired: bool
) -> None:
    freedom = n - 1.0 if is_paired else 2 * n - 2.0
    estimate = t.Estimate(0.01, error, freedom, n, n, is_paired)
    needed = t.launches_needed(estimate, change, 0.01, 0.8)
    assume(needed is not None and needed > 2)
    assert needed is not None

    def with_launches(k: int) -> t.Estimate:
        scaled = error * math.sqrt(n / k)
        if is_paired:
            return t.Estimate(0.01, t.of_few_pairs(scaled, k), k - 1.0, k, k, True)
        return t.Estimate(0.01, scaled, 2 * k - 2.0, k, k, False)

    if is_paired:
        assert t.detectable(with_launches(needed), 0.01, 0.8) <= change * (1 + 1e-9)
        assert t.detectable(with_launches(needed - 1), 0.01, 0.8) > change
    else:  # degrees of freedom are scaled, not recomputed
        assert t.detectable(with_launches(needed + 2), 0.01, 0.8) <= change * 1.01


def test_a_change_that_is_out_of_reach() -> None:
    estimate = t.Estimate(0.0, 1.0, 9.0, 10, 10, paired=True)
    assert t.launches_needed(estimate, 1.001, 0.01, 0.8) is None
    assert t.launches_needed(estimate, 1.0, 0.01, 0.8) is None


def test_unequal_numbers_of_launches_count_as_their_harmonic_mean() -> None:
    unequal, equal = (t.Estimate(0.0, 0.05, 10.0, base, new, paired=False) for base, new in ((4, 12), (6, 6)))
    needed = t.launches_needed(equal, 1.02, 0.01, 0.8)
    assert t.launches_needed(unequal, 1.02, 0.01, 0.8) == needed and needed is not None and needed > 6


def test_constant_sides_of_rounded_times_are_not_certain_to_differ() -> None:
    base, new = [math.log(0.20)] * 2, [math.log(0.21)] * 2
    assert t.welch(base, new).p == 0.0
    step = math.log(0.21) - math.log(0.20)
    rounded = t.welch_of_rounded(base, new)
    assert rounded.error == pytest.approx(step / math.sqrt(12))
    assert rounded.p > 0.05
    assert t.welch_of_rounded([0.0, 0.1], [0.2, 0.35]) == t.welch([0.0, 0.1], [0.2, 0.35])


@given(st.lists(logs | st.sampled_from([0.0, 0.01, 0.02]), min_size=6, max_size=40))
def test_chances_of_splits_are_those_of_each_split(values: list[float]) -> None:
    found = t.split_chances(np.array(values), 3)
    known = [t.welch_of_rounded(values[:at], values[at:]).p for at in range(3, len(values) - 2)]
    # what is constant has no spread beside which a running sum errs
    assert all(a == pytest.approx(b, rel=1e-4, abs=1e-9) for a, b in zip(found, known, strict=True))
    best = int(found.argmin())
    assert known[best] == pytest.approx(min(known), rel=1e-4, abs=1e-9)

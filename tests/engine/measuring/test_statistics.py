from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from omb_py.engine.measuring import statistics as s
from tests.lab.error_rates.auto import CASES, COUNTS, drawn, outcome
from tests.support.tiers import few_quick

times = st.floats(0.0078125, 1e6, allow_nan=False, width=32)
series = st.lists(times, min_size=1, max_size=300)


def noise(rho: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Autocorrelated times around 100 µs."""
    from scipy.signal import lfilter  # slow to import, and each worker collects all files

    start = rng.normal() / math.sqrt(1 - rho * rho)
    steps, _ = lfilter([1.0], [1.0, -rho], rng.normal(size=n), zi=[rho * start])
    return 100.0 + np.asarray(steps)


class TestAutocorrelationTime:
    @given(series, st.integers(-10, 10))
    def test_depends_on_order_and_not_on_scale(self, x: list[float], power: int) -> None:
        values = np.asarray(x)
        # a power of two, so that scaling rounds nothing
        assert s.SignSeries(values * 2.0**power).autocorrelation_time() == s.SignSeries(values).autocorrelation_time()

    def test_is_one_for_a_constant_and_for_too_few(self) -> None:
        assert s.SignSeries([5.0] * 100).autocorrelation_time() == 1.0
        assert s.SignSeries([1.0, 2.0]).autocorrelation_time() == 1.0
        assert s.SignSeries([]).autocorrelation_time() == 1.0

    def test_is_near_one_for_independent_samples(self) -> None:
        rng = np.random.default_rng(1)
        found = [s.SignSeries(rng.normal(size=1000)).autocorrelation_time() for _ in range(200)]
        assert np.mean(found) == pytest.approx(1.0, abs=0.05)

    @pytest.mark.parametrize("rho", [0.3, 0.8])
    def test_finds_the_value_of_a_gaussian_ar1(self, rho: float) -> None:
        # the sign of a Gaussian AR(1) has rho_k = 2/pi * asin(rho^k)
        rhos = 2 / np.pi * np.arcsin(rho ** np.arange(1, s.MAX_LAG + 1))
        below = np.flatnonzero(rhos < s.RHO_CUT)
        expected = 1 + 2 * rhos[: below[0]].sum()
        rng = np.random.default_rng(2)
        found = [s.SignSeries(noise(rho, 20_000, rng)).autocorrelation_time() for _ in range(20)]
        assert np.mean(found) == pytest.approx(expected, rel=0.05)

    @pytest.mark.slow
    def test_batches_say_what_lies_beyond_the_last_lag(self) -> None:
        assert s.SignSeries(np.arange(10_000.0)).autocorrelation_time() > 1000
        rng = np.random.default_rng(5)
        # the sign of a Gaussian AR(1) of 0.99 has tau 139, of which 50 lags hold 86
        found = [s.SignSeries(noise(0.99, 40_000, rng)).autocorrelation_time() for _ in range(8)]
        assert np.mean(found) > 80


class TestTooSlow:
    def test_a_drift_and_a_wandering_series_are(self) -> None:
        rng = np.random.default_rng(6)
        assert s.too_slow(100 + rng.normal(size=1000) + np.linspace(0, 10, 1000))
        assert np.mean([s.too_slow(noise(0.99, 1000, rng)) for _ in range(100)]) > 0.4
        assert np.mean([s.too_slow(noise(0.5, 1000, rng)) for _ in range(100)]) < 0.15

    def test_a_constant_and_few_samples_are_not(self) -> None:
        assert not s.too_slow([5.0] * 1000) and not s.too_slow([0.1] * 1000)
        assert not s.too_slow(np.arange(3 * s.BATCHES - 1)) and s.too_slow(np.arange(3.0 * s.BATCHES))
        assert not s.too_slow([])


class TestSettled:
    def test_a_constant_is_and_few_samples_are_not(self) -> None:
        assert s.settled([2.0] * 100, 0.01) and not s.settled([2.0] * 47, 0.01) and not s.settled([], 0.01)

    @given(series, st.floats(0.001, 0.5))
    def test_it_needs_a_narrow_interval(self, x: list[float], precision: float) -> None:
        low, high = s.SignSeries(x).median_interval()
        assert not s.settled(x, precision) or high == low or (high - low) / 2 / np.median(x) <= precision

    def test_halves_that_differ_are_not_settled(self) -> None:
        rng = np.random.default_rng(7)
        calm = 100 + 0.5 * rng.normal(size=1000)
        assert s.settled(calm, 0.01)
        assert not s.settled(calm + np.repeat([0.0, 0.8], 500), 0.01)

    def test_two_kinds_of_samples_that_are_equally_frequent_are_not(self) -> None:
        rng = np.random.default_rng(8)
        both = np.where(rng.random(1000) < 0.5, 100.0, 120.0) + rng.normal(size=1000)
        assert not s.settled(both, 0.01)

    @pytest.mark.parametrize("name", few_quick(CASES))
    @pytest.mark.parametrize("length", COUNTS)
    def test_of_series_that_stop_nine_in_ten_are_near_the_whole(self, name: str, length: int) -> None:
        """docs/statistics.md says which kinds no rule can know; the others have hardly a stop, or nearly all right."""
        found = outcome(drawn(name, length, 25))
        wrong = found.stopped - found.right
        if "one shift" in name or "300 calls" in name:
            assert found.used >= 0.25
        else:
            assert wrong <= max(1, 0.1 * found.stopped)


class TestMedianInterval:
    @pytest.mark.slow
    @given(st.integers(1, 3000), st.sampled_from([0.9, 0.95, 0.99]))
    @settings(max_examples=300)
    def test_covers_at_least_the_level_by_scipys_binomial_and_wastes_little(self, n: int, level: float) -> None:
        low, high = s.SignSeries(np.arange(1.0, n + 1)).median_interval(level, tau=1.0)
        if math.isnan(low):
            assert 2 * stats.binom.cdf(0, n, 0.5) > 1 - level
            return
        assert low + high == n + 1
        coverage = 1 - 2 * stats.binom.cdf(low - 1, n, 0.5)
        assert coverage >= level - 1e-12
        # two ranks further in on each side would be too narrow
        assert 1 - 2 * stats.binom.cdf(low + 1, n, 0.5) < level

    @pytest.mark.parametrize(("level", "smallest"), [(0.9, 5), (0.95, 6), (0.99, 8)])
    def test_needs_a_smallest_number_of_samples(self, level: float, smallest: int) -> None:
        assert all(math.isnan(v) for v in s.SignSeries(range(smallest - 1)).median_interval(level))
        assert s.SignSeries(np.arange(smallest)).median_interval(level, tau=1.0) == (0.0, smallest - 1.0)
        assert all(math.isnan(v) for v in s.SignSeries([]).median_interval())

    @given(series)
    def test_encloses_the_median_and_widens_with_tau(self, x: list[float]) -> None:
        low, high = s.SignSeries(x).median_interval(tau=1.0)
        if math.isnan(low):
            return
        assert min(x) <= low <= np.median(x) <= high <= max(x)
        wide_low, wide_high = s.SignSeries(x).median_interval(tau=2.5)
        assert math.isnan(wide_low) or (wide_low <= low and wide_high >= high)
        assert s.SignSeries(x).median_interval(tau=0.2) == (low, high)

    @pytest.mark.parametrize(("rho", "least"), [(0.0, 0.93), (0.5, 0.90), (0.8, 0.86)])
    def test_real_coverage_stays_near_the_level_under_autocorrelation(self, rho: float, least: float) -> None:
        rng = np.random.default_rng(3)
        inside = 0
        for _ in range(500):
            low, high = s.SignSeries(noise(rho, 400, rng)).median_interval()
            inside += low <= 100.0 <= high
        assert inside / 500 >= least


class TestCheckpoints:
    def test_of_ombs_counts(self) -> None:
        assert s.checkpoints(1000) == [100, 150, 225, 338, 507, 761, 1000]
        assert [n for n in s.checkpoints(1000) if s.late_enough(n, 1000)] == [338, 507, 761, 1000]
        assert s.checkpoints(200) == [100, 150, 200]
        assert s.checkpoints(100) == [100]
        assert s.checkpoints(20) == [20]
        assert s.checkpoints(1) == [1]
        assert s.checkpoints(10, first=3) == [3, 5, 8, 10]

    @given(st.integers(1, 100_000), st.integers(1, 1000))
    def test_grow_by_half_and_end_at_the_limit(self, limit: int, first: int) -> None:
        points = s.checkpoints(limit, first)
        assert points[0] == min(first, limit) and s.late_enough(points[-1], limit)
        assert points[-1] == limit
        for before, after in itertools.pairwise(points):
            assert before < after
            assert after == min(limit, math.ceil(before * 1.5))

    @pytest.mark.parametrize(("limit", "first"), [(0, 100), (10, 0), (-1, 1)])
    def test_refuse_counts_under_one(self, limit: int, first: int) -> None:
        with pytest.raises(ValueError, match="start at 1"):
            s.checkpoints(limit, first)


class TestOmbPercentile:
    def test_by_hand(self) -> None:
        twenty = list(range(1, 21))
        assert s.omb_percentile(twenty[::-1], 99) == 19  # never the largest of 20
        assert s.omb_percentile(twenty, 100) == 20
        assert s.omb_percentile(twenty, 50) == 10
        assert s.omb_percentile(twenty, 90) == 18
        assert s.omb_percentile(twenty, 1) == 1  # OMB reads before the array
        assert s.omb_percentile([7.0], 99) == 7.0
        assert s.omb_percentile(range(1, 1001), 99.9) == 999

    def test_refuses_nothing(self) -> None:
        with pytest.raises(ValueError, match="no values"):
            s.omb_percentile([], 50)


class TestQuantileOrNull:
    @given(series, st.floats(0.001, 0.999))
    def test_is_numpys_where_samples_suffice(self, x: list[float], q: float) -> None:
        found = s.quantile_or_null(x, q)
        if found is None:
            assert len(x) * q < 1 or len(x) * (1 - q) < 1
        else:
            assert found == np.quantile(np.asarray(x), q)

    @pytest.mark.parametrize(
        ("q", "needed"), [(0.5, 2), (0.25, 4), (0.75, 4), (0.9, 10), (0.05, 20), (0.95, 20), (0.99, 100), (0.999, 1000)]
    )
    def test_needs_samples_on_both_sides(self, q: float, needed: int) -> None:
        assert s.quantile_or_null(np.arange(needed - 1), q) is None
        assert s.quantile_or_null(np.arange(needed), q) is not None

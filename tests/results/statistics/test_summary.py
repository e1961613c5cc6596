from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from omb_py.results.statistics.summary import COLUMNS, QUANTILES, summarise
from omb_py.results.store.schema import BY_NAME


def test_by_hand() -> None:
    found = summarise([3.0, 1.0, 2.0, 10.0])
    assert found["mean_us"] == 4.0
    assert found["median_us"] == 2.5
    assert (found["min_us"], found["max_us"]) == (1.0, 10.0)
    assert found["stddev_us"] == pytest.approx(np.sqrt((1 + 9 + 4 + 36) / 3))
    assert found["mad_us"] == 1.0
    assert (found["p25_us"], found["p50_us"], found["p75_us"]) == (1.75, 2.5, 4.75)
    assert found["p05_us"] is found["p95_us"] is found["p99_us"] is found["p999_us"] is None
    assert found["ci_low_us"] is found["ci_high_us"] is None


def test_of_one_sample_and_of_none() -> None:
    one = summarise([2.0])
    assert (one["mean_us"], one["median_us"], one["ess"]) == (2.0, 2.0, 1.0)
    assert one["stddev_us"] is None
    assert one["p50_us"] is None
    assert summarise([]) == dict.fromkeys(COLUMNS)


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=1200))
def test_agrees_with_numpy_and_scipy(x: list[float]) -> None:
    found = summarise(x)
    assert list(found) == list(COLUMNS)
    assert set(found) <= set(BY_NAME)
    assert found["mean_us"] == pytest.approx(np.mean(x))
    assert found["median_us"] == np.median(x)
    assert found["mad_us"] == pytest.approx(stats.median_abs_deviation(x))
    if len(x) > 1:
        assert found["stddev_us"] == pytest.approx(statistics.stdev(x), rel=1e-9, abs=1e-9)
    for name, q in QUANTILES.items():
        assert found[name] is None or found[name] == np.quantile(x, q)
    low, high = found["ci_low_us"], found["ci_high_us"]
    assert (low is None) == (high is None)
    if low is not None and high is not None:
        assert min(x) <= low <= found["median_us"] <= high <= max(x)
    assert all(v is None or type(v) is float for v in found.values())

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.statistics.dependence import (
    FEWEST,
    MOST,
    UNKNOWN,
    correlation_at_most,
    pooled_correlation,
    whitened,
)

values = st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=0, max_size=40)


@given(values, st.integers(1, 40), st.floats(0.1, 10))
def test_it_is_a_correlation_and_has_no_unit(x: list[float], edge: int, unit: float) -> None:
    edges = [edge] if edge < len(x) else []
    rho = correlation_at_most(x, edges)
    assert 0 <= rho <= MOST
    if x and np.ptp(x) > 1e-6:  # below that the scatter is rounding
        assert correlation_at_most([unit * value for value in x], edges) == pytest.approx(rho, abs=1e-6)


def test_levels_are_no_dependence() -> None:
    assert correlation_at_most([0.0] * 10 + [1.0] * 10, [10]) == 0.0
    assert correlation_at_most([0.1] * 3, []) == correlation_at_most([], []) == 0.0
    noise = np.random.default_rng(1).standard_normal(400)
    steps = noise + np.repeat([0.0, 10.0, 3.0, 7.0], 100)
    assert correlation_at_most(steps, [100, 200, 300]) == pytest.approx(correlation_at_most(noise, []), abs=0.05)
    assert correlation_at_most(steps, []) > 0.8


def autoregressive(rho: float, series: int, launches: int, draw: np.random.Generator) -> np.ndarray:
    from scipy.signal import lfilter  # slow to import, and each worker collects all files

    return lfilter([1], [1, -rho], draw.standard_normal((series, launches + 100)), axis=1)[:, 100:]


@pytest.mark.parametrize(("n", "rho"), [(20, 0.0), (20, 0.3), (40, 0.3), (200, 0.3), (200, 0.5)])
def test_it_is_rarely_less_than_the_truth(n: int, rho: float) -> None:
    draw = np.random.default_rng([n, 3])
    series = autoregressive(rho, 300, n, draw)
    found = np.array([correlation_at_most(x, [n // 2]) for x in series])
    assert (found >= rho).mean() >= 0.6 and found.mean() <= rho + 0.3


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.floats(0, 0.95))
def test_whitening_is_undone_by_the_recursion(x: list[float], rho: float) -> None:
    white = whitened(x, rho)
    again = [x[0]]
    for value in white[1:]:
        again.append(value + rho * again[-1])
    assert again == pytest.approx(x, abs=1e-9)
    assert whitened(x, 0.0) == pytest.approx(x)
    assert whitened([], rho).size == 0


@given(st.integers(1, 19), st.floats(0, 0.95), st.floats(-3, 3))
def test_a_step_stays_one_without_a_peak(at: int, rho: float, height: float) -> None:
    steps = np.r_[np.zeros(at), np.full(20 - at, height)]
    assert whitened(steps, rho, [at]) == pytest.approx((1 - rho) * steps)


def test_whitened_values_are_independent_and_alike() -> None:
    draw = np.random.default_rng(2)
    series = autoregressive(0.6, 2000, 30, draw)
    white = np.array([whitened(x - np.median(x), 0.6) for x in series])
    assert white.std(axis=0) == pytest.approx(np.ones(30), abs=0.1)
    assert abs(np.corrcoef(white[:, 10], white[:, 11])[0, 1]) < 0.1


@pytest.mark.parametrize(("rho", "launches"), [(0.0, 16), (0.3, 24), (0.8, 8), (0.9, 24)])
def test_many_cells_show_the_correlation_of_their_launches(rho: float, launches: int) -> None:
    cells = autoregressive(rho, 400, launches, np.random.default_rng([5, launches]))
    assert pooled_correlation(cells, 0.0) == pytest.approx(rho, abs=0.04)


def test_caution_adds_the_standard_error_of_so_many_cells() -> None:
    error = 1 / (1 - 4 / 12) / np.sqrt(12)
    related = autoregressive(0.4, 10, 12, np.random.default_rng([5, 12]))
    ten = pooled_correlation(related, 1.0) - pooled_correlation(related, 0.0)
    assert ten == pytest.approx(error / np.sqrt(10), abs=0.011)


@given(st.lists(st.lists(st.floats(-5, 5), max_size=12), max_size=5), st.floats(0.1, 10), st.floats(-3, 3))
def test_no_cell_counts_more_for_its_unit_or_its_level(cells: list[list[float]], unit: float, level: float) -> None:
    cells = [cell for cell in cells if not cell or np.ptp(cell) == 0 or np.ptp(cell) > 1e-3]
    rho = pooled_correlation(cells)
    assert 0 <= rho <= MOST
    assert pooled_correlation([[level + unit * x for x in cell] for cell in cells]) == pytest.approx(rho, abs=0.011)


def test_nights_of_launches_share_more_than_the_next_launch_shows() -> None:
    draw = np.random.default_rng(6)
    cells = np.repeat(draw.standard_normal((200, 6)), 4, axis=1) + draw.standard_normal((200, 24))
    next_one, next_but_one = (np.mean([np.corrcoef(x[lag:], x[:-lag])[0, 1] for x in cells]) for lag in (1, 2))
    assert pooled_correlation(cells) > next_one + 0.1 and pooled_correlation(cells) > next_but_one**0.5


def test_what_says_nothing_is_left_out() -> None:
    cell = list(np.random.default_rng(1).standard_normal(12))
    for nothing in ([], [[1.0] * 20], [cell[: FEWEST - 1]]):
        assert pooled_correlation(nothing) == UNKNOWN
    assert pooled_correlation([]) == UNKNOWN
    assert pooled_correlation([cell, [1.0] * 20, cell[: FEWEST - 1]]) == pooled_correlation([cell])

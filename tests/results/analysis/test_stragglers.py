"""A rank that is last too often is named; chance is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.analysis.stragglers import ALPHA, Last, Straggler, stragglers


def drawn(ranks: int, trials: int, cells: int, seed: int, weight: float = 1.0) -> list[Last]:
    """Shares of ranks, of which the last is so many times as likely to be late as another."""
    odds = np.ones(ranks)
    odds[-1] = weight
    counts = np.random.default_rng(seed).multinomial(trials, odds / odds.sum(), size=cells)
    return [Last((row / trials).tolist(), trials) for row in counts]


@pytest.mark.parametrize("ranks", [2, 4, 16, 128])
def test_ranks_that_are_alike_are_not_named(ranks: int) -> None:
    named = sum(bool(stragglers(drawn(ranks, 100, 1, seed))) for seed in range(300))
    assert named <= 300 * ALPHA + 3


@pytest.mark.parametrize(("ranks", "weight"), [(2, 9.0), (4, 12.0), (16, 8.0), (128, 20.0)])
def test_a_straggler_is_named(ranks: int, weight: float) -> None:
    for seed in range(20):
        assert [one.rank for one in stragglers(drawn(ranks, 300, 5, seed, weight))] == [ranks - 1]


def test_it_must_be_late_in_half_of_the_cells() -> None:
    calm, late = Last([0.25] * 4, 100), Last([0.0, 0.0, 0.1, 0.9], 100)
    assert stragglers([calm, late]) == [Straggler(3, 0.575, 0.25, 1)]
    assert stragglers([calm, calm, late]) == []


def test_a_little_more_often_is_not_too_often_however_sure() -> None:
    assert stragglers([Last([0.3, 0.3, 0.4], 10**6)]) == []


def test_few_calls_show_nothing() -> None:
    assert stragglers([Last([1.0, 0.0, 0.0, 0.0], 3)]) == []
    assert [one.rank for one in stragglers([Last([1.0, 0.0, 0.0, 0.0], 30)])] == [0]


def test_those_that_always_finish_together_are_alike() -> None:
    assert stragglers([Last([1.0] * 8, 1000)]) == []


def test_worlds_of_one_and_no_cells() -> None:
    assert stragglers([]) == [] and stragglers([Last([1.0], 100)]) == []
    with pytest.raises(ValueError, match=r"cells of \[2, 3\] ranks"):
        stragglers([Last([1, 0], 9), Last([1, 0, 0], 9)])


@given(st.integers(2, 12), st.integers(0, 50), st.integers(0, 9))
def test_the_order_of_ranks_and_cells_does_not_matter(ranks: int, seed: int, weight: int) -> None:
    cells = drawn(ranks, 200, 4, seed, 1.0 + weight)
    turned = [Last(list(cell.shares)[::-1], cell.trials) for cell in reversed(cells)]
    assert sorted((one.rank, one.cells) for one in stragglers(cells)) == sorted(
        (ranks - 1 - one.rank, one.cells) for one in stragglers(turned)
    )


def test_two_ranks_that_are_last_in_turn_are_no_stragglers() -> None:
    """Two ranks without noise: one of them is last in all calls of a size, and the other in those of the next."""
    first, second = Last([1.0, 0.0], 100), Last([0.0, 1.0], 100)
    assert stragglers([first, second] * 5) == []
    assert [late.rank for late in stragglers([first, second, *[first] * 8])] == [0]

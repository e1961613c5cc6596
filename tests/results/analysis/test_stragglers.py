"""A rank that is last too often is named; chance is not."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from omb_py.results.analysis.stragglers import ALPHA, STICKY, Last, Straggler, incomplete_beta, stragglers
from tests.lab.error_rates.stragglers import rate
from tests.support.machines.mpi import run_command


def drawn(ranks: int, trials: int, cells: int, seed: int, weight: float = 1.0) -> list[Last]:
    """Shares of ranks, of which the last is so many times as likely to be late as another."""
    odds = np.ones(ranks)
    odds[-1] = weight
    counts = np.random.default_rng(seed).multinomial(trials, odds / odds.sum(), size=cells)
    return [shuffled((row / trials).tolist(), trials) for row in counts]


def shuffled(shares: list[float], calls: int) -> Last:
    """A cell whose last rank is drawn anew in each call."""
    whole = max(sum(shares), 1.0)
    return Last(shares, calls, (calls - 1) * (1 - sum((share / whole) ** 2 for share in shares)))


@pytest.mark.parametrize("ranks", [2, 16])
def test_ranks_that_are_alike_are_not_named(ranks: int) -> None:
    named = sum(bool(stragglers(drawn(ranks, 100, 1, seed))) for seed in range(300))
    assert named <= 300 * ALPHA + 3


@pytest.mark.parametrize(("ranks", "weight"), [(2, 9.0), (16, 8.0), (128, 20.0)])
def test_a_straggler_is_named(ranks: int, weight: float) -> None:
    for seed in range(20):
        assert [one.rank for one in stragglers(drawn(ranks, 300, 5, seed, weight))] == [ranks - 1]


@pytest.mark.parametrize(
    ("ranks", "calls", "cells", "again"),
    [(2, 1000, 4, 0.5), (2, 1000, 4, 0.99), (4, 100, 4, 0.9), (16, 1000, 1, 0.0), (16, 100, 1, 0.97)],
)
def test_the_same_rank_again_is_no_straggler(ranks: int, calls: int, cells: int, again: float) -> None:
    """At most 1 %, within chance (99.9 %)."""
    assert round(200 * rate(ranks, calls, cells, again, 200)) <= stats.binom.ppf(0.999, 200, ALPHA)


def test_a_straggler_is_named_however_the_last_rank_stays() -> None:
    assert rate(4, 1000, 4, 0.9, 50, odds=27.0) == 1.0


@pytest.mark.slow
@given(st.integers(2, 64), st.integers(2, 10**6), st.floats(0, 1))
def test_draws_are_between_one_and_the_calls(ranks: int, calls: int, changed: float) -> None:
    trials = Last([1 / ranks] * ranks, calls, changed * (calls - 1)).trials
    assert 1 <= trials <= calls
    more = Last([1 / ranks] * ranks, calls, min(1.0, changed + 0.1) * (calls - 1)).trials
    assert more >= trials


def test_draws_of_a_known_chain() -> None:
    """The autocorrelation of "rank r is last" is q^k: n (1 - q) / (1 + q) calls are independent."""
    for ranks, again in ((2, 0.5), (4, 0.9), (16, 0.75)):
        changes = (1 - again) * (ranks - 1) / ranks * 999
        assert Last([1 / ranks] * ranks, 1000, changes).trials == pytest.approx(1000 * (1 - again) / (1 + again) - 1)
    never = Last([1.0, 0.0], 1000, 0)
    assert never.trials == pytest.approx(1000 * (1 - STICKY) / (1 + STICKY) - 1)


def test_it_must_be_late_in_half_of_the_cells() -> None:
    calm, late = shuffled([0.25] * 4, 1000), shuffled([0.0, 0.0, 0.1, 0.9], 1000)
    assert stragglers([calm, late]) == [Straggler(3, 0.575, 0.25, 1)]
    assert stragglers([calm, calm, late]) == []


def test_a_little_more_often_is_not_too_often_however_sure() -> None:
    assert stragglers([shuffled([0.3, 0.3, 0.4], 10**6)]) == []


def test_few_calls_show_nothing() -> None:
    assert stragglers([Last([1.0, 0.0, 0.0, 0.0], 30, 0)]) == []
    assert [one.rank for one in stragglers([Last([1.0, 0.0, 0.0, 0.0], 2000, 0)])] == [0]
    assert [one.rank for one in stragglers([Last([1.0, 0.0, 0.0, 0.0], 30, 0)] * 8)] == [0]


def test_those_that_always_finish_together_are_alike() -> None:
    assert stragglers([Last([1.0] * 8, 1000, 0)]) == []


def test_worlds_of_one_and_no_cells() -> None:
    assert stragglers([]) == [] and stragglers([Last([1.0], 100, 0)]) == []
    with pytest.raises(ValueError, match=r"cells of \[2, 3\] ranks"):
        stragglers([Last([1, 0], 9, 0), Last([1, 0, 0], 9, 0)])


@given(st.integers(2, 12), st.integers(0, 50), st.integers(0, 9))
def test_the_order_of_ranks_and_cells_does_not_matter(ranks: int, seed: int, weight: int) -> None:
    cells = drawn(ranks, 200, 4, seed, 1.0 + weight)
    turned = [Last(list(cell.shares)[::-1], cell.calls, cell.changes) for cell in reversed(cells)]
    assert sorted((one.rank, one.cells) for one in stragglers(cells)) == sorted(
        (ranks - 1 - one.rank, one.cells) for one in stragglers(turned)
    )


def test_two_ranks_that_are_last_in_turn_are_no_stragglers() -> None:
    """Two ranks without noise: one of them is last in all calls of a size, and the other in those of the next."""
    first, second = Last([1.0, 0.0], 100, 0), Last([0.0, 1.0], 100, 0)
    assert stragglers([first, second] * 5) == []
    assert [late.rank for late in stragglers([first, second, *[first] * 14])] == [0]


@given(st.floats(0, 1), st.floats(1, 1e7), st.sampled_from([2, 3, 16, 128, 65536]))
def test_the_incomplete_beta_function_is_that_of_scipy(share: float, trials: float, ranks: int) -> None:
    a, b = max(share * trials, 1e-3), (1 - share) * trials + 1
    assert incomplete_beta(a, b, 1 / ranks) == pytest.approx(
        float(special.betainc(a, b, 1 / ranks)), rel=1e-6, abs=1e-12
    )


def test_the_notes_of_a_sweep_load_neither_numpy_nor_scipy() -> None:
    code = (
        "import sys\n"
        "from omb_py.results.analysis.stragglers import Last, stragglers\n"
        "assert [late.rank for late in stragglers([Last([0.02, 0.98], 1000, 40)] * 4)] == [1]\n"
        "sys.exit(repr({'numpy', 'scipy'} & set(sys.modules)) if {'numpy', 'scipy'} & set(sys.modules) else 0)"
    )
    done = run_command([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr

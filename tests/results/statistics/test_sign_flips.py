"""Sign flips: exact on every sign pattern, alike to a count by hand, and intervals that invert the test."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from omb_py.results.statistics.sign_flips import (
    ENUMERATED,
    PATTERNS,
    Flips,
    alone,
    fewest_pairs,
    patterns,
    share_above,
)

Matrix = np.ndarray


def noise(seed: int, pairs: int, questions: int, kind: str = "normal", shared: float = 0.5) -> Matrix:
    rng = np.random.default_rng(seed)
    parts = []
    for columns in (questions, 1):
        if kind == "normal":
            parts.append(rng.standard_normal((pairs, columns)))
        elif kind == "t3":
            parts.append(rng.standard_t(3, (pairs, columns)))
        else:  # bimodal: one launch in ten takes twice as long
            slow = rng.random((2, pairs, columns)) < 0.1
            parts.append(0.01 * rng.standard_normal((pairs, columns)) + math.log(2) * (slow[0] * 1.0 - slow[1]))
    return 0.02 * (math.sqrt(1 - shared) * parts[0] + math.sqrt(shared) * parts[1])


def flips(differences: Matrix, kinds: list[int] | None = None, floor: float = 0.0) -> Flips:
    questions = differences.shape[1]
    return Flips(differences, np.array(kinds or [0] * questions, dtype=np.intp), np.full(questions, floor))


def smallest_p(differences: Matrix) -> float:
    """Two-sided p-value that no question has changed."""
    tested = flips(differences)
    observed, largest = tested.statistics(np.arange(differences.shape[1]))
    return min(1.0, 2 * float(share_above(np.abs(observed), largest).min()))


@pytest.mark.parametrize("pairs", [1, 2, 5, ENUMERATED])
def test_all_patterns_are_taken_once(pairs: int) -> None:
    signs = patterns(pairs)
    both = {tuple(row) for row in np.concatenate([signs, -signs])}
    assert len(both) == 2**pairs == 2 * len(signs) and set(np.unique(signs)) <= {-1.0, 1.0}
    assert (signs[0] == 1).all()


@pytest.mark.parametrize("pairs", [ENUMERATED + 1, 20, 100])
def test_patterns_of_many_pairs_are_drawn_without_repeating_any(pairs: int) -> None:
    signs = patterns(pairs)
    both = {tuple(row) for row in np.concatenate([signs, -signs])}
    assert len(both) == PATTERNS and (signs[0] == 1).all()
    # each pair is flipped in half of them, and each two pairs independently
    assert np.abs(np.corrcoef(signs[:, :-1].T) - np.eye(pairs - 1)).max() < 0.15


@pytest.mark.parametrize("kind", ["normal", "t3", "bimodal"])
@pytest.mark.parametrize("questions", [1, 2, 7])
def test_the_rate_is_exact_over_all_orders_of_the_same_launches(kind: str, questions: int) -> None:
    # the launches are what they are; only which of a pair was called NEW was drawn
    pairs = 7
    fixed = noise(questions, pairs, questions, kind)
    p = np.array([smallest_p(fixed * np.array(signs)[:, None]) for signs in itertools.product((1, -1), repeat=pairs)])
    for alpha in np.unique(p):
        assert (p <= alpha).mean() <= alpha + 1e-12
    assert len(np.unique(p)) > 3 and p.min() == 2 / 2**pairs, "and not by saying nothing"


def test_statistics_are_those_of_each_pattern_by_itself() -> None:
    differences = noise(3, 6, 4)
    differences[2, 1] = np.nan
    whole = flips(differences, [0, 1, 0, 1])
    family = np.arange(4)
    _, largest = whole.statistics(family)
    by_hand = []
    for signs in itertools.product((1, -1), repeat=6):
        observed, _ = flips(differences * np.array(signs)[:, None], [0, 1, 0, 1]).statistics(family)
        by_hand.append(observed.max())
    assert largest == pytest.approx(sorted(by_hand), rel=1e-4)


def test_one_question_is_ordered_as_students_t() -> None:
    differences = noise(5, 8, 1)
    observed, largest = flips(differences).statistics(np.array([0]))
    assert observed[0] == pytest.approx(stats.ttest_1samp(differences[:, 0], 0).statistic, rel=1e-4)
    by_scipy = stats.permutation_test(
        (differences[:, 0], np.zeros(8)),
        lambda a, b: float(np.mean(a - b)),
        permutation_type="samples",
        alternative="greater",
    )
    assert share_above(observed, largest)[0] == pytest.approx(by_scipy.pvalue)


def test_the_spread_is_shared_as_far_as_questions_agree() -> None:
    alike = flips(noise(1, 10, 200, shared=0.0))
    family = np.arange(200)
    own = noise(1, 10, 200, shared=0.0).std(axis=0, ddof=1) / math.sqrt(10)
    errors, freedom = alike.errors(family)
    assert errors.std() < 0.2 * own.std() and errors.mean() == pytest.approx(own.mean(), rel=0.05)
    assert (freedom > 50).all()
    unlike = noise(1, 10, 200, shared=0.0) * np.exp(2 * np.random.default_rng(2).standard_normal(200))
    errors, freedom = flips(unlike).errors(family)
    own = unlike.std(axis=0, ddof=1) / math.sqrt(10)
    assert np.corrcoef(np.log(errors), np.log(own))[0, 1] > 0.98 and (freedom < 12).all()
    # questions of another kind have another spread
    both = np.concatenate([noise(1, 10, 100, shared=0.0), 10 * noise(2, 10, 100, shared=0.0)], axis=1)
    errors, _ = flips(both, [0] * 100 + [1] * 100).errors(family)
    assert errors[100:].mean() / errors[:100].mean() == pytest.approx(10, rel=0.1)


def test_what_is_tested_is_measured_by_the_shared_spread() -> None:
    differences, family = noise(1, 10, 200, shared=0.0), np.arange(200)
    found = flips(differences)
    errors, _ = found.errors(family)
    observed, largest = found.statistics(family)
    assert observed == pytest.approx(differences.mean(axis=0) / errors, rel=1e-4)
    # a spread of its own for each would make the largest of 200 chance statistics half as large again
    own = differences.mean(axis=0) / (differences.std(axis=0, ddof=1) / math.sqrt(10))
    assert np.abs(observed).max() < np.abs(own).max() and np.median(largest) < 3.5


def test_a_question_alone_keeps_its_own_spread() -> None:
    errors, freedom = flips(noise(1, 10, 1)).errors(np.array([0]))
    assert errors[0] == pytest.approx(noise(1, 10, 1).std(ddof=1) / math.sqrt(10), rel=1e-4) and freedom[0] == 9


def test_no_spread_at_all_is_the_floor() -> None:
    equal = np.full((2, 1), 0.05)
    (observed,), largest = flips(equal, floor=0.02).statistics(np.array([0]))
    assert observed == pytest.approx(0.05 / (0.02 / math.sqrt(2)), rel=1e-4)
    assert share_above(np.array([observed]), largest)[0] == 0.25, "two pairs of equal differences prove nothing"
    (observed,), _ = flips(np.zeros((5, 1))).statistics(np.array([0]))
    assert observed == 0


def test_a_question_of_one_pair_takes_its_spread_from_the_others() -> None:
    differences = noise(8, 9, 5)
    differences[1:, 0] = np.nan
    observed, largest = flips(differences).statistics(np.arange(5))
    assert np.isfinite(observed).all() and np.isfinite(largest).all()
    assert not np.isnan(flips(differences[:1, :1]).statistics(np.array([0]))[0]).any()


def test_no_question() -> None:
    observed, largest = flips(noise(1, 5, 3)).statistics(np.array([], dtype=np.intp))
    assert not observed.size and np.isneginf(largest).all()


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(8, 14), st.floats(-0.1, 0.1))
def test_intervals_are_the_shifts_that_the_test_does_not_reject(seed: int, pairs: int, shift: float) -> None:
    differences = noise(seed, pairs, 1) + shift
    found = alone(differences, (0.99, 0.9))
    for level, ((low,), (high,)) in zip((0.99, 0.9), found.intervals, strict=True):
        assert low < differences.mean() < high
        for end, inside in ((low, 1), (high, -1)):
            for step, rejected in ((-1e-7, True), (1e-7, False)):
                p = alone(differences - (end + inside * step), ()).p[0]
                assert (p <= 1 - level + 1e-12) == rejected
    assert found.intervals[0][0] <= found.intervals[1][0], "the wider holds the narrower"


def test_intervals_of_symmetric_differences_hold_what_they_should() -> None:
    for kind in ("normal", "t3"):
        differences = noise(4, 10, 2000, kind, shared=0.0) + 0.03
        ((low, high),) = alone(differences, (0.9,)).intervals
        assert np.mean((low <= 0.03) & (high >= 0.03)) == pytest.approx(0.9, abs=0.02)


def test_too_few_pairs_have_no_interval() -> None:
    for pairs, known in ((7, False), (8, True)):
        ((low,), (high,)) = alone(noise(1, pairs, 1), (0.99,)).intervals[0]
        assert (math.isfinite(low), math.isfinite(high)) == (known, known)
        assert (fewest_pairs(0.01) <= pairs) is known


def test_p_of_a_question_alone() -> None:
    assert alone(np.full((5, 1), 0.1), ()).p[0] == 2 / 32
    assert alone(np.zeros((5, 1)), ()).p[0] == 1.0
    assert alone(np.array([[0.1], [-0.1]]), ()).p[0] == 1.0

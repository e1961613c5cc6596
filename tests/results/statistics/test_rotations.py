"""Rotations: their rate under any dependence, alike to Student's t for one question, and a spread that is shared."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy import stats

from omb_py.results.statistics.rotations import (
    ROTATIONS,
    FamilyOutcome,
    Rotations,
    directions,
    exchanges,
    judge_family,
    share_above,
)

Matrix = np.ndarray
Turns = Callable[[int], Matrix]


def noise(seed: int, pairs: int, questions: int, shared: float = 0.5) -> Matrix:
    """Normal differences that share a part."""
    rng = np.random.default_rng(seed)
    own, common = rng.standard_normal((pairs, questions)), rng.standard_normal((pairs, 1))
    return 0.02 * (math.sqrt(1 - shared) * own + math.sqrt(shared) * common)


def rotated(
    differences: Matrix, kinds: list[int] | None = None, floor: float = 0.0, turns: Turns = directions
) -> Rotations:
    questions = differences.shape[1]
    return Rotations(differences, np.array(kinds or [0] * questions, dtype=np.intp), np.full(questions, floor), turns)


def judged(differences: Matrix, asked: np.ndarray | None = None, level: float = 0.01) -> FamilyOutcome:
    """What one look says of questions that are all open."""
    everybody = np.ones(differences.shape[1], dtype=bool)
    exchanged = partial(rotated, differences, turns=exchanges)
    return judge_family(rotated(differences), exchanged, everybody, everybody if asked is None else asked, level)


def smallest_p(differences: Matrix) -> float:
    """Two-sided p-value that no question has changed."""
    observed, largest = rotated(differences).statistics(np.arange(differences.shape[1]))
    return min(1.0, 2 * float(share_above(np.abs(observed), largest).min()))


@pytest.mark.parametrize("pairs", [1, 2, 10, 60])
def test_directions_are_of_one_length_and_the_first_is_the_observed_one(pairs: int) -> None:
    drawn = directions(pairs)
    assert drawn.shape == (ROTATIONS // 2, pairs) and (drawn[0] == 1).all()
    assert (drawn**2).sum(axis=1) == pytest.approx(pairs)


def test_all_exchanges_of_few_pairs_and_some_of_many() -> None:
    assert sorted(map(tuple, exchanges(3).tolist())) == [(1, -1, -1), (1, -1, 1), (1, 1, -1), (1, 1, 1)]
    assert exchanges(1).tolist() == [[1]] and exchanges(12).shape == (ROTATIONS // 2, 12)
    many = exchanges(13)
    assert many.shape == (ROTATIONS // 2, 13) and (np.abs(many) == 1).all() and (many[0] == 1).all()


def test_differences_of_few_values_are_held_to_what_exchanges_say() -> None:
    """Each second launch takes twice as long: eight of ten pairs that differ, all to one side, are no rare thing."""
    differences = np.random.default_rng(4).choice([0.0, math.log(2), -math.log(2)], (10, 20), p=[0.5, 0.25, 0.25])
    differences[:, 0] = [math.log(2)] * 8 + [0.0, 0.0]
    found = judged(differences)
    everybody, alone = np.ones(20, dtype=bool), rotated(differences)
    assert judge_family(alone, lambda: alone, everybody, everybody, 0.01).direction[0] == 1, "by rotations alone"
    assert found.direction[0] == 0 and found.adjusted[0] > 0.01


@pytest.mark.parametrize(("questions", "shared"), [(1, 0.0), (7, 0.95)])
def test_the_rate_is_the_declared_one(questions: int, shared: float) -> None:
    p = np.array([smallest_p(noise(seed, 8, questions, shared)) for seed in range(400)])
    for alpha in (0.05, 0.2):
        rate, error = float((p <= alpha).mean()), math.sqrt(alpha * (1 - alpha) / 400)
        assert alpha / 2 < rate < alpha + 3 * error


def test_one_question_is_students_t() -> None:
    for seed in range(5):
        differences = noise(seed, 8, 1) + 0.01
        observed, largest = rotated(differences).statistics(np.array([0]))
        expected = stats.ttest_1samp(differences[:, 0], 0)
        assert observed[0] == pytest.approx(expected.statistic, rel=1e-4)
        assert 2 * share_above(np.abs(observed), largest)[0] == pytest.approx(expected.pvalue, abs=0.03)


def test_beyond_all_rotations_the_tail_is_students() -> None:
    differences = noise(1, 10, 1) + 1.0
    found = judged(differences, level=1e-6)
    assert found.adjusted[0] == pytest.approx(stats.ttest_1samp(differences[:, 0], 0).pvalue, rel=1e-3)
    assert found.direction[0] == 1


def test_what_is_clear_leaves_the_family_and_the_rest_is_judged_anew() -> None:
    differences = noise(3, 10, 20, shared=0.0)
    differences[:, :2] += 0.2
    found = judged(differences)
    assert found.direction.tolist() == [1, 1] + [0] * 18
    whole, largest = rotated(differences).statistics(np.arange(20))
    assert (found.adjusted[2:] <= np.minimum(1, 2 * share_above(np.abs(whole[2:]), largest)) + 1e-9).all()


def test_what_is_not_asked_stays_in_the_family() -> None:
    differences = noise(5, 10, 50, shared=0.0)
    asked = np.arange(50) == 7
    alone, among = judged(differences[:, 7:8]), judged(differences, asked)
    assert among.adjusted[7] > alone.adjusted[0]
    assert (among.adjusted[~asked] == 1).all()


def test_the_spread_is_shared_as_far_as_questions_agree() -> None:
    family = np.arange(200)
    own = noise(1, 10, 200, shared=0.0).std(axis=0, ddof=1) / math.sqrt(10)
    errors, freedom = rotated(noise(1, 10, 200, shared=0.0)).errors(family)
    assert errors.std() < 0.2 * own.std() and errors.mean() == pytest.approx(own.mean(), rel=0.05)
    assert (freedom > 50).all()
    unlike = noise(1, 10, 200, shared=0.0) * np.exp(2 * np.random.default_rng(2).standard_normal(200))
    errors, freedom = rotated(unlike).errors(family)
    own = unlike.std(axis=0, ddof=1) / math.sqrt(10)
    assert np.corrcoef(np.log(errors), np.log(own))[0, 1] > 0.98 and (freedom < 12).all()
    # questions of another kind have another spread
    both = np.concatenate([noise(1, 10, 100, shared=0.0), 10 * noise(2, 10, 100, shared=0.0)], axis=1)
    errors, _ = rotated(both, [0] * 100 + [1] * 100).errors(family)
    assert errors[100:].mean() / errors[:100].mean() == pytest.approx(10, rel=0.1)


def test_what_is_tested_is_measured_by_the_shared_spread() -> None:
    differences, family = noise(1, 10, 200, shared=0.0), np.arange(200)
    found = rotated(differences)
    errors, _ = found.errors(family)
    observed, largest = found.statistics(family)
    assert observed == pytest.approx(differences.mean(axis=0) / errors, rel=1e-3)
    # a spread of its own for each would make the largest of 200 chance statistics half as large again
    own = differences.mean(axis=0) / (differences.std(axis=0, ddof=1) / math.sqrt(10))
    assert np.abs(observed).max() < np.abs(own).max() and np.median(largest) < 3.5


def test_a_question_alone_keeps_its_own_spread() -> None:
    errors, freedom = rotated(noise(1, 10, 1)).errors(np.array([0]))
    assert errors[0] == pytest.approx(noise(1, 10, 1).std(ddof=1) / math.sqrt(10), rel=1e-4) and freedom[0] == 9


def test_no_spread_at_all_is_the_floor() -> None:
    (observed,), _ = rotated(np.full((2, 1), 0.05), floor=0.02).statistics(np.array([0]))
    assert observed == pytest.approx(0.05 / (0.02 / math.sqrt(2)), rel=1e-4)
    (observed,), _ = rotated(np.zeros((5, 1))).statistics(np.array([0]))
    assert observed == 0


def test_a_question_of_one_pair_takes_its_spread_from_the_others() -> None:
    differences = noise(8, 9, 5)
    differences[1:, 0] = np.nan
    observed, largest = rotated(differences).statistics(np.arange(5))
    assert np.isfinite(observed).all() and np.isfinite(largest).all()
    assert not np.isnan(rotated(differences[:1, :1]).statistics(np.array([0]))[0]).any()


def test_no_question() -> None:
    observed, largest = rotated(noise(1, 5, 3)).statistics(np.array([], dtype=np.intp))
    assert not observed.size and np.isneginf(largest).all()

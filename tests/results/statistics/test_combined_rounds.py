"""Rounds combined: what they spend, what a family keeps of the rate, and what nothing of it is lost on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from omb_py.results.statistics.combined_rounds import MOST_ROUNDS, SPENDING, boundaries, can_show, combine
from omb_py.results.statistics.sign_flips import Flips


def flips(differences: np.ndarray) -> Flips:
    questions = differences.shape[1]
    return Flips(differences, np.zeros(questions, dtype=np.intp), np.zeros(questions))


def all_of(count: int) -> np.ndarray:
    return np.ones(count, dtype=bool)


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_rounds_spend_their_shares(rounds: int, alpha: float) -> None:
    assert sum(SPENDING[rounds - 1]) == pytest.approx(1)
    scores = np.maximum(np.random.default_rng(1).standard_normal((400_000, rounds)), 0).cumsum(axis=1)
    scores /= np.sqrt(np.arange(1, rounds + 1))
    bounds = boundaries(alpha, rounds)
    for number, spent in enumerate(np.cumsum(SPENDING[rounds - 1]), start=1):
        reached = (scores[:, :number] >= bounds[:number]).any(axis=1).mean()
        assert reached == pytest.approx(spent * alpha / 2, rel=0.1)
    assert bounds[0] == pytest.approx(stats.norm.isf(SPENDING[rounds - 1][0] * alpha / 2), abs=1e-6)


def test_rounds_beyond_what_is_declared() -> None:
    for rounds in (0, MOST_ROUNDS + 1):
        with pytest.raises(ValueError, match="rounds are 1 to 3"):
            boundaries(0.01, rounds)


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_rate_is_exact_over_all_orders_whatever_was_asked_again(rounds: int) -> None:
    rng = np.random.default_rng(3)
    pairs, questions, alpha = 5, 3, 0.25
    first, second = rng.standard_t(3, (2, pairs, questions))
    alarms = trials = 0
    for signs in itertools.product((1, -1), repeat=pairs):
        one = flips(first * np.array(signs)[:, None])
        so_far = combine([one], [all_of(questions)], alpha, rounds)
        if rounds == 1:
            alarms, trials = alarms + bool(so_far.direction.any()), trials + 1
            continue
        # the question that looks most like a change is measured again, and the decided ones are too
        again = (so_far.adjusted <= np.sort(so_far.adjusted)[1]) | (so_far.direction != 0)
        for more in itertools.product((1, -1), repeat=pairs):
            two = flips(np.where(again, second * np.array(more)[:, None], np.nan))
            found = combine([one, two], [all_of(questions), again], alpha, rounds)
            alarms, trials = alarms + bool(found.direction.any()), trials + 1
    assert 0 < alarms / trials <= alpha


def test_a_family_of_changed_and_unchanged_questions() -> None:
    rng = np.random.default_rng(5)
    differences = 0.02 * rng.standard_normal((12, 40))
    differences[:, :30] += 0.06
    differences[:, 30:33] -= 0.06
    found = combine([flips(differences)], [all_of(40)], 0.01, 1)
    assert found.direction.tolist() == [1] * 30 + [-1] * 3 + [0] * 7
    assert ((found.adjusted <= found.alpha) == (found.direction != 0)).all()


def test_nothing_of_the_first_round_is_lost() -> None:
    rng = np.random.default_rng(8)
    rounds = [0.02 * rng.standard_normal((10, 20)) for _ in range(2)]
    for differences in rounds:
        differences[:, 0] += 0.022
    one, two = (flips(differences) for differences in rounds)
    again = np.arange(20) == 0
    assert not combine([one], [all_of(20)], 0.01, 3).direction.any()
    assert not combine([flips(rounds[1][:, :1])], [all_of(1)], 0.01, 3).direction.any()
    both = combine([one, two], [all_of(20), again], 0.01, 3)
    assert both.direction[0] == 1 and not both.direction[1:].any()
    assert both.rounds.tolist() == [2] + [1] * 19


def test_rounds_that_contradict_each_other_show_nothing() -> None:
    rng = np.random.default_rng(2)
    first = flips(0.005 * rng.standard_normal((8, 1)) + 0.03)
    second = flips(0.005 * rng.standard_normal((8, 1)) - 0.03)
    assert not combine([first, second], [all_of(1)] * 2, 0.01, 3).direction.any()


def test_a_change_needs_enough_pairs() -> None:
    assert not can_show(7, 0.01, 1) and can_show(8, 0.01, 1)
    assert not can_show(4, 0.01, 3) and can_show(5, 0.01, 3)
    assert can_show(10, 0.01, 3, done=0) and not can_show(4, 0.01, 3, done=2)
    equal = [flips(np.full((5, 1), 0.1))] * 3
    shown = [combine(equal[:k], [all_of(1)] * k, 0.01, 3).direction[0] for k in (1, 2, 3)]
    assert shown == [0, 0, 1]

"""PASS, FAIL, MARGINAL: what always holds, and how often it is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from omb_py.results.checks.guidelines import spent
from omb_py.results.statistics.sequential import AcceptRule, decide, settled, worst
from omb_py.results.statistics.t_test import Estimate, paired

LOGS = st.lists(st.floats(-5, 5), min_size=1, max_size=9)
LIMITS = st.floats(-6, 6)
ORDER = {"PASS": 0, "MARGINAL": 1, "FAIL": 2}


def of(logs: list[float]) -> Estimate:
    return paired([0.0] * len(logs), logs)


@given(LOGS, LIMITS, st.integers(1, 50))
def test_a_word_says_where_the_limits_are(logs: list[float], limit: float, questions: int) -> None:
    found = decide(of(logs), limit, AcceptRule(), questions)
    assert found.optimistic <= found.pessimistic
    assert (found.word == "PASS") == (found.pessimistic <= limit)
    assert (found.word == "FAIL") == (found.optimistic > limit)


@given(LOGS, LIMITS, LIMITS)
def test_a_laxer_bound_is_never_worse(logs: list[float], one: float, other: float) -> None:
    strict, lax = sorted((one, other))
    words = [decide(of(logs), limit, AcceptRule()).word for limit in (lax, strict)]
    assert ORDER[words[0]] <= ORDER[words[1]]


@given(LOGS, LIMITS, st.randoms())
def test_the_order_of_launches_is_nothing(logs: list[float], limit: float, random: object) -> None:
    mixed = list(logs)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    one, other = (decide(of(values), limit, AcceptRule()) for values in (logs, mixed))
    assert one.pessimistic == pytest.approx(other.pessimistic, abs=1e-9)


@given(LOGS, LIMITS, st.integers(2, 50))
def test_more_questions_make_a_fail_rarer_and_a_pass_no_easier(logs: list[float], limit: float, many: int) -> None:
    alone, among = (decide(of(logs), limit, AcceptRule(), questions) for questions in (1, many))
    assert among.pessimistic == alone.pessimistic and among.optimistic <= alone.optimistic


def test_one_launch_decides_nothing() -> None:
    assert decide(of([-100.0]), 0.0, AcceptRule()).word == "MARGINAL"
    assert decide(of([100.0]), 0.0, AcceptRule()).word == "MARGINAL"


def test_never_the_best_of_several() -> None:
    """One good launch among bad ones saves nothing."""
    bad = [math.log(12.0)] * 8
    assert decide(of(bad), math.log(10.0), AcceptRule()).word == "FAIL"
    assert decide(of([*bad, math.log(5.0)]), math.log(10.0), AcceptRule()).word != "PASS"


def test_rounds_share_the_error() -> None:
    assert AcceptRule(3, 9).rounds == 3 and AcceptRule(3, 10).rounds == 4 and AcceptRule(1, 1).rounds == 1
    assert AcceptRule(3, 9, 0.97).spent == pytest.approx(0.01)


@given(st.floats(1e-4, 0.5), st.integers(1, 5))
def test_what_is_spent_is_what_the_page_says(alpha: float, rounds: int) -> None:
    """docs/statistics.md: the same numbers to the last digit."""
    fresh = (alpha,) if rounds == 1 else (0.0, *[alpha / (rounds - 1)] * (rounds - 1))
    for number in range(1, rounds + 1):
        assert spent(alpha, (number, rounds)) == (fresh[number - 1], alpha / rounds)
    assert AcceptRule(2, 2 * rounds, 1 - alpha).spent == (1 - (1 - alpha)) / rounds


@pytest.mark.slow
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=9), LIMITS)
def test_limits_and_p_values_of_scipy_say_the_same(logs: list[float], limit: float) -> None:
    rule, estimate = AcceptRule(), of(logs)
    assume(estimate.error > 1e-3)  # rounding
    decision = decide(estimate, limit, rule)
    above, below = (stats.ttest_1samp(logs, limit, alternative=side).pvalue for side in ("greater", "less"))
    assert above > rule.spent * (1 + 1e-6) or decision.word == "FAIL"
    assert below > rule.spent * (1 + 1e-6) or decision.word == "PASS"
    assert decision.word != "MARGINAL" or min(above, below) >= rule.spent * (1 - 1e-6)


def test_worst_and_settled() -> None:
    assert worst(["PASS", "ERROR", "FAIL"]) == "FAIL" and worst(["PASS", "PASS"]) == "PASS"
    assert settled("MARGINAL", AcceptRule(undecided="fail")) == "FAIL"
    assert settled("MARGINAL", AcceptRule(undecided="pass")) == "PASS"
    assert settled("MARGINAL", AcceptRule()) == "MARGINAL" and settled("ERROR", AcceptRule(undecided="pass")) == "ERROR"


def said(values: np.ndarray, rule: AcceptRule, limit: float, questions: int = 1) -> str:
    """The word of a criterion whose launches come round after round."""
    for number in range(1, rule.rounds + 1):
        word = decide(of(list(values[: number * rule.launches])), limit, rule, questions).word
        if word != "MARGINAL":
            return word
    return "MARGINAL"


def test_how_often_it_is_wrong_and_how_often_it_finds() -> None:
    """A machine right at its bound passes, or fails, in at most 5 % of cases; one that is well apart is told."""
    draw, rule, limit = np.random.default_rng(7), AcceptRule(3, 9), 0.0
    logs = draw.normal(0.0, 0.02, (1000, 9))
    at_the_bound = [said(one, rule, limit) for one in logs]
    assert at_the_bound.count("PASS") <= 0.05 * 1000 and at_the_bound.count("FAIL") <= 0.05 * 1000
    assert [said(one - math.log(1.1), rule, limit) for one in logs[:300]].count("PASS") >= 0.95 * 300
    assert [said(one + math.log(1.1), rule, limit, 20) for one in logs[:300]].count("FAIL") >= 0.95 * 300


def test_a_good_machine_with_many_criteria() -> None:
    """All of 20 right at their bounds: any FAIL in 5 % of reports, or three deviations more."""
    draw, rule = np.random.default_rng(8), AcceptRule(3, 9)
    reports = [[said(one, rule, 0.0, 20) for one in draw.normal(0.0, 0.02, (20, 9))] for _ in range(150)]
    assert sum("FAIL" in words for words in reports) <= 0.05 * 150 + 3 * math.sqrt(150 * 0.05 * 0.95)

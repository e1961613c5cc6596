from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omb_py.results.compare.judge import Judged, Launched, Round, Rules, judge

RNG = np.random.default_rng(4)


def measured(ratio: float = 1.0, tail: float = 1.0, n: int = 10, spread: float = 0.01, p99: bool = True) -> Round:
    """Launches whose logs have exactly this mean difference and some spread."""
    noise = spread * (np.arange(n) - (n - 1) / 2) / max(1, n - 1)
    base, new = [], []
    for k in range(n):
        a, b = 10.0 * math.exp(noise[k]), 10.0 * ratio * math.exp(-noise[k])
        base.append(Launched(a, 1.1 * a, 2 * a if p99 else None))
        new.append(Launched(b, 1.1 * b * tail, 2 * b * tail if p99 else None))
    return Round(tuple(base), tuple(new), paired=True)


def one(rounds: list[Round], rules: Rules | None = None) -> Judged:
    return judge([rounds], rules or Rules())[0]


def test_a_change_of_the_median() -> None:
    found = one([measured(1.1)])
    answer = found.answers["median"]
    assert found.verdict == "SLOWER" and found.alarm
    assert answer.ratio == pytest.approx(1.1)
    assert answer.low < 1.1 < answer.high and answer.low > 1
    assert (answer.base_us, answer.new_us) == (pytest.approx(10), pytest.approx(11))
    assert answer.launches == (10, 10)
    assert one([measured(1 / 1.1)]).verdict == "FASTER"


def test_a_change_of_the_tail_alone() -> None:
    for p99, statistic in ((True, "p99"), (False, "mean")):
        found = one([measured(1.0, tail=1.27, p99=p99)])
        assert found.verdict == "SAME"
        assert found.answers["tail"].verdict == "SLOWER"
        assert found.answers["tail"].statistic == statistic
        assert found.alarm


def test_one_launch_without_p99_makes_the_tail_a_mean() -> None:
    full = measured()
    short = replace(full, new=(replace(full.new[0], p99_us=None), *full.new[1:]))
    assert one([short]).answers["tail"].statistic == "mean"


def test_certain_but_small_is_the_same() -> None:
    found = one([measured(1.02, spread=0.001)])
    assert found.answers["median"].p < 1e-6
    assert found.verdict == "SAME" and not found.alarm


def test_large_but_uncertain_is_unclear_with_the_launches_needed() -> None:
    answer = one([measured(1.1, spread=1.0)]).answers["median"]
    assert answer.verdict == "UNCLEAR"
    assert answer.detectable > 1.1
    assert answer.needed is not None and answer.needed > 10


def test_one_launch_is_unclear() -> None:
    answer = one([measured(2.0, n=1)]).answers["median"]
    assert answer.verdict == "UNCLEAR"
    assert answer.detectable == math.inf and answer.needed is None


def test_a_family_needs_more_evidence_than_one_cell() -> None:
    doubtful = measured(1.05, spread=0.05)
    assert one([doubtful]).verdict == "SLOWER"
    among = judge([[doubtful], *[[measured()]] * 200], Rules())
    assert among[0].verdict == "UNCLEAR"
    assert among[0].answers["median"].adjusted == pytest.approx(402 * among[0].answers["median"].p)


def test_the_first_of_several_rounds_only_flags() -> None:
    rules = Rules(rounds=3)
    found = one([measured(1.1)], rules)
    assert found.verdict == "UNCLEAR" and found.flagged
    assert one([measured()], rules).flagged is False


def test_fresh_launches_decide() -> None:
    rules = Rules(rounds=3)
    assert one([measured(1.1), measured(1.1)], rules).verdict == "SLOWER"
    taken_back = one([measured(1.1), measured(1.0)], rules)
    assert taken_back.verdict == "SAME" and not taken_back.flagged
    assert taken_back.answers["median"].round == 2
    third = one([measured(1.1), measured(1.1, spread=0.15), measured(1.1)], rules)
    assert third.verdict == "SLOWER" and third.answers["median"].round == 3


def test_after_the_last_round_nothing_is_flagged() -> None:
    doubtful = measured(1.1, spread=0.15)
    for rounds in (1, 2, 3):
        found = one([doubtful] * rounds, Rules(rounds=rounds))
        assert found.verdict == "UNCLEAR" and not found.flagged, rounds


def test_only_the_flagged_question_is_asked_again() -> None:
    # the second round's tail differs too, but nobody asked: it would be one more chance of a false alarm
    found = one([measured(1.1), measured(1.1, tail=2.0)], Rules(rounds=2))
    assert found.answers["median"].round == 2
    # the tail moved with the median and was flagged; here it did not
    found = one([measured(1.1, tail=1 / 1.1), measured(1.1, tail=2.0)], Rules(rounds=2))
    assert found.answers["tail"].round == 1 and found.answers["tail"].verdict == "SAME"


def test_zero_spread_needs_fresh_launches_too() -> None:
    exact = measured(1.2, spread=0.0)
    assert one([exact], Rules(rounds=2)).flagged
    assert one([exact, exact], Rules(rounds=2)).verdict == "SLOWER"


def test_a_cell_without_launches_has_no_answer() -> None:
    assert judge([[], [measured(1.1)]], Rules())[0].answers == {}


@settings(max_examples=40)
@given(st.floats(0.5, 2.0), st.floats(0.0, 0.5), st.integers(2, 12), st.integers(1, 3))
def test_exchanging_the_sides_exchanges_slower_and_faster(ratio: float, spread: float, n: int, rounds: int) -> None:
    some = measured(ratio, n=n, spread=spread)
    turned = Round(some.new, some.base, paired=True)
    rules = Rules(rounds=rounds)
    opposite = {"SLOWER": "FASTER", "FASTER": "SLOWER"}
    for question in ("median", "tail"):
        there = one([some] * rounds, rules).answers[question]
        back = one([turned] * rounds, rules).answers[question]
        near = abs(abs(math.log(there.ratio)) - rules.tolerance(question)) < 1e-9
        assert near or back.verdict == opposite.get(there.verdict, there.verdict)
        assert back.ratio == pytest.approx(1 / there.ratio)

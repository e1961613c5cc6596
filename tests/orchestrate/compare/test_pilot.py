"""Launches that the first pairs of a comparison ask for."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.orchestrate.compare.pilot import USUAL, Pilot, pilot_of
from omb_py.results.compare.judge import CompareRules, Launched
from omb_py.results.statistics.t_test import MOST_NEEDED

RULES = CompareRules(rounds=3)


def launched(*times: float) -> list[Launched]:
    return [Launched(time, time) for time in times]


def test_the_spread_is_that_of_pairs_over_the_cells() -> None:
    noise = random.Random(1)
    base, new = ([launched(*(math.exp(noise.gauss(0, 0.1)) for _ in range(3))) for _ in range(2000)] for _ in range(2))
    pilot = pilot_of(base, new, 2.0)
    assert pilot is not None
    assert pilot.spread == pytest.approx(0.1 * math.sqrt(2), rel=0.05)
    assert (pilot.cells, pilot.pair_s) == (2000, 2.0)


def test_cells_without_two_pairs_say_nothing() -> None:
    assert pilot_of([launched(1.0)], [launched(1.0)], 1.0) is None
    assert pilot_of([[], launched(1, 2, 3)], [[], launched(1, 2, 3)], 1.0) == Pilot(0.0, 1, 1.0)


def test_a_mean_stands_for_a_median_that_is_not_known() -> None:
    means = [Launched(None, time) for time in (1.0, 2.0, 4.0)]
    pilot = pilot_of([means], [launched(1.0, 1.0, 1.0)], 1.0)
    assert pilot is not None and pilot.spread > 0.5


@given(st.floats(0.001, 0.5), st.integers(1, 200))
def test_smaller_changes_and_more_cells_take_more(spread: float, cells: int) -> None:
    pilot = Pilot(spread, cells, 1.0)
    small, large = (pilot.launches(change, RULES) or MOST_NEEDED + 1 for change in (0.03, 0.10))
    assert small >= large >= 6
    assert (Pilot(2 * spread, cells, 1.0).launches(0.03, RULES) or MOST_NEEDED + 1) >= small


@given(st.floats(0.0, 2.0), st.floats(0.01, 100.0), st.floats(10.0, 1e5), st.integers(1, 100))
def test_a_plan_fits_its_time(spread: float, pair_s: float, budget_s: float, cells: int) -> None:
    pilot = Pilot(spread, cells, pair_s)
    if budget_s < 6 * pair_s:
        return
    rules, launches = pilot.within(budget_s, RULES)
    assert rules.rounds * launches * pair_s <= budget_s * (1 + 1e-9)
    assert rules == replace(RULES, rounds=rules.rounds)


def test_a_quiet_machine_does_not_use_up_the_time() -> None:
    assert Pilot(0.001, 1, 1.0).within(3600.0, RULES) == (RULES, USUAL)
    rules, launches = Pilot(0.1, 1, 1.0).within(3600.0, RULES)
    assert USUAL < launches < 1200 and rules.rounds == 3
    assert Pilot(1.0, 1, 1.0).within(3600.0, RULES) == (RULES, 1200)


def test_little_time_takes_rounds_first() -> None:
    pilot = Pilot(0.1, 1, 1.0)
    assert [pilot.within(seconds, RULES)[0].rounds for seconds in (6.0, 60.0)] == [3, 3]
    strict = replace(RULES, alpha=1e-5)
    assert pilot.within(9.0, strict)[0].rounds == 1


def test_the_sentence_says_spread_launches_time_and_what_follows() -> None:
    text = Pilot(0.12 * math.sqrt(2), 1, 2.0).sentence(RULES, 10, chosen=False)
    assert text.startswith("launches here differ by 12 %: a change of 10 % takes about ")
    assert "one of 3 % about " not in text and ", one of 3 % takes about " in text
    assert text.endswith("; going on with 10, up to 3 rounds (60 s at most); --budget TIME chooses") or "1 min" in text
    once = Pilot(5.0, 1, 2.0).sentence(CompareRules(), 10, chosen=True)
    assert once.endswith("one of 3 % cannot be shown; going on with 10 (20 s at most)")

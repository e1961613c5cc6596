from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omb_py.results.compare.interleaved import QuestionOutcome
from omb_py.results.compare.judge import Answer, CompareRound, CompareRules, JudgedCell, Launched, _detectable, judge
from omb_py.results.compare.match import from_row
from omb_py.results.statistics.summary import summarise
from omb_py.results.statistics.t_test import Estimate
from tests.support.machines.mpi import ROOT


def measured(
    ratio: float = 1.0, tail: float = 1.0, n: int = 10, spread: float = 0.01, p99: bool = True
) -> CompareRound:
    """Launches whose logs have exactly this mean difference and some spread."""
    noise = spread * (np.arange(n) - (n - 1) / 2) / max(1, n - 1)
    base, new = [], []
    for k in range(n):
        a, b = 10.0 * math.exp(noise[k]), 10.0 * ratio * math.exp(-noise[k])
        base.append(Launched(a, 1.1 * a, 2 * a if p99 else None))
        new.append(Launched(b, 1.1 * b * tail, 2 * b * tail if p99 else None))
    return CompareRound(tuple(base), tuple(new), paired=True)


def one(rounds: list[CompareRound], rules: CompareRules | None = None) -> JudgedCell:
    return judge([rounds], rules or CompareRules())[0]


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


@pytest.mark.parametrize("counts", [(1000, 1000), (100, 1000), (1000, 338)])
def test_a_tail_of_more_samples_is_no_change(counts: tuple[int, int]) -> None:
    """A against A: one call in a hundred takes ten times as long. Their p99 grows with the count, by 40 % here."""
    rng = np.random.default_rng(17)

    def launch(samples: int) -> Launched:
        calls = np.exp(0.02 * rng.standard_normal(samples)) * np.where(rng.random(samples) < 0.01, 10.0, 1.0)
        row = {"source": "omb-py", "unit": "us", "iterations": samples, **summarise(calls)}
        return from_row(row) or pytest.fail("no time")

    sides = [tuple(launch(samples) for _ in range(20)) for samples in counts]
    answer = one([CompareRound(sides[0], sides[1], paired=True)], CompareRules(tail_delta=1e-9)).answers["tail"]
    assert answer.verdict in ("SAME", "UNCLEAR")
    assert answer.statistic == ("p99" if counts[0] == counts[1] else "mean")


def test_certain_but_small_is_the_same() -> None:
    found = one([measured(1.02, spread=0.001)])
    assert found.answers["median"].adjusted < 0.001, "certain"
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


def test_three_launches_find_no_change_of_any_size() -> None:
    assert one([measured(n=3)]).answers["median"].detectable == math.inf


@pytest.mark.parametrize(
    ("pairs", "cells", "delta"),
    [(10, 1, 0.2), *(pytest.param(*few, 0.001, marks=pytest.mark.slow) for few in ((6, 1), (8, 10), (20, 1)))],
)
def test_a_change_that_is_found_four_times_in_five_is_found_so_often(pairs: int, cells: int, delta: float) -> None:
    """Also where the tolerance is far above the noise: under it nothing is told, however sure."""
    rng, rules = np.random.default_rng(3), CompareRules(delta=delta)

    def answer(ratio: float) -> Answer:
        """Of the first cell, the only one that changed."""
        logs = 0.02 * rng.standard_normal((cells, 2, pairs))
        logs[0, 1] += math.log(ratio)
        sides = [[tuple(Launched(float(us), float(us)) for us in side) for side in cell] for cell in np.exp(logs)]
        return judge([[CompareRound(base, new, paired=True)] for base, new in sides], rules)[0].answers["median"]

    ratio = float(np.median([answer(1.0).detectable for _ in range(40)]))
    assert ratio > 1 + delta
    found = np.mean([answer(ratio).verdict == "SLOWER" for _ in range(100)])
    assert found > 0.7 and (found < 0.95 or pairs == 6)  # what six pairs find is told with caution


def test_the_changes_that_are_found_are_those_of_the_documentation() -> None:
    page = (ROOT / "docs/statistics.md").read_text().partition("**Found from**")[2].partition("###")[0]
    table = re.findall(r"^\| ([\d.]+) % \|(.+)\|$", page, re.M)
    for spread, cells in table:
        for pairs, said in zip((8, 10, 20, 30), cells.split("|"), strict=True):
            estimate = Estimate(0.0, float(spread) / 100 * math.sqrt(2 / pairs), pairs - 1.0, pairs, pairs, paired=True)
            outcome = QuestionOutcome(estimate, 0, (0.0, 0.0), 1.0, 0.01, 0.01, 1)
            found = 100 * (_detectable(outcome, "median", CompareRules()) - 1)
            assert found == pytest.approx(float(said.strip(" %")), rel=0.05)
    assert len(table) == 4


@pytest.mark.slow
def test_a_family_needs_more_evidence_than_one_cell() -> None:
    doubtful = measured(1.05, spread=0.05)
    assert one([doubtful]).verdict == "SLOWER"
    among = judge([[doubtful], *[[noisy(seed, spread=0.05)] for seed in range(200)]], CompareRules())
    assert among[0].verdict == "UNCLEAR"
    assert among[0].answers["median"].adjusted > one([doubtful]).answers["median"].adjusted
    assert not any(judged.alarm for judged in among[1:])


def noisy(seed: int, ratio: float = 1.0, n: int = 10, spread: float = 0.02, night: float = 0.0) -> CompareRound:
    """Launches of both sides with independent noise, and a night of their own where they are not paired."""
    rng = np.random.default_rng(seed)
    base, new = 10 * np.exp(spread * rng.standard_normal((2, n)))
    new = new * ratio
    return CompareRound(
        tuple(Launched(x, x, 2 * x) for x in base.tolist()),
        tuple(Launched(x, x, 2 * x) for x in new.tolist()),
        paired=not night,
        nights=((1.0,) * n, (night,) * n) if night else ((), ()),
    )


def test_what_one_round_shows_needs_no_other() -> None:
    found = one([measured(1.1)], CompareRules(rounds=3))
    assert found.verdict == "SLOWER" and not found.flagged
    assert not one([measured()], CompareRules(rounds=3)).flagged
    doubtful = one([measured(1.1, spread=0.18)], CompareRules(rounds=3))
    assert doubtful.verdict == "UNCLEAR" and doubtful.flagged


def test_two_rounds_show_what_neither_shows_alone() -> None:
    # the launches of an earlier round used to be discarded: only the last round was judged
    rules = CompareRules(rounds=3)
    first, second = noisy(27, 1.035), noisy(127, 1.035)
    alone = [one([measured_], rules) for measured_ in (first, second)]
    assert [judged.verdict for judged in alone] == ["UNCLEAR", "UNCLEAR"]
    answer = one([first, second], rules).answers["median"]
    assert answer.verdict == "SLOWER" and answer.round == 2 and answer.launches == (20, 20)
    launches = [x.median_us or 0 for measured_ in (first, second) for x in measured_.new]
    assert answer.new_us == pytest.approx(np.exp(np.median(np.log(launches)))), "over the launches of both rounds"
    assert answer.ratio == pytest.approx(answer.new_us / answer.base_us)


def test_both_questions_of_a_row_are_of_the_same_rounds() -> None:
    # the tail was flagged: the median of the row used to be that of round 1
    found = one([measured(1.0, tail=1.3, spread=0.4), measured(1.0, tail=1.3)], CompareRules(rounds=3))
    assert [answer.round for answer in found.answers.values()] == [2, 2]
    assert {answer.launches for answer in found.answers.values()} == {(20, 20)}
    mixed = one([measured(p99=True), measured(p99=False)], CompareRules(rounds=2)).answers["tail"]
    assert mixed.statistic == "mean", "one statistic for all rounds"


def test_after_the_last_round_nothing_is_flagged() -> None:
    doubtful = measured(1.1, spread=0.4)
    for rounds in (1, 2, 3):
        found = one([doubtful, measured(1.0, spread=0.4), doubtful][:rounds], CompareRules(rounds=rounds))
        assert found.verdict == "UNCLEAR" and not found.flagged, rounds


def test_too_few_pairs_are_unclear_however_large_the_change() -> None:
    # medians in steps of 5 %: two equal pairs have no spread, and used to be certain
    for n, verdict in ((2, "UNCLEAR"), (5, "UNCLEAR"), (6, "SLOWER")):
        answer = one([measured(1.05, n=n, spread=0.0)]).answers["median"]
        assert answer.verdict == verdict, n
        assert answer.needed == (6 if verdict == "UNCLEAR" else None), n


def test_whatever_is_unclear_is_measured_again_while_rounds_are_left() -> None:
    unclear = [measured(1.0, n=5, spread=0.2), noisy(1, 1.01, spread=0.1)]
    assert all(one([each], CompareRules(rounds=2)).flagged for each in unclear)
    assert not any(one([each, each], CompareRules(rounds=2)).flagged for each in unclear), "the last round is over"
    assert not one([measured(1.2, n=20)], CompareRules(rounds=2)).answers["median"].flagged


def test_the_clock_s_steps_are_a_spread() -> None:
    # both sides have the same two values: they used to have no spread, and to be the same for certain
    launches = tuple(Launched(x, x) for x in (10.0, 10.5))
    answer = one([CompareRound(launches, launches, paired=True)]).answers["median"]
    assert answer.verdict == "UNCLEAR" and answer.adjusted == 1
    assert answer.low < 0.95 and answer.high > 1.05


@pytest.mark.slow
def test_the_interval_goes_with_the_verdict() -> None:
    for seed in range(60):
        ratio = 1 + 0.002 * seed
        answer = one([noisy(seed, ratio)]).answers["median"]
        assert answer.low <= answer.ratio <= answer.high
        if answer.verdict == "SLOWER":
            assert answer.low > 1
        if answer.verdict == "SAME":
            assert answer.low > 1 / 1.03 and answer.high < 1.03


def test_a_few_launches_of_another_kind_hide_no_change() -> None:
    rng = np.random.default_rng(4)
    base, new = rng.normal(0, 0.02, 20), rng.normal(math.log(0.9), 0.02, 20)
    base[[3, 11]] += math.log(2)
    new[[5, 6, 17]] += math.log(2)
    sides = [tuple(Launched(math.exp(log), math.exp(log)) for log in side) for side in (base, new)]
    answer = one([CompareRound(sides[0], sides[1], paired=True)]).answers["median"]
    assert answer.verdict == "FASTER" and answer.ratio == pytest.approx(0.9, rel=0.02)
    assert answer.kinds is not None and (answer.kinds.base, answer.kinds.new) == ((2, 20), (3, 20))


def test_a_mean_that_slow_launches_raise_is_not_the_same() -> None:
    rng = np.random.default_rng(5)
    base, new = rng.normal(0, 0.005, 20), rng.normal(0, 0.005, 20)
    new[[2, 7, 13]] += math.log(2)
    sides = [tuple(Launched(math.exp(log), math.exp(log)) for log in side) for side in (base, new)]
    assert one([CompareRound(sides[0], sides[1], paired=True)]).verdict == "UNCLEAR"
    assert one([CompareRound(sides[0], sides[0], paired=True)]).verdict == "SAME"


class TestNotInterleaved:
    """A t test that took launches of other nights as independent called a third of all nights changed."""

    def test_a_few_nights_decide_nothing(self) -> None:
        for night in (1.0, 2.0):  # the same night one after the other, or the next one
            answer = one([noisy(1, 1.2, night=night)]).answers["median"]
            assert answer.verdict == "LIKELY SLOWER" and answer.reason == "not interleaved"
            assert answer.ratio == pytest.approx(1.2, rel=0.05) and 1.2 < answer.high < 1.3
            assert answer.needed is None and answer.detectable == math.inf
        unknown = one([replace(noisy(1, 1.2, night=2.0), nights=((), ()))]).answers["median"]
        assert (unknown.verdict, unknown.reason) == ("LIKELY SLOWER", "not interleaved")

    def nights(self, days: tuple[range, range], effect: float, ratio: float = 1.0) -> CompareRound:
        rng = np.random.default_rng(5)
        of_night = effect * rng.standard_normal(100)
        sides = []
        for side, own in enumerate(days):
            logs = [of_night[day] + 0.005 * rng.standard_normal() for day in own for _ in range(3)]
            values = 10 * np.exp(np.array(logs) + (math.log(ratio) if side else 0))
            sides.append((tuple(Launched(x, x) for x in values.tolist()), tuple(float(d) for d in own for _ in "abc")))
        (base, base_nights), (new, new_nights) = sides
        return CompareRound(base, new, paired=False, nights=(base_nights, new_nights))

    def test_several_nights_of_each_are_compared_by_night(self) -> None:
        apart = (range(8), range(8, 16))
        assert one([self.nights(apart, 0.05)]).verdict == "UNCLEAR", "24 launches a side, but 8 nights"
        answer = one([self.nights(apart, 0.02, 1.3)]).answers["median"]
        assert answer.verdict == "SLOWER" and answer.low > 1 and not answer.paired and answer.reason == ""
        assert answer.launches == (24, 24)

    def test_nights_that_both_have_are_pairs(self) -> None:
        both = (range(8), range(8))
        answer = one([self.nights(both, 0.2, 1.1)]).answers["median"]
        assert answer.verdict == "SLOWER" and answer.paired, "what a night does to both sides falls out"
        assert one([self.nights((range(7), range(7)), 0.2, 1.1)]).verdict == "UNCLEAR"

    def test_interleaved_cells_and_others_share_the_error(self) -> None:
        judged = judge([[measured(1.1)], [self.nights((range(8), range(8, 16)), 0.02, 1.3)]], CompareRules())
        assert [cell.answers["median"].alpha for cell in judged] == [pytest.approx(0.005)] * 2
        assert [cell.verdict for cell in judged] == ["SLOWER", "SLOWER"]


def test_a_cell_without_launches_has_no_answer() -> None:
    assert judge([[], [measured(1.1)]], CompareRules())[0].answers == {}


@pytest.mark.slow
@settings(max_examples=40)
@given(st.floats(0.5, 2.0), st.floats(0.0, 0.5), st.integers(2, 12), st.integers(1, 3))
def test_exchanging_the_sides_exchanges_slower_and_faster(ratio: float, spread: float, n: int, rounds: int) -> None:
    some = measured(ratio, n=n, spread=spread)
    turned = CompareRound(some.new, some.base, paired=True)
    rules = CompareRules(rounds=rounds)
    opposite = {"SLOWER": "FASTER", "FASTER": "SLOWER"}
    for question in ("median", "tail"):
        there = one([some] * rounds, rules).answers[question]
        back = one([turned] * rounds, rules).answers[question]
        near = abs(abs(math.log(there.ratio)) - rules.tolerance(question)) < 1e-9
        assert near or back.verdict == opposite.get(there.verdict, there.verdict)
        assert back.ratio == pytest.approx(1 / there.ratio)


def apart(factor: float, launches: int = 5, spread: float = 0.02, seed: int = 1) -> CompareRound:
    """Launches of two sides that did not take turns, of one night each."""
    noise = random.Random(seed)

    def side(us: float) -> tuple[Launched, ...]:
        return tuple(Launched(None, us * noise.lognormvariate(0, spread)) for _ in range(launches))

    return CompareRound(side(10.0), side(10.0 * factor), paired=False, nights=((0.0,) * launches, (1.0,) * launches))


def test_what_did_not_take_turns_is_likely_at_most() -> None:
    slower, faster, same = judge([[apart(3.1)], [apart(0.5, seed=2)], [apart(1.0, seed=3)]], CompareRules())
    assert (slower.verdict, faster.verdict, same.verdict) == ("LIKELY SLOWER", "LIKELY FASTER", "UNCLEAR")
    assert (slower.answers["median"].beyond, faster.answers["median"].beyond) == (5, 5)
    low, high = slower.answers["median"].low, slower.answers["median"].high
    assert 2.8 < low < 3.1 < high < 3.4
    assert not slower.alarm
    assert {judged.answers["median"].reason for judged in (slower, faster, same)} == {"not interleaved"}


def test_trusted_sides_are_judged_by_their_launches() -> None:
    cells = [[apart(3.1)], [apart(0.5, seed=2)], [apart(1.0, 40, seed=3)]]
    verdicts = [judged.verdict for judged in judge(cells, CompareRules(trust_sides=True))]
    assert verdicts == ["SLOWER", "FASTER", "SAME"]


def test_a_change_below_the_tolerance_is_not_likely() -> None:
    (judged,) = judge([[apart(1.02, 40, 0.001)]], CompareRules())
    assert judged.verdict == "UNCLEAR"


@pytest.mark.slow
def test_likely_seldom_errs_where_nothing_differs() -> None:
    """At most 1 % of reports without a change may have one; of 600 more than 12 have with a chance of 2 %."""
    reports = [[[apart(1.0, 6, 0.1, 3 * number + cell)] for cell in range(3)] for number in range(600)]
    alarms = sum(any(judged.verdict != "UNCLEAR" for judged in judge(cells, CompareRules())) for cells in reports)
    assert alarms <= 12

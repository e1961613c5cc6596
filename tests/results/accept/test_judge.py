"""Verdicts from rows: every source of a bound, and what has no measurement."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.accept.criteria import Case, Range, Source
from omb_py.results.accept.judge import Evidence, close, correlation_of, gains_by_launches, incomparable, judge
from omb_py.results.statistics.dependence import UNKNOWN
from omb_py.results.statistics.sequential import AcceptRule
from tests.support.accepting import add, case, evidence, row

RULE = AcceptRule()
ONES = [1.0] * 8
FOURFOLD = [10.0, 20.0, 40.0, 10.0, 20.0, 40.0, 10.0, 20.0]


def word(made: Case, found: Evidence, questions: int = 1) -> str:
    return judge(made, found, RULE, questions).word


@pytest.mark.parametrize(
    ("medians", "said"),
    [
        ((8.0, 8.1, 7.9, 8.0, 8.1, 7.9, 8.0, 8.1), "PASS"),
        ((12.0, 12.1, 11.9, 12.0, 12.1, 11.9, 12.0, 12.1), "FAIL"),
        ((9.0, 11.0, 10.0, 9.0, 11.0, 10.0, 9.0, 11.0), "MARGINAL"),
        ((8.0,) * 4, "MARGINAL"),
        ((12.0,) * 4, "MARGINAL"),
        ((10.0,) * 8, "PASS"),
        ((1.0, *(12.0,) * 7), "MARGINAL"),
        ((9.0, 9.1, 8.9, 9.2, 9.0, 8.8, 9.1, 18.0), "MARGINAL"),
    ],
)
def test_a_contract(medians: tuple[float, ...], said: str) -> None:
    assert word(case(), evidence(*medians)) == said


def test_launches_that_resemble_the_one_before_decide_later() -> None:
    rising = [9.5 * 1.005**k for k in range(8)]
    made, found = case(), evidence(*rising)
    assert correlation_of([made], found) == 0.95
    assert correlation_of([made, case("baseline")], Evidence()) == UNKNOWN
    assert word(made, found) == "PASS"
    careful = judge(made, found, RULE, 1, correlation=0.9)
    assert careful.word == "MARGINAL" and careful.missing == (
        "about 38 launches would decide: raise the suite's most-launches, 24"
    )
    assert judge(made, evidence(*rising * 4), RULE, 1, correlation=0.9).word == "PASS"


def test_a_bound_that_is_far_is_decided_however_much_launches_resemble_each_other() -> None:
    """2 µs against a bound of 1 ms was MARGINAL, since eight values of one cell cannot show that they know no other."""
    close_by = [2.0, 2.01, 2.05, 2.04, 2.03, 2.06, 2.02, 2.01]
    made = case(ranges={None: Range(high=1000.0)})
    assert judge(made, evidence(*close_by), RULE, 33, correlation=0.9).word == "PASS"
    rising = [13.0 * 1.005**k for k in range(16)]
    before = judge(case(), evidence(*rising[:8]), RULE, 33, correlation=0.95)
    assert judge(case(), evidence(*rising), RULE, 33, before, correlation=0.95).word == "FAIL"
    assert judge(case(), evidence(*[13.0] * 16), RULE, 33, before, correlation=0.95).word == "MARGINAL"
    near = judge(made, evidence(*(490 * us for us in close_by)), RULE, 33, correlation=0.9)
    assert near.word == "MARGINAL"


def test_more_than_a_few_launches_beyond_pass_where_launches_are_independent() -> None:
    """No more than 1 of 16 and 3 of 24 could, since a correlation of 0.5 was always assumed."""
    made, inside = case(), [9.0, 9.1, 10.2, 9.2, 9.0, 9.3, 9.1, 10.1]
    rule = AcceptRule()
    first = judge(made, evidence(*inside), rule, 33)
    second = judge(made, evidence(*inside, *inside[:7], 9.9), rule, 33, first)
    assert (first.word, second.word, second.beyond) == ("MARGINAL", "PASS", 3)
    resembling = judge(made, evidence(*inside, *inside[:7], 9.9), rule, 33, first, correlation=0.5)
    assert resembling.word == "MARGINAL"


def test_most_launches_beyond_fail_among_many_criteria_however_they_are_spread() -> None:
    """A launch that takes twice or half as long hides nothing from a count; from a mean it did."""
    slow = [10.5, 10.6, 10.4, 11.0] * 6
    slow[5], slow[9], slow[20] = 5.0, 21.0, 5.1
    rounds = [judge(case(), evidence(*slow[:8]), RULE, 33)]
    for n in (16, 24):
        rounds.append(judge(case(), evidence(*slow[:n]), RULE, 33, rounds[-1]))
    assert [one.word for one in rounds] == ["MARGINAL", "FAIL", "FAIL"]


def test_a_range_has_two_ends() -> None:
    made = case(ranges={None: Range(9.0, 11.0)})
    assert word(made, evidence(*[10.0] * 8)) == "PASS"
    assert word(made, evidence(*[5.0] * 8)) == "FAIL" and word(made, evidence(*[15.0] * 8)) == "FAIL"


def test_rates_are_better_when_larger() -> None:
    made = case(metric="busbw", ranges={None: Range(low=1000.0)})
    assert word(made, evidence(*ONES, busbw_gbps=1.2)) == "PASS"
    found = judge(made, evidence(*ONES, busbw_gbps=0.8), RULE, 1)
    assert found.word == "FAIL" and found.measured == pytest.approx(800.0) and found.limit == pytest.approx(1000.0)


def test_shares_may_be_nothing() -> None:
    made = case(metric="stolen", ranges={None: Range(high=5.0)})
    found = judge(made, evidence(*ONES, mean_us=1.0, min_us=1.0), RULE, 1)
    assert found.word == "PASS" and found.measured == pytest.approx(0.0)


@pytest.mark.parametrize("source", get_args(Source))
def test_without_a_measurement_it_is_an_error_never_a_pass(source: str) -> None:
    made = case(source, mock_up="reduce + bcast", share=10.0)
    assert word(made, Evidence()) == "ERROR"
    lost = Evidence(missing={"c": "rank 3 on n7 died"})
    assert judge(made, lost, RULE, 1).note == "rank 3 on n7 died"


def test_a_metric_that_rows_lack_is_an_error() -> None:
    found = judge(case(metric="p99"), evidence(1.0, 1.0), RULE, 1)
    assert found.word == "ERROR" and "r-0 has no p99" in found.note


def test_a_tail_is_compared_at_equal_counts_only() -> None:
    """The p99 of 1 000 samples is larger than that of 100 of the same calls; a bound of a contract is absolute."""
    at = {"metric": "p99"}
    found = evidence(*ONES, p99_us=1.96, iterations=100)
    assert word(case(ranges={None: Range(high=2.0)}, **at), found) == "PASS"
    found.baseline = [{**each, "p99_us": 2.74, "iterations": 1000} for each in nights(*ONES)]
    said = judge(case("baseline", share=0.05, **at), found, RULE, 1)
    assert (said.word, said.note) == ("ERROR", "p99 needs equal counts, not 100 and 1000 samples: give iterations = N")
    add(found, ONES, beside=True, p99_us=2.74, iterations=1000)
    assert "p99 needs equal counts" in judge(case("interference", share=0.1, **at), found, RULE, 1).note
    add(found, ONES, beside=True, p99_us=2.74, iterations=1000)
    assert word(case("interference", share=0.1), found) == "PASS", "a median does not depend on the count"
    for each in found.baseline:
        each["iterations"] = 100
    assert word(case("baseline", share=0.05, **at), found) == "PASS"


def nights(*medians: float, launches: int = 3) -> list[dict[str, object]]:
    """Rows of a baseline: a run each night, in each so many launches of this median."""
    return [
        row(median, 10 * night + k, run_id=f"night{night}", started_at=f"2026-11-{night + 1:02}T22:{k:02}:00+00:00")
        for night, median in enumerate(medians)
        for k in range(launches)
    ]


def test_a_baseline() -> None:
    made = case("baseline", share=0.05)
    for medians, said in (((10.1, 10.2, 10.0), "PASS"), ((13.0, 13.1, 12.9), "FAIL")):
        found = evidence(*medians)
        found.baseline, found.baseline_word = nights(10.0, 10.1, 9.9, 10.05, 9.95), "last"
        assert word(made, found) == said
    assert judge(made, found, RULE, 1).note == "baseline last: 15 launches in 5 nights"
    assert judge(made, found, RULE, 1).evidence == "its 5 nights differ by 0.79 %"
    found.baseline = found.baseline[:1]
    assert "one launch" in judge(made, found, RULE, 1).note
    found.baseline = []
    assert "has no such cell" in judge(made, found, RULE, 1).note


def test_one_night_says_nothing_about_the_next_however_many_launches_it_has() -> None:
    """Thirty launches a night that agree to the last digit, and one night that is 8 % slower, as nights are."""
    made, found = case("baseline", share=0.05), evidence(*[10.8] * 30)
    found.baseline = nights(10.0, launches=30)
    said = judge(made, found, RULE, 1)
    assert said.word == "MARGINAL" and "its baseline is one night" in said.missing and not gains_by_launches(said)
    found.baseline = nights(10.0, 10.6, 9.4, launches=30)
    said = judge(made, found, RULE, 1)
    assert said.word == "MARGINAL" and "nights differ too much for one more to decide" in said.missing
    found.baseline = nights(10.0, 10.1, 9.9, launches=30)
    assert judge(made, found, RULE, 1).missing == "a baseline of about 5 nights would decide"


def test_of_a_night_no_more_launches_count_than_were_made_tonight() -> None:
    """The median of thirty launches differs less from night to night than that of the three that are judged."""
    made, found = case("baseline", share=0.05), evidence(10.0, 10.0, 10.0)
    late = [
        row(14.0, 100 + k, run_id=f"night{n}", started_at=f"2026-11-{n + 1:02}T23:{k:02}:00")
        for n in (0, 1, 2)
        for k in range(27)
    ]
    found.baseline = nights(10.0, 10.1, 9.9) + late
    assert judge(made, found, RULE, 1).measured == pytest.approx(1.0, abs=0.01)


def test_a_baseline_measured_otherwise_is_refused_with_what_differs() -> None:
    made, found = case("baseline", share=0.05), evidence(10.0, 10.0)
    found.baseline = [row(10.0, k, comparability_key="other", ranks=4) for k in range(3)]
    said = judge(made, found, RULE, 1)
    assert said.word == "ERROR" and "not comparable: ranks 4 against 2" in said.note
    other = incomparable(made, found)
    assert other is not None and other[2] == ("ranks",)
    found.baseline = [row(10.0, k) for k in range(3)]
    assert incomparable(made, found) is None


def latency(found: Evidence) -> None:
    add(found, [1.0, 1.0], "l8", benchmark="latency", size_bytes=8)
    add(found, [65.536, 65.536], "l64K", benchmark="latency", size_bytes=65536)


def test_a_lower_bound() -> None:
    """One step of 1 us + 1 ns a byte: an allreduce of 8 B on 2 ranks takes 1 us at least."""
    found = evidence(*[4.0] * 8)
    assert "latency was not measured" in judge(case("lower bound", share=0.2), found, RULE, 1).note
    latency(found)
    said = judge(case("lower bound", share=0.2), found, RULE, 1)
    assert said.word == "PASS" and said.measured == pytest.approx(0.25) and said.is_ratio
    assert word(case("lower bound", share=0.3), found) == "FAIL"
    fast = evidence(*[0.5] * 8)
    latency(fast)
    assert "offload" in judge(case("lower bound", share=0.2), fast, RULE, 1).note


def test_a_guideline_is_paired_inside_launches() -> None:
    made = case("guideline", mock_up="reduce + bcast", share=0.1)
    found = evidence(*FOURFOLD, parameters={"side": "left"})
    assert "both allreduce and reduce + bcast" in judge(made, found, RULE, 1).note
    add(found, FOURFOLD, parameters={"side": "right"})
    said = judge(made, found, RULE, 1)
    assert said.word == "PASS" and said.measured == pytest.approx(1.0), "launches differ fourfold, the ratio does not"
    assert [value for _, value in said.values] == pytest.approx(FOURFOLD)
    worse = evidence(*(1.5 * us for us in FOURFOLD), parameters={"side": "left"})
    add(worse, FOURFOLD, parameters={"side": "right"})
    assert word(made, worse) == "FAIL"


def test_interference_is_paired_too() -> None:
    made, found = case("interference", share=0.25), evidence(*FOURFOLD)
    assert "beside another job" in judge(made, found, RULE, 1).note
    add(found, [1.1 * us for us in FOURFOLD], beside=True)
    assert word(made, found) == "PASS"
    found.beside.clear()
    add(found, [2 * us for us in FOURFOLD], beside=True)
    assert word(made, found) == "FAIL"


def test_drift_is_over_the_passes_of_a_launch() -> None:
    made, found = case("drift", share=0.05), Evidence()
    for passed in range(20):
        found.add("c", 0, row(10.0 * 1.01**passed))
    said = judge(made, found, AcceptRule(1, 1), 1)
    assert said.word == "FAIL" and said.measured == pytest.approx(1.01**19)
    assert "too few" in judge(made, evidence(1.0), AcceptRule(1, 1), 1).note


def test_rounds_are_kept_and_the_contract_has_the_last_word() -> None:
    found = evidence(9.0, 11.0, 10.0)
    first = judge(case(), found, RULE, 1)
    for turn, median in enumerate((9.5, 10.5, 9.9), 3):
        found.add("c", turn, row(median, turn))
    second = judge(case(), found, RULE, 1, first)
    assert [one.launches for one in second.rounds] == [3, 6] and second.launches == 6 and gains_by_launches(second)
    ruled = close(second, AcceptRule(undecided="fail"))
    assert ruled.word == "FAIL" and ruled.by_rule and not close(second, RULE).by_rule


def test_a_launch_that_takes_ten_times_as_long_does_not_hide_that_all_are_too_slow() -> None:
    """A plain t limit of these is 9 us: the one slow launch makes the spread."""
    slow = [11.0, 11.1, 10.9, 11.2, 11.0, 10.8, 11.1, 11.0] * 2
    slow[5] = 110.0
    assert judge(case(), evidence(*slow), AcceptRule(16, 16), 33).word == "FAIL"


def test_eight_launches_alike_are_no_fail_among_many_verdicts() -> None:
    """Each of 33 bounds may have all of its launches on one side by chance."""
    assert judge(case(), evidence(*[10.5] * 8), RULE, 1).word == "FAIL"
    said = judge(case(), evidence(*[10.5] * 8), RULE, 33)
    assert said.word == "MARGINAL" and said.missing == "about 11 launches would decide"
    assert judge(case(), evidence(*[10.5] * 16), RULE, 33, said).word == "FAIL"
    assert judge(case(), evidence(*[9.5] * 8), RULE, 33).word == "PASS", "a PASS is not corrected"


def test_half_of_the_launches_slow_is_no_fail_among_many_verdicts() -> None:
    assert word(case(), evidence(*[9.9, 30.0] * 12), questions=33) == "MARGINAL"


def test_a_verdict_says_how_many_launches_are_beyond_the_bound() -> None:
    good = judge(case(), evidence(*[9.0] * 15, 20.0), AcceptRule(16, 16), 1)
    assert good.word == "PASS" and good.beyond == 1 and good.share_at_most == pytest.approx(0.2640, abs=1e-4)
    assert good.evidence == "median within the bound, 95% sure; 1 of 16 launches beyond (at most 26 % are)"
    bad = judge(case(), evidence(*[11.0] * 11, *[9.0] * 5), AcceptRule(16, 16), 1)
    assert bad.word == "MARGINAL" and bad.missing == (
        "about 28 launches would decide: raise the suite's most-launches, 16"
    )
    half = judge(case(), evidence(*[9.0, 11.0] * 4), RULE, 1)
    assert half.missing == "no number of launches decides: half of them are beyond the bound"


def test_a_launch_that_died_is_said() -> None:
    found = evidence(8.0, 8.0)
    found.missing["c"] = "rank 1 died"
    assert "not every launch measured it: rank 1 died" in judge(case(), found, RULE, 1).note


@pytest.mark.slow
@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=9), st.floats(0.01, 1e6))
def test_all_launches_are_shown(medians: list[float], bound: float) -> None:
    said = judge(case(ranges={None: Range(high=bound)}), evidence(*medians), RULE, 1)
    assert [value for _, value in said.values] == pytest.approx(medians)
    assert said.word in ("PASS", "FAIL", "MARGINAL") and len(said.rounds) == 1

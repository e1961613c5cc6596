"""Verdicts from rows: every source of a bound, and what has no measurement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.accept.criteria import SOURCES, Case, Range
from omb_py.results.accept.judge import Evidence, close, incomparable, judge
from omb_py.results.statistics.sequential import Rule
from tests.support.accepting import add, case, evidence, row

RULE = Rule()


def word(made: Case, found: Evidence, questions: int = 1) -> str:
    return judge(made, found, RULE, questions).word


@pytest.mark.parametrize(
    ("medians", "said"),
    [
        ((8.0, 8.1, 7.9), "PASS"),
        ((12.0, 12.1, 11.9), "FAIL"),
        ((9.0, 11.0, 10.0), "MARGINAL"),
        ((8.0,), "MARGINAL"),
        ((10.0, 10.0), "PASS"),
        ((1.0, 12.0, 12.0), "MARGINAL"),
    ],
)
def test_a_contract(medians: tuple[float, ...], said: str) -> None:
    assert word(case(), evidence(*medians)) == said


def test_a_range_has_two_ends() -> None:
    made = case(ranges={None: Range(9.0, 11.0)})
    assert word(made, evidence(10.0, 10.0)) == "PASS"
    assert word(made, evidence(5.0, 5.0)) == "FAIL" and word(made, evidence(15.0, 15.0)) == "FAIL"


def test_rates_are_better_when_larger() -> None:
    made = case(metric="busbw", ranges={None: Range(low=1000.0)})
    assert word(made, evidence(1.0, 1.0, busbw_gbps=1.2)) == "PASS"
    found = judge(made, evidence(1.0, 1.0, busbw_gbps=0.8), RULE, 1)
    assert found.word == "FAIL" and found.measured == pytest.approx(800.0) and found.limit == pytest.approx(1000.0)


def test_shares_may_be_nothing() -> None:
    made = case(metric="stolen", ranges={None: Range(high=5.0)})
    found = judge(made, evidence(1.0, 1.0, mean_us=1.0, min_us=1.0), RULE, 1)
    assert found.word == "PASS" and found.measured == pytest.approx(0.0)


@pytest.mark.parametrize("source", SOURCES)
def test_without_a_measurement_it_is_an_error_never_a_pass(source: str) -> None:
    made = case(source, mock_up="reduce + bcast", share=10.0)
    assert word(made, Evidence()) == "ERROR"
    lost = Evidence(missing={"c": "rank 3 on n7 died"})
    assert judge(made, lost, RULE, 1).note == "rank 3 on n7 died"


def test_a_metric_that_rows_lack_is_an_error() -> None:
    found = judge(case(metric="p99"), evidence(1.0, 1.0), RULE, 1)
    assert found.word == "ERROR" and "r-0 has no p99" in found.note


def test_a_baseline() -> None:
    made = case("baseline", share=0.05)
    for medians, said in (((10.1, 10.2, 10.0), "PASS"), ((13.0, 13.1, 12.9), "FAIL")):
        found = evidence(*medians)
        found.baseline, found.baseline_word = [row(10.0 + k / 100, k) for k in range(5)], "last"
        assert word(made, found) == said
    found.baseline = found.baseline[:1]
    assert "one launch" in judge(made, found, RULE, 1).note
    found.baseline = []
    assert "has no such cell" in judge(made, found, RULE, 1).note


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
    found = evidence(4.0, 4.0)
    assert "latency was not measured" in judge(case("lower bound", share=0.2), found, RULE, 1).note
    latency(found)
    said = judge(case("lower bound", share=0.2), found, RULE, 1)
    assert said.word == "PASS" and said.measured == pytest.approx(0.25) and said.is_ratio
    assert word(case("lower bound", share=0.3), found) == "FAIL"
    fast = evidence(0.5, 0.5)
    latency(fast)
    assert "offload" in judge(case("lower bound", share=0.2), fast, RULE, 1).note


def test_a_guideline_is_paired_inside_launches() -> None:
    made = case("guideline", mock_up="reduce + bcast", share=0.1)
    found = evidence(10.0, 20.0, 40.0, parameters={"side": "left"})
    assert "both allreduce and reduce + bcast" in judge(made, found, RULE, 1).note
    add(found, [10.0, 20.0, 40.0], parameters={"side": "right"})
    said = judge(made, found, RULE, 1)
    assert said.word == "PASS" and said.measured == pytest.approx(1.0), "launches differ fourfold, the ratio does not"
    assert [value for _, value in said.values] == pytest.approx([10.0, 20.0, 40.0])
    worse = evidence(15.0, 30.0, 60.0, parameters={"side": "left"})
    add(worse, [10.0, 20.0, 40.0], parameters={"side": "right"})
    assert word(made, worse) == "FAIL"


def test_interference_is_paired_too() -> None:
    made, found = case("interference", share=0.25), evidence(10.0, 20.0)
    assert "beside another job" in judge(made, found, RULE, 1).note
    add(found, [11.0, 22.0], beside=True)
    assert word(made, found) == "PASS"
    found.beside.clear()
    add(found, [20.0, 40.0], beside=True)
    assert word(made, found) == "FAIL"


def test_drift_is_over_the_passes_of_a_launch() -> None:
    made, found = case("drift", share=0.05), Evidence()
    for passed in range(20):
        found.add("c", 0, row(10.0 * 1.01**passed))
    said = judge(made, found, Rule(1, 1), 1)
    assert said.word == "FAIL" and said.measured == pytest.approx(1.01**19)
    assert "too few" in judge(made, evidence(1.0), Rule(1, 1), 1).note


def test_rounds_are_kept_and_the_contract_has_the_last_word() -> None:
    found = evidence(9.0, 11.0, 10.0)
    first = judge(case(), found, RULE, 1)
    for turn, median in enumerate((9.5, 10.5, 9.9), 3):
        found.add("c", turn, row(median, turn))
    second = judge(case(), found, RULE, 1, first)
    assert [one.launches for one in second.rounds] == [3, 6] and second.launches == 6
    ruled = close(second, Rule(undecided="fail"))
    assert ruled.word == "FAIL" and ruled.by_rule and not close(second, RULE).by_rule


def test_a_launch_that_died_is_said() -> None:
    found = evidence(8.0, 8.0)
    found.missing["c"] = "rank 1 died"
    assert "not every launch measured it: rank 1 died" in judge(case(), found, RULE, 1).note


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=9), st.floats(0.01, 1e6))
def test_all_launches_are_shown(medians: list[float], bound: float) -> None:
    said = judge(case(ranges={None: Range(high=bound)}), evidence(*medians), RULE, 1)
    assert [value for _, value in said.values] == pytest.approx(medians)
    assert said.word in ("PASS", "FAIL", "MARGINAL") and len(said.rounds) == 1

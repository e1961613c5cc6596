"""Verdicts on guidelines: the test, the family, rows that belong together, and the forms of a report."""

from __future__ import annotations

import json
import math
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from omb_py.printing.writers import to_json, to_junit, to_markdown
from omb_py.results.checks import guideline_report as forms
from omb_py.results.checks import guidelines
from omb_py.results.checks.guideline_report import advice
from omb_py.results.checks.guidelines import GuidelinePair, GuidelineRules, by_round, decide, judge, pairs_of, spent
from tests.lab.error_rates.launch_effects import autoregressive
from tests.lab.error_rates.launch_effects import bimodal as mixture
from tests.support.jenkins import violations


def pair(ratio: float, launches: int = 10, spread: float = 0.02, seed: int = 1, **more: Any) -> GuidelinePair:
    draw = np.random.default_rng(seed).normal(math.log(ratio), spread, launches)
    right = (10.0,) * launches
    return GuidelinePair("gl5_allreduce", "allreduce ≤ reduce + bcast", 8, tuple(10 * np.exp(draw)), right, **more)


def row(launch: int, side: str, us: float, **more: Any) -> dict[str, Any]:
    usual = {
        "family": "guideline",
        "launch_id": f"r-{launch}",
        "benchmark": "gl9_bcast",
        "size_bytes": 64,
        "ranks": 4,
        "nodes": 1,
        "library": "Open MPI",
        "library_version": "5.0.11",
        "backend": "mpi",
        "median_us": us,
        "parameters": {"side": side, "guideline": "bcast ≤ scatter + allgather"},
    }
    return {**usual, **more}


def test_verdicts() -> None:
    found = judge([pair(1.5), pair(0.9), pair(1.1), pair(3.0, wrong=True)], GuidelineRules())
    assert [one.verdict for one in found] == ["VIOLATED", "HOLDS", "UNCLEAR", "WRONG"]
    assert found[0].lost_us == pytest.approx(5, abs=0.5) and found[1].lost_us == 0
    assert found[0].low < found[0].ratio < found[0].high


def test_one_launch_says_nothing_and_no_spread_says_all() -> None:
    (one,) = judge([pair(9.0, launches=1)], GuidelineRules())
    assert (one.verdict, one.p) == ("UNCLEAR", 1.0)
    alike, at_the_limit = judge([pair(1.5, spread=0), pair(1.1, spread=0)], GuidelineRules(delta=0.2))
    assert (alike.verdict, at_the_limit.verdict) == ("VIOLATED", "HOLDS")


def test_launches_that_are_all_alike_are_counted_where_cells_are_many() -> None:
    """A coarse clock makes ten launches alike by chance; in one of a hundred cells that is no wonder."""
    wide = [pair(1.1, launches=14, seed=k) for k in range(100)]
    alike = judge([pair(1.5, launches=10, spread=0), *wide], GuidelineRules(delta=0.2))[0]
    assert alike.verdict == "UNCLEAR" and alike.p == pytest.approx(0.5**alike.launches)
    assert judge([pair(1.5, launches=14, spread=0), *wide], GuidelineRules(delta=0.2))[0].verdict == "VIOLATED"


def bimodal(seed: int, launches: int, factor: float = 2.0, share: float = 0.1) -> GuidelinePair:
    """Half of the launches are above 1.1, and this share of them takes `factor` times as long on the left."""
    rng = np.random.default_rng(seed)
    logs = mixture(share, factor)(rng, 1, launches)[0]
    return GuidelinePair(f"gl{seed}_x", "", 8, tuple(11 * np.exp(logs)), (10.0,) * launches)


@pytest.mark.parametrize(("share", "factor"), [(0.1, 2.0), (0.3, 2.0), (0.1, 0.5)])
def test_a_mode_of_some_launches_moves_no_verdict(share: float, factor: float) -> None:
    """Twenty cells whose median is at the limit, forty reports: a false word in one of a hundred."""
    wrong = 0
    for report in range(40):
        family = [bimodal(1000 * report + k, 10, factor, share) for k in range(20)]
        wrong += any(one.verdict != "UNCLEAR" for one in judge(family, GuidelineRules()))
    assert wrong <= stats.binom.ppf(0.999, 40, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_two_modes_nearly_as_frequent_mislead_a_mean_and_not_the_count(factor: float) -> None:
    """One cell a report, 45 of 100 launches of the other mode: by the mean alone a third of the reports would err."""
    wrong = sum(
        judge([bimodal(seed, 40, factor, 0.45)], GuidelineRules())[0].verdict != "UNCLEAR" for seed in range(300)
    )
    assert wrong <= stats.binom.ppf(0.999, 300, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_many_cells_of_two_modes_have_as_few_false_words_as_one(factor: float) -> None:
    """The count alone knows of two modes, so it has to be corrected for twenty cells: one report in fifty may err."""
    wrong = 0
    for report in range(100):
        family = [bimodal(1000 * report + k, 22, factor, 0.45) for k in range(20)]
        wrong += any(one.verdict != "UNCLEAR" for one in judge(family, GuidelineRules()))
    assert wrong <= stats.binom.ppf(0.999, 100, 0.02)


def test_launches_that_resemble_the_one_before_are_known_and_decide_less() -> None:
    """84 to 91 % of reports of ten cells at the limit had a false word, since 0.5 was taken for their correlation."""
    rules, rng, false = GuidelineRules(), np.random.default_rng(3), 0
    for _ in range(20):
        logs = autoregressive(0.9)(rng, 10, 24) + math.log1p(rules.delta)
        pairs = [GuidelinePair(f"gl{k}", "", 8, tuple(np.exp(cell)), (1.0,) * 24) for k, cell in enumerate(logs)]
        verdicts = judge(pairs, rules)
        assert {one.correlation for one in verdicts} != {0.0} and verdicts[0].correlation > 0.6
        false += any(one.verdict != "UNCLEAR" for one in verdicts)
    assert false <= 2


def test_a_report_says_that_launches_resemble_the_one_before() -> None:
    drifting = GuidelinePair("gl5_x", "a ≤ b", 8, tuple(10 * 1.02**k for k in range(12)), (10.0,) * 12)
    report = forms.GuidelineReport(judge([drifting], GuidelineRules()), GuidelineRules(), launches=12)
    note = "launches may resemble the one before (correlation of up to 0.95), so it takes more of them, or launches at"
    assert any(line.startswith(note) for line in forms.document_of(report).notes)
    steady = forms.GuidelineReport(judge([pair(1.0, launches=12)], GuidelineRules()), GuidelineRules(), launches=12)
    assert not any("resemble" in line for line in forms.document_of(steady).notes)


def test_as_many_launches_as_the_cells_need_show_that_all_hold() -> None:
    """One fewer cannot show it, whatever they are: 2⁻ⁿ is the chance of n launches on one side of their median."""
    needed = guidelines.fewest(0.01, 1, 20)
    for launches, word in ((needed - 1, "UNCLEAR"), (needed, "HOLDS")):
        family = [pair(0.9, launches=launches, seed=k) for k in range(20)]
        assert {one.verdict for one in judge(family, GuidelineRules())} == {word}


def test_one_slow_launch_does_not_hide_a_violation() -> None:
    slow = GuidelinePair("gl5_x", "", 8, (*(15.0 + 0.1 * (k % 3) for k in range(23)), 300.0), (10.0,) * 24)
    (said,) = judge([slow], GuidelineRules())
    assert (said.verdict, said.beyond, said.launches) == ("VIOLATED", 24, 24) and said.ratio == pytest.approx(1.51)


def test_so_few_launches_say_that_they_are_few() -> None:
    made = forms.report_of(
        [row(k, side, us) for k in range(5) for side, us in (("left", 5.0), ("right", 10.0))], GuidelineRules()
    )
    notes = forms.document_of(made).notes
    assert (
        made.counts["UNCLEAR"] == 1 and "unclear with fewer than 9 launches in a round: so few cannot show" in notes[-1]
    )


@pytest.mark.slow
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=25))
def test_the_interval_is_that_of_a_median(logs: list[float]) -> None:
    made = GuidelinePair("gl5_x", "", 8, tuple(math.exp(x) for x in logs), (1.0,) * len(logs))
    (said,) = judge([made], GuidelineRules())
    assert said.low <= said.ratio * (1 + 1e-9) and said.ratio <= said.high * (1 + 1e-9)
    assert said.ratio == pytest.approx(math.exp(np.median(logs)))
    assert math.isfinite(said.high) == (len(logs) >= 5), "2 · ½⁵ is the first that leaves 90 %"


@pytest.mark.slow
def test_a_family_at_the_limit_is_seldom_called_violated() -> None:
    """Ratios of exactly 1 + delta, forty at once: some report in a hundred may call one."""
    alarms = 0
    for report in range(200):
        family = [pair(1.1, launches=5, spread=0.05, seed=1000 * report + k) for k in range(40)]
        alarms += any(one.verdict == "VIOLATED" for one in judge(family, GuidelineRules()))
    assert alarms <= stats.binom.ppf(0.999, 200, 0.01)


@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
def test_rounds_share_what_may_be_spent(rounds: int) -> None:
    each = [spent(0.01, (number, rounds)) for number in range(1, rounds + 1)]
    assert sum(v for v, _ in each) == pytest.approx(0.01) and sum(h for _, h in each) == pytest.approx(0.01)
    assert rounds == 1 or each[0][0] == 0, "what is seen first names nothing"
    assert [guidelines.batches(number) for number in range(1, 6)] == [1, 1, 2, 4, 8]


@pytest.mark.parametrize(("launches", "decides"), [(1, False), (5, False), (6, True), (12, True)])
def test_a_round_that_can_decide_nothing_is_known_beforehand(launches: int, decides: bool) -> None:
    """The clearest violations there are get no verdict from so few launches, in no round."""
    rules, words = GuidelineRules(), set[str]()
    for number in (2, 3):
        made = launches * guidelines.batches(number)
        clearest = [GuidelinePair(f"gl{k}", "", 8, (9.0,) * made, (1.0,) * made) for k in range(20)]
        words |= {one.verdict for one in judge(clearest, rules, (number, 3))}
    assert guidelines.can_decide(2, launches, 20, rules) is decides is ("VIOLATED" in words)
    assert not guidelines.can_decide(4, launches, 20, rules), "there is no fourth round"


def test_fresh_launches_decide() -> None:
    """Slow in the first launches alone is not violated; the launches of later rounds say it, and only those."""
    slow, fine = pair(1.5), pair(1.0, launches=16, seed=2)
    assert [one.verdict for one in decide({(1, 3): [slow]}, GuidelineRules())] == ["UNCLEAR"]
    (chance,) = decide({(1, 3): [slow], (2, 3): [fine]}, GuidelineRules())
    assert (chance.verdict, chance.round, chance.launches) == ("HOLDS", 2, 16)
    (real,) = decide({(1, 3): [slow], (2, 3): [pair(1.5, launches=9, seed=3)]}, GuidelineRules())
    assert (real.verdict, real.round, real.launches) == ("VIOLATED", 2, 9)


def test_few_cells_do_not_show_that_launches_are_independent_and_a_gross_violation_is_named_all_the_same() -> None:
    """With t instead of the exact law, two cells ten thousand times beyond the limit stayed UNCLEAR."""
    logs = autoregressive(0.9)(np.random.default_rng(5), 2, 12) + math.log(1e4)
    pairs = [GuidelinePair(f"gl{k}", "", 8, tuple(np.exp(cell)), (1.0,) * 12) for k, cell in enumerate(logs)]
    found = judge(pairs, GuidelineRules(), (2, 3))
    assert [one.verdict for one in found] == ["VIOLATED"] * 2 and found[0].correlation == 0.95


def test_stored_rows_say_their_round() -> None:
    rows = [
        row(k, s, us, tags={"guideline_look": f"{1 + k // 4}/3"})
        for k in range(8)
        for s, us in (("left", 20.0 + k), ("right", 10.0))
    ]
    found = by_round(rows)
    assert sorted(found) == [(1, 3), (2, 3)] and found[2, 3][0].left_us == (24.0, 25.0, 26.0, 27.0)
    assert list(by_round([row(0, "left", 1.0), row(0, "right", 1.0)])) == [(1, 1)]
    assert forms.report_of(rows, GuidelineRules()).launches == 8


@pytest.mark.slow
def test_two_reports_do_not_contradict_each_other() -> None:
    """Sixty cells from 0.8 to 1.6 times, some right at the limit, checked twice on disjoint launches."""
    ratios = [*np.linspace(0.8, 1.6, 55), *[1.1] * 5]
    contradictions = named = 0
    draws = np.random.default_rng(7)
    for _ in range(30):
        reports = []
        for _ in range(2):
            cells, rounds, words = list(range(len(ratios))), {}, {}
            for number, launches in ((1, 10), (2, 10), (3, 20)):
                made = [
                    GuidelinePair(
                        f"gl{k}_x",
                        "",
                        8,
                        tuple(10 * np.exp(draws.normal(math.log(ratios[k]), 0.05, launches))),
                        (10.0,) * launches,
                    )
                    for k in cells
                ]
                rounds[number, 3] = made
                words = {one.pair.name: one.verdict for one in decide(rounds, GuidelineRules())}
                cells = [k for k in cells if words[f"gl{k}_x"] == "UNCLEAR"]
            reports.append(words)
        contradictions += any({a, reports[1][k]} == {"VIOLATED", "HOLDS"} for k, a in reports[0].items())
        named += sum(a == reports[1][k] == "VIOLATED" for k, a in reports[0].items())
    assert contradictions <= stats.binom.ppf(0.999, 30, 0.04) and named > 30 * 20


def test_rows_of_a_launch_belong_together() -> None:
    rows = [
        row(1, "right", 5),
        row(0, "left", 20),
        row(0, "right", 10),
        row(1, "left", 21),
        row(2, "left", 9),
        row(0, "left", 7, ranks=8),
        row(0, "right", 7, ranks=8),
        row(0, "x", 1),
        {"family": "collective"},
    ]
    one, other = pairs_of(rows)
    assert (one.left_us, one.right_us, one.text) == ((21.0, 20.0), (5.0, 10.0), "bcast ≤ scatter + allgather")
    assert other.left_us == (7.0,) and other.row["ranks"] == 8
    assert pairs_of([row(0, "left", 1, validated=False), row(0, "right", 1)])[0].wrong


def report() -> forms.GuidelineReport:
    order = [(3 * k) % 8 for k in range(8)]  # launches that rose one after the other would decide less
    rows = [
        row(at, side, us * (1 + 0.01 * k))
        for at, k in enumerate(order)
        for side, us in (("left", 20.0), ("right", 10.0 + k / 9))
    ]
    rows += [row(k, s, 5.0, benchmark="gl10_bcast", validated=k != 3) for k in range(8) for s in ("left", "right")]
    rows += [row(k, s, 5.0, benchmark="gl4_allgather") for k in range(8) for s in ("left", "right")]
    made = forms.report_of(rows, GuidelineRules())
    made.skipped = [("gl7_allreduce", "Gloo has no allgatherv")]
    return made


def test_what_every_form_says() -> None:
    found = report()
    assert [one.pair.name for one in found.judged] == ["gl4_allgather", "gl9_bcast", "gl10_bcast"]
    assert forms.exit_code(found) == 1 and forms.headline(found) == "1 with wrong bytes, 1 violated, 0 unclear, 1 hold"
    document = forms.document_of(found)
    notes = "\n".join(document.notes)
    assert "bcast ≤ scatter + allgather, 64 B is violated: 2.0" in notes or "is violated: 1.9" in notes
    assert "OMPI_MCA_coll_tuned_bcast_algorithm=8" in notes and "not checked: gl7_allreduce: Gloo has" in notes
    assert [row[6] for row in document.tables[0].rows] == ["WRONG", "VIOLATED", "HOLDS"]
    told = json.loads(to_json(document))
    assert told["verdicts"] == {"WRONG": 1, "VIOLATED": 1, "HOLDS": 1} and len(told["cells"]) == 3
    assert violations(to_junit(document)) == []
    suite = ElementTree.fromstring(to_junit(document)).find("testsuite")
    assert suite is not None
    assert [suite.get(n) for n in ("tests", "failures", "errors", "skipped")] == ["4", "1", "1", "1"]
    kinds = [child.tag for case in suite.iter("testcase") for child in case]
    assert kinds == ["system-out", "failure", "error", "skipped"]
    assert to_markdown(document).count("\n| ") == 4


@pytest.mark.parametrize(
    ("library", "name", "says"),
    [
        ("Open MPI", "gl5_allreduce", "coll_tuned_allreduce_algorithm=2 "),
        ("Open MPI", "gl12_gather", "try the values of OMPI_MCA_coll_tuned_use_dynamic_rules=1"),
        ("MPICH", "gl9_bcast", "try MPIR_CVAR_BCAST_INTRA_ALGORITHM=scatter_ring_allgather"),
        ("MPICH", "gl17_reduce_scatter_block", "try the values of MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM"),
        ("Intel MPI", "gl5_allreduce", "try I_MPI_ADJUST_ALLREDUCE=3"),
        ("Open MPI", "gl24node_bcast", "OMPI_MCA_coll_han_priority"),
        ("Open MPI", "gl24lane_bcast", "OMPI_MCA_coll_tuned_bcast_algorithm=N"),
        ("MPICH", "gl21_scan", "MPIR_CVAR_SCAN_INTRA_ALGORITHM"),
        ("NCCL", "gl1_allgather", "NCCL_ALGO"),
    ],
)
def test_what_to_try(library: str, name: str, says: str) -> None:
    assert says in advice(library, name)


def test_nothing_is_advised_for_a_library_without_settings() -> None:
    assert advice("torch gloo", "gl5_allreduce") == ""


def test_the_interval_of_a_ratio_leaves_five_per_cent_at_each_end() -> None:
    """Of 16 independent launches at most 4 lie below the median with a chance of 3.8 %, at most 5 with 10.5 %."""
    chances = stats.binom.cdf([4, 5], 16, 0.5)
    assert chances[0] < 0.05 < chances[1]
    logs = [0.01 * number for number in range(16)]
    assert guidelines._median_interval(logs)[1:] == (guidelines.ratio_of(logs[4]), guidelines.ratio_of(logs[11]))

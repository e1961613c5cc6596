"""The acceptance as data: its one word, exit codes, sentences."""

from __future__ import annotations

import json
from dataclasses import replace

import junitparser
import pytest

from omb_py.printing.writers import to_json, to_junit, to_markdown
from omb_py.results.accept.judge import CaseVerdict, close, judge
from omb_py.results.accept.outcomes import AcceptOutcome
from omb_py.results.accept.report import (
    HEADS,
    AcceptReport,
    CorrectnessCheck,
    document_of,
    exit_code,
    headline,
    note,
)
from omb_py.results.skip import Skip
from omb_py.results.statistics.sequential import AcceptRule
from tests.support.accepting import case, evidence
from tests.support.jenkins import violations


def verdict(*medians: float) -> CaseVerdict:
    return judge(case(), evidence(*medians), AcceptRule(), 1)


GOOD, BAD, OPEN, LOST = verdict(*[8.0] * 8), verdict(*[12.0] * 8), verdict(9.0, 11.0), verdict()


def verdicts(*found: CaseVerdict, **more: object) -> AcceptReport:
    made = AcceptReport("mine", "d", "abc", AcceptRule(), "run", "store", "2026-01-01T00:00:00+00:00")
    made.verdicts, made.hosts = list(found), ["n1", "n2"]
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_the_batch_job_is_on_every_form_of_the_page() -> None:
    job = "Slurm job 814 (gpu): 2 nodes, 8 ranks each"
    drain = "take out of service: scontrol update nodename=n3 state=drain reason=omb-py"
    found = document_of(verdicts(GOOD, job=job, missing_nodes={"n3": "no answer"}, out_of_service=drain))
    for text in (to_markdown(found), to_junit(found)):
        assert job in text and drain in text
    assert json.loads(to_json(found))["job"] == job


@pytest.mark.parametrize(
    ("found", "word", "code", "strict"),
    [
        (verdicts(GOOD), "PASS", 0, 0),
        (verdicts(GOOD, OPEN), "MARGINAL", 0, 4),
        (verdicts(OPEN, OPEN), "MARGINAL", 4, 4),
        (verdicts(GOOD, LOST), "ERROR", 3, 3),
        (verdicts(BAD, LOST, OPEN), "FAIL", 1, 1),
        (verdicts(), "ERROR", 3, 3),
        (verdicts(GOOD, checked=[CorrectnessCheck("bcast", "FAIL", "8 wrong bytes")]), "FAIL", 1, 1),
        (verdicts(GOOD, checked=[CorrectnessCheck("bcast", "SKIPPED", "no such function")]), "PASS", 0, 0),
        (verdicts(GOOD, incidents=[Skip("bcast", "rank 1 died", failed=True)]), "ERROR", 3, 3),
        (verdicts(GOOD, incidents=[Skip("bcast", "no such function", failed=False)]), "PASS", 0, 0),
    ],
)
def test_one_word_and_the_exit_code(found: AcceptReport, word: str, code: int, strict: int) -> None:
    assert found.word == word and exit_code(found) == code and exit_code(found, strict=True) == strict


def test_texts() -> None:
    found = verdicts(GOOD, BAD, missing_nodes={"n3": "no answer"}, incidents=[Skip("bw", "died", failed=True)])
    assert headline(found) == "FAIL: 1 fail, 1 pass of 2 verdicts; correctness was not checked; missing: n3"
    document = document_of(found)
    assert "missing node n3: no answer" in document.facts and document.problems == ["failed: bw: died"]
    bad, lost = (document_of(verdicts(one)).cases[0].message for one in (BAD, LOST))
    assert bad == (
        "FAIL: 12 us (12 us … 12 us), at most 10 us, 8 launches in 1 round, +20.0 % from the bound; median "
        "beyond the bound, 95% sure; 8 of 8 launches beyond"
    )
    assert lost == "ERROR: not measured"


def test_a_fail_by_the_suites_rule_says_why() -> None:
    """A number inside its bound that fails is a riddle without the reason."""
    launches = [9.0, 9.0, 9.0, 9.0, 9.0, 11.0, 9.0, 9.0]
    ruled = close(judge(case(), evidence(*launches), AcceptRule(), 1), AcceptRule(undecided="fail"))
    assert ruled.word == "FAIL" and ruled.measured == pytest.approx(9.0)
    assert note(ruled) == (
        "undecided after 8 launches, which the suite counts as FAIL; 1 of 8 launches beyond; "
        "about 13 launches would decide"
    )
    assert document_of(verdicts(ruled)).tables[0].rows[0][-1] == note(ruled)


def test_the_rule_says_how_many_launches_may_be_beyond_a_bound() -> None:
    (line,) = [fact for fact in document_of(verdicts(GOOD)).facts if fact.startswith("rule: ")]
    assert line == (
        "rule: the median of launches must keep the bound, 95% sure; 8 launches a round, at most 24: "
        "PASS if at most 0 of 8, 3 of 16, 7 of 24 independent launches are beyond the bound"
    )


@pytest.mark.parametrize(
    ("sources", "rule"),
    [
        (("drift",), "a line through the passes must keep the bound, 95% sure; 1 launch"),
        (("baseline",), "a night must keep the bound, by how much those of the baseline differ, 95% sure; 1 launch"),
        (
            ("drift", "contract"),
            "the median of launches must keep the bound and a line through the passes must keep the bound, 95% sure; "
            "1 launch a round, at most 1: no PASS",
        ),
    ],
)
def test_the_rule_is_that_of_what_was_asked(sources: tuple[str, ...], rule: str) -> None:
    found = verdicts(*(replace(GOOD, case=case(source)) for source in sources), rule=AcceptRule(1, 1))
    assert f"rule: {rule}" in document_of(found).facts


def test_what_many_rows_say_stands_once_below_the_table() -> None:
    """A table of 18 verdicts said the same 150 characters 18 times."""
    document = document_of(verdicts(GOOD, GOOD, GOOD, BAD, OPEN))
    assert [row[-1] for row in document.tables[0].rows] == ["[1]"] * 3 + [note(BAD), note(OPEN)]
    assert f"[1] {note(GOOD)}" in document.notes
    assert document_of(verdicts(GOOD, GOOD)).tables[0].rows[0][-1] == note(GOOD)


def test_an_exit_code_of_what_is_undecided_is_explained() -> None:
    def said(*found: CaseVerdict, strict: bool = False) -> str:
        return next((line for line in document_of(verdicts(*found), strict).notes if "undecided" in line), "")

    assert said(GOOD, OPEN) == "1 undecided: exit code 0 says only that nothing failed; --strict exits with 4"
    assert said(GOOD, OPEN, strict=True) == "1 undecided: exit code 4, because of --strict"
    assert said(OPEN, OPEN) == "2 undecided: exit code 4, nothing was decided"
    assert said(GOOD) == said(BAD, OPEN) == said(LOST, OPEN) == ""


def test_launches_that_resemble_each_other_are_spoken_of() -> None:
    def facts(correlation: float) -> list[str]:
        return [fact for fact in document_of(verdicts(GOOD, correlation=correlation)).facts if "resemble" in fact]

    assert facts(0.2) == []
    assert facts(0.45) == [
        "launches may resemble the one before (correlation up to 0.45), so verdicts take more of them: spread them "
        "over hours or days"
    ]


def test_a_repeated_acceptance_says_so() -> None:
    before = [
        AcceptOutcome("s", "b", (), "FAIL", run_id=f"run{day}", done=f"2026-11-{day}T01:00:00") for day in (20, 21)
    ]
    found = verdicts(GOOD, bounds="b", earlier=[replace(before[0], bounds="other"), before[1]])
    assert (
        "third acceptance of this suite on these hosts; before: FAIL on 2026-11-20 (run20, other bounds), FAIL on "
        "2026-11-21 (run21)" in document_of(found).facts
    )
    assert [one["run_id"] for one in json.loads(to_json(document_of(found)))["earlier"]] == ["run20", "run21"]
    many = document_of(verdicts(GOOD, earlier=before * 10)).facts
    assert any(fact.startswith("21st acceptance of this suite") for fact in many)


def test_json_holds_every_launch_and_nothing_that_is_not_finite() -> None:
    told = json.loads(to_json(document_of(verdicts(OPEN, verdict(8.0)))))
    assert told["verdicts"][0]["launches"] == [
        {"launch_id": "r-0", "value": pytest.approx(9.0)},
        {"launch_id": "r-1", "value": pytest.approx(11.0)},
    ]
    assert told["verdicts"][1]["high"] is None


ALL = verdicts(
    GOOD,
    BAD,
    OPEN,
    LOST,
    checked=[CorrectnessCheck("bcast", "FAIL", "8 wrong bytes"), CorrectnessCheck("bw", "SKIPPED", "no | pipes")],
    incidents=[Skip("barrier", "not here", failed=False), Skip("bcast", "rank 1 died", failed=True)],
)


def test_junit() -> None:
    xml = to_junit(document_of(ALL))
    assert violations(xml) == []
    (suite,) = junitparser.JUnitXml.fromstring(xml.encode())
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (8, 2, 2, 3)
    kinds = [type(case.result[0]).__name__ if case.result else "passed" for case in suite]
    assert kinds == ["Failure", "Skipped", "passed", "Failure", "Skipped", "Error", "Skipped", "Error"]
    names = {p.name: p.value for p in suite.properties()}
    assert names["crit, 8 B: bound"] == "at most 10 us"
    failure = next(case for case in suite if case.classname.endswith("contract") and case.is_failure)
    assert "+20.0 % from the bound" in failure.result[0].message


def test_junit_is_stricter_when_asked() -> None:
    (suite,) = junitparser.JUnitXml.fromstring(to_junit(document_of(ALL, strict=True)).encode())
    assert (suite.failures, suite.skipped) == (3, 2)


def test_markdown() -> None:
    text = to_markdown(document_of(ALL))
    assert text.startswith("**FAIL: 1 fail, 1 error, 1 marginal, 1 pass of 4 verdicts; correctness: 0 of 1 right**")
    assert "no \\| pipes" in text and text.count("| crit, 8 B |") == 4
    assert all(len(row) == len(HEADS) for row in document_of(ALL).tables[0].rows)


def test_json() -> None:
    assert json.loads(to_json(document_of(ALL)))["counts"] == {"PASS": 1, "FAIL": 1, "MARGINAL": 1, "ERROR": 1}

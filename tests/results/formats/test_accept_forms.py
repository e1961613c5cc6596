"""An acceptance as Markdown and JUnit."""

from __future__ import annotations

import json

import junitparser

from omb_py.results.accept.report import Checked, Incident
from omb_py.results.formats.accept_forms import HEADS, table, to_json, to_junit, to_markdown
from tests.results.accept.test_report import BAD, GOOD, LOST, OPEN, verdicts
from tests.support.jenkins import violations

ALL = verdicts(
    GOOD,
    BAD,
    OPEN,
    LOST,
    checked=[Checked("bcast", "FAIL", "8 wrong bytes"), Checked("bw", "SKIPPED", "no | pipes")],
    incidents=[Incident("barrier", "not here", failed=False), Incident("bcast", "rank 1 died", failed=True)],
)


def test_junit() -> None:
    xml = to_junit(ALL)
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
    (suite,) = junitparser.JUnitXml.fromstring(to_junit(ALL, strict=True).encode())
    assert (suite.failures, suite.skipped) == (3, 2)


def test_markdown() -> None:
    text = to_markdown(ALL)
    assert text.startswith("**FAIL: 1 fail, 1 error, 1 marginal, 1 pass of 4 verdicts; correctness: 0 of 1 right**")
    assert "no \\| pipes" in text and text.count("| crit, 8 B |") == 4
    assert all(len(row) == len(HEADS) for row in table(ALL))


def test_json() -> None:
    assert json.loads(to_json(ALL))["counts"] == {"PASS": 1, "FAIL": 1, "MARGINAL": 1, "ERROR": 1}

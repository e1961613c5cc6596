"""JUnit's XML against what build servers read."""

from __future__ import annotations

import junitparser
import pytest
from hypothesis import given

from omb_py.printing.writers import to_junit
from omb_py.results.document import CaseResult, Document, Outcome, printable
from tests.printing.writers.documents import DOCUMENTS
from tests.support.jenkins import violations


@pytest.mark.slow
@given(DOCUMENTS)
def test_any_text_is_valid(document: Document) -> None:
    xml = to_junit(document)
    assert violations(xml) == []
    (suite,) = junitparser.JUnitXml.fromstring(xml.encode())
    kinds = {"failure": junitparser.Failure, "error": junitparser.Error, "skipped": junitparser.Skipped}
    for case, given_case in zip(suite, document.cases, strict=True):
        assert [type(result) for result in case.result] == ([kinds[given_case.outcome]] if given_case.outcome else [])
        assert all(result.message.split() == printable(given_case.message).split() for result in case.result)
    assert "e" not in xml.partition(' time="')[2].partition('"')[0], "the schema has no exponents"


def test_counts() -> None:
    outcomes: list[Outcome | None] = ["failure", "error", "error", "skipped", None]
    cases = [CaseResult("c", f"n{k}", outcome, "m") for k, outcome in enumerate(outcomes)]
    found = junitparser.JUnitXml.fromstring(to_junit(Document("s", "h", 0, dict, cases=cases)).encode())
    (suite,) = found
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (5, 1, 2, 1)
    assert (found.tests, found.failures, found.errors) == (5, 1, 2)


def test_the_check_finds_what_is_wrong() -> None:
    case = '<testcase name="a" time="1e-05"><properties/></testcase>'
    wrong = f'<testsuites><testsuite name="a" errors="0" failures="0">{case}</testsuite></testsuites>'
    assert violations(wrong) == ["testsuite lacks tests", "properties in testcase", "time 1e-05 of testcase"]

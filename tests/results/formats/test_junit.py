"""JUnit's XML against what build servers read."""

from __future__ import annotations

import junitparser
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.formats import junit
from tests.support.jenkins import violations


@given(st.text(), st.sampled_from(["failure", "error", "skipped", None]), st.floats(0, 1e9))
def test_any_text_is_valid(text: str, outcome: junit.Outcome | None, seconds: float) -> None:
    cases = [junit.JunitCase(text, text, outcome, text, seconds, text)]
    xml = junit.to_xml([junit.JunitSuite(text, cases, {text: text}, "2026-01-01T00:00:00", text, seconds)])
    assert violations(xml) == []
    (suite,) = junitparser.JUnitXml.fromstring(xml.encode())
    (case,) = suite
    kinds = {"failure": junitparser.Failure, "error": junitparser.Error, "skipped": junitparser.Skipped}
    assert [type(found) for found in case.result] == ([kinds[outcome]] if outcome else [])
    assert "e" not in xml.partition(' time="')[2].partition('"')[0], "the schema has no exponents"


def test_counts() -> None:
    outcomes: list[junit.Outcome | None] = ["failure", "error", "error", "skipped", None]
    cases = [junit.JunitCase("c", f"n{k}", outcome, "m") for k, outcome in enumerate(outcomes)]
    found = junitparser.JUnitXml.fromstring(junit.to_xml([junit.JunitSuite("s", cases)]).encode())
    (suite,) = found
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (5, 1, 2, 1)
    assert (found.tests, found.failures, found.errors) == (5, 1, 2)


def test_the_check_finds_what_is_wrong() -> None:
    case = '<testcase name="a" time="1e-05"><properties/></testcase>'
    wrong = f'<testsuites><testsuite name="a" errors="0" failures="0">{case}</testsuite></testsuites>'
    assert violations(wrong) == ["testsuite lacks tests", "properties in testcase", "time 1e-05 of testcase"]

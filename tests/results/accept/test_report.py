"""The acceptance as data: its one word, exit codes, sentences."""

from __future__ import annotations

import json

import pytest

from omb_py.results.accept.judge import Verdict, judge
from omb_py.results.accept.report import (
    Checked,
    Incident,
    Verdicts,
    as_dict,
    closing,
    exit_code,
    headline,
    preamble,
    sentence,
)
from omb_py.results.statistics.sequential import Rule
from tests.support.accepting import case, evidence


def verdict(*medians: float) -> Verdict:
    return judge(case(), evidence(*medians), Rule(), 1)


GOOD, BAD, OPEN, LOST = verdict(8.0, 8.0), verdict(12.0, 12.0), verdict(9.0, 11.0), verdict()


def verdicts(*found: Verdict, **more: object) -> Verdicts:
    made = Verdicts("mine", "d", "abc", Rule(), "run", "store", "2026-01-01T00:00:00+00:00")
    made.verdicts, made.hosts = list(found), ["n1", "n2"]
    for name, value in more.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("found", "word", "code", "strict"),
    [
        (verdicts(GOOD), "PASS", 0, 0),
        (verdicts(GOOD, OPEN), "MARGINAL", 0, 4),
        (verdicts(GOOD, LOST), "ERROR", 3, 3),
        (verdicts(BAD, LOST, OPEN), "FAIL", 1, 1),
        (verdicts(), "ERROR", 3, 3),
        (verdicts(GOOD, checked=[Checked("bcast", "FAIL", "8 wrong bytes")]), "FAIL", 1, 1),
        (verdicts(GOOD, checked=[Checked("bcast", "SKIPPED", "no such function")]), "PASS", 0, 0),
        (verdicts(GOOD, incidents=[Incident("bcast", "rank 1 died", failed=True)]), "ERROR", 3, 3),
        (verdicts(GOOD, incidents=[Incident("bcast", "no such function", failed=False)]), "PASS", 0, 0),
    ],
)
def test_one_word_and_the_exit_code(found: Verdicts, word: str, code: int, strict: int) -> None:
    assert found.word == word and exit_code(found) == code and exit_code(found, strict=True) == strict


def test_texts() -> None:
    found = verdicts(GOOD, BAD, missing_nodes={"n3": "no answer"}, incidents=[Incident("bw", "died", failed=True)])
    assert headline(found) == "FAIL: 1 fail, 1 pass of 2 verdicts; correctness was not checked; 1 node missing"
    assert "missing node n3: no answer" in preamble(found) and closing(found)[0] == "failed: bw: died"
    assert sentence(BAD) == "12 us (12 us … 12 us), at most 10 us, 2 launches in 1 round, +20.0 % from the bound"
    assert sentence(LOST) == "not measured"


def test_json_holds_every_launch_and_nothing_that_is_not_finite() -> None:
    told = as_dict(verdicts(OPEN, verdict(8.0)))
    text = json.dumps(told, allow_nan=False, default=str)
    assert json.loads(text)["verdicts"][0]["launches"] == [
        {"launch_id": "r-0", "value": pytest.approx(9.0)},
        {"launch_id": "r-1", "value": pytest.approx(11.0)},
    ]
    assert told["verdicts"][1]["high"] is None

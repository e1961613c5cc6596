"""Ranks, operations and kinds of buffers are a grid: each point is searched, and a rule holds for all of a place."""

from __future__ import annotations

import pytest

from .conftest import Tuned

MOCK = "--mock algorithm=tree:2us:1ns,algorithm=ring:10us:0.1ns,launch=0.01 --candidate ring=MOCK_COLL_ALGORITHM=ring"
SMALL = "-i 5 -x 0 --no-guidelines"


@pytest.mark.slow
def test_a_rule_is_for_all_operations_and_kinds_of_buffers(tune_line: Tuned) -> None:
    code, report, err = tune_line(f"allreduce -n 2,4 -m 64,64K --op sum,max --in-place=both {SMALL} {MOCK}")
    assert code == 0, err
    assert [(rule["ranks"], rule["first_bytes"], rule["setting"]["name"]) for rule in report["rules"]] == [
        (2, 65536, "ring"),
        (4, 65536, "ring"),
    ]
    proved = {(cell["ranks"], cell["op"], cell["in_place"]) for cell in report["proof"]}
    assert proved == {(n, op, where) for n in (2, 4) for op in ("sum", "max") for where in (False, True)}
    assert report["disputed"] == []


@pytest.mark.slow
def test_what_fails_at_one_point_stays_in_at_the_others(tune_line: Tuned) -> None:
    more = "--candidate typo=MOCK_COLL_ALGORITHM=typo"
    code, report, err = tune_line(f"allreduce -n 2,4 -m 64K:64K {SMALL} {MOCK} {more}")
    assert code == 0, err
    assert set(report["excluded"]) == {f"typo (allreduce on {n} ranks, int32, sum)" for n in (2, 4)}
    assert [rule["setting"]["name"] for rule in report["rules"]] == ["ring", "ring"]


@pytest.mark.parametrize(
    ("line", "text"), [("allreduce --in-place=bot", "unknown kind of buffers 'bot': did you mean both?")]
)
def test_a_point_that_does_not_exist_is_one_line(tune_line: Tuned, line: str, text: str) -> None:
    code, _, err = tune_line(f"{line} -n 2 {SMALL} {MOCK}")
    assert (code, err.count("\n")) == (2, 1)
    assert text in err

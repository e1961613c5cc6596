"""The rule table survives its JSON form, and a damaged one is refused with one line."""

from __future__ import annotations

import json
import math

import pytest

from omb_py.errors import UsageError
from omb_py.results.tune.rules import DEFAULT, LibrarySetting, Rule, RuleTable, from_json, to_json

RING = LibrarySetting("ring segsize=8192", (("A_ALGORITHM", "4"), ("A_SEGSIZE", "8192")))
TABLE = RuleTable(
    "Open MPI 5.0.9",
    (Rule("allreduce", 4, 8, 4096, RING, 0.8, 0.75, 0.85), Rule("allreduce", 4, 8192, None, RING, 0.5, 0.4, math.inf)),
    (("hosts", "node1"), ("command", "omb-py tune allreduce -n 4")),
)


def test_a_table_survives_json() -> None:
    assert from_json(to_json(TABLE)) == TABLE
    assert json.loads(to_json(TABLE))["rules"][1]["high"] is None


def test_a_rule_holds_for_its_sizes() -> None:
    first, second = TABLE.rules
    assert [first.holds(size) for size in (4, 8, 4096, 4097)] == [False, True, True, False]
    assert second.holds(1 << 30)
    assert not DEFAULT.variables


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"form": 1, "rules": [{}], "library": "", "who": {}}', '"x"'])
def test_a_damaged_table_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the file is no table of omb-py tune"):
        from_json(text, "the file")


def test_another_form_is_refused() -> None:
    with pytest.raises(UsageError, match="has form 9, and this omb-py reads form 1"):
        from_json('{"form": 9}')

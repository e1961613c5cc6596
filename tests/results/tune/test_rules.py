"""The rule table, and its JSON form."""

from __future__ import annotations

import json
import math

from omb_py.results.tune.rules import DEFAULT, LibrarySetting, Rule, RuleTable, to_json

RING = LibrarySetting("ring segsize=8192", (("A_ALGORITHM", "4"), ("A_SEGSIZE", "8192")))
TABLE = RuleTable(
    "Open MPI 5.0.9",
    (Rule("allreduce", 4, 8, 4096, RING, 0.8, 0.75, 0.85), Rule("allreduce", 4, 8192, None, RING, 0.5, 0.4, math.inf)),
    (("hosts", "node1"), ("command", "omb-py tune allreduce -n 4")),
)


def test_a_table_as_json() -> None:
    data = json.loads(to_json(TABLE))
    assert data["rules"][0]["setting"] == {"name": RING.name, "variables": dict(RING.variables)}
    assert (data["library"], data["who"]["hosts"], data["rules"][1]["high"]) == ("Open MPI 5.0.9", "node1", None)


def test_a_rule_holds_for_its_sizes() -> None:
    first, second = TABLE.rules
    assert [first.holds(size) for size in (4, 8, 4096, 4097)] == [False, True, True, False]
    assert second.holds(1 << 30)
    assert not DEFAULT.variables

"""A small part of what ``python -m tests.results.importers.oracle`` does, and that the oracles see a misreading."""

from __future__ import annotations

from typing import Any

import pytest

from omb_py.results.importers.formats import parse
from omb_py.results.importers.model import Context
from tests.results.importers import oracle
from tests.results.importers.texts import OMB

BCAST = OMB["allreduce_persistent"]
DAMAGED = OMB["alltoallw"].replace("# OSU MPI", "#OSU MPI")


def test_no_number_comes_from_nowhere() -> None:
    rows, wrong = oracle.run(120, 1)
    assert rows > 30 and wrong == []


def test_a_number_that_is_not_in_the_line_of_its_size_is_seen() -> None:
    found = parse(BCAST.encode(), Context("a.log", None))
    assert oracle.misread(BCAST.encode(), found) == []
    found.tables[0].rows[0]["value"] += 0.01
    assert len(oracle.misread(BCAST.encode(), found)) == 1


@pytest.mark.parametrize("name", oracle.PAIRS)
def test_no_damaged_head_puts_rows_under_another_title(name: str) -> None:
    assert list(oracle.mistaken(*oracle.PAIRS[name], every=11)) == []


def test_rows_under_another_title_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def confused(text: str) -> set[tuple[Any, ...]]:
        return {("bcast" if "x" in text[len(first) :] else "allgather", None, 8, 1.0)}

    first, second = "# one\n", "# two\n8 1.0\n"
    monkeypatch.setattr(oracle, "identities", confused)
    assert {row[0] for _, row in oracle.mistaken(first, second)} == {"bcast"}


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (DAMAGED, "could be the title of a further table, and is damaged"),
        (BCAST[BCAST.index("# Size") :], "a second head"),
        (OMB["alltoallw"], ""),
    ],
)
def test_a_table_without_its_title_is_said(second: str, problem: str) -> None:
    found = parse((BCAST + second).encode(), Context("a.log", None))
    assert [problem in str(each) for each in found.problems] == ([True] if problem else [])
    assert [table.benchmark for table in found.tables] == ([] if problem else ["allreduce_persistent", "alltoallw"])

"""No row is misread, and a table that lost its title is left out."""

from __future__ import annotations

import pytest

from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context
from tests.results.dialects import oracle
from tests.results.dialects.texts import OMB

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
    assert list(oracle.mistaken(*oracle.PAIRS[name], every=31)) == []


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


def test_a_table_that_lost_its_title_is_not_given_to_the_one_before_it() -> None:
    assert list(oracle.untitled(every=37)) == []


LATENCY, TYPES = OMB["latency"], OMB["latency -T all"]
INT = "# Datatype: MPI_INT.\n# Size       Avg Latency(us)\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LATENCY + "\n" + INT + "1    2.00\n2    3.00\n", "after rows"),
        (LATENCY + INT.replace("(us)", "(us)  P50 Tail Lat(us)") + "4    2.00    3.00\n", "other columns"),
        (
            LATENCY + INT.replace("INT", "SIGNED_CHAR") + "1  2.00\n2  3.00\n",
            "MPI_CHAR and MPI_SIGNED_CHAR in one table",
        ),
        (LATENCY + INT + "1    6.00\n4    2.00\n", "int32 has 4 B and char has"),
        (TYPES.replace("1.00\n", "1.00\n8    2.00\n"), "char has 8 B and int32 has not"),
        (OMB["5.3 allreduce"] + INT + "4    2.00\n", "after rows"),
        (LATENCY + "# [ pairs: 2 ] [ window size: 64 ]\n" + INT, "after rows"),
        (TYPES, ""),
        (TYPES.replace("1.00\n", f"1.00\n6{'1.00':>27}\n"), ""),
        (TYPES[: TYPES.index("# Datatype: MPI_FLOAT")], ""),
    ],
    ids=range(10),
)
def test_a_second_type_is_one_of_the_same_run_or_the_table_is_left_out(text: str, problem: str) -> None:
    found = parse(text.encode(), Context("a.log", None))
    assert [problem in str(each) for each in found.problems] == ([True] if problem else [])
    assert bool(found.tables) is not bool(problem)


def test_a_wrong_byte_ends_a_run_of_several_types() -> None:
    head = "# Datatype: MPI_{}.\n# Size       Avg Latency(us)        Validation\n"
    rows = "4    1.00    Pass\n8    1.10    Pass\n"
    text = "# OSU MPI Latency Test v7.5\n" + head.format("CHAR") + rows + head.format("INT") + "4    1.20    {}\n"
    assert len(parse(text.format("Fail").encode(), Context("a.log", None)).tables) == 1
    assert "int32 has not" in str(parse(text.format("Pass").encode(), Context("a.log", None)).problems)

"""OMB-Py's text."""

from __future__ import annotations

from typing import Any

import pytest

from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed

LATENCY = """\
# OMB Python MPI Latency Test
# Size (B)      Latency (us)
0                       1.59
1                       1.72
"""
BW = """\
# OMB-Py MPI Bandwidth Test
# Size (B)  Bandwidth (MB/s)
1                       0.89
"""


def read(text: str, **context: Any) -> Parsed:
    return parse(text.encode(), Context(**context))


def test_two_tables() -> None:
    found = read(LATENCY + BW + LATENCY.replace("Latency Test", "Allgather Latency Test"))
    assert not found.problems
    assert [(table.benchmark, len(table.rows), table.launch) for table in found.tables] == [
        ("latency", 2, 0),
        ("bw", 1, 1),
        ("allgather", 2, 2),
    ]
    row = found.tables[1].rows[0]
    assert (row["source"], row["binding"], row["unit"], row["value"], row["ranks"]) == (
        "OMB-Py",
        "mpi4py",
        "MB/s",
        0.89,
        2,
    )
    assert found.tables[2].rows[0]["process_sync"] == "none"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LATENCY[:-3], "line 4: row left out: the file ends within the row"),
        (LATENCY.replace("Latency Test", "Quux Test"), "unknown title"),
        (LATENCY.split("\n", 1)[1], "without its title"),
        ("# OMB-Py MPI Gather Latency Test\n", "no rows"),
    ],
)
def test_damage(text: str, says: str) -> None:
    found = read(text)
    assert len(found.tables) == ("row left out" in says) and says in str(found.problems[0])


def test_a_lost_title_can_be_said() -> None:
    assert read(LATENCY.split("\n", 1)[1], benchmark="multi_lat").tables[0].benchmark == "multi_lat"

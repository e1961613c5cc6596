"""Intel MPI Benchmarks' text."""

from __future__ import annotations

from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed
from tests.results.dialects.imb_texts import MPI1, NBC


def read(text: str) -> Parsed:
    return parse(text.encode(), Context())


def test_tables_of_one_start_are_one_launch() -> None:
    found = read(MPI1 + NBC)
    assert not found.problems
    assert [(table.benchmark, table.launch, len(table.rows)) for table in found.tables] == [
        ("latency", 0, 2),
        ("allreduce", 0, 2),
        ("barrier", 0, 1),
        ("uniband", 0, 1),
        ("iallreduce", 1, 1),
        ("put_latency", 1, 1),
    ]
    assert [table.started_at for table in found.tables] == ["2026-11-21T21:42:43"] * 4 + [None] * 2


def test_a_pingpong() -> None:
    row = read(MPI1).tables[0].rows[1]
    known = {
        "source": "IMB",
        "family": "pt2pt",
        "ranks": 2,
        "size_bytes": 1,
        "value": 3.48,
        "iterations": 20,
        "unit": "us",
        "dtype": "byte",
        "binding_version": "IMB 2021.10",
        "metrics": {"mbytes_per_s": 0.29},
        "process_sync": None,
    }
    assert known.items() <= {**row, "process_sync": row.get("process_sync")}.items()


def test_a_collective_has_the_spread_over_ranks() -> None:
    row = read(MPI1).tables[1].rows[0]
    assert (row["value"], row["metrics"]) == (0.11, {"rank_min_us": 0.06, "rank_max_us": 0.16})
    assert (row["ranks"], row["dtype"], row["op"]) == (4, "float32", "sum")


def test_a_barrier_a_rate_an_overlap_and_a_mode() -> None:
    tables = {table.benchmark: table.rows[0] for table in read(MPI1 + NBC).tables}
    assert (tables["barrier"]["size_bytes"], tables["barrier"]["value"]) == (None, 0.72)
    assert (tables["uniband"]["unit"], tables["uniband"]["value"], tables["uniband"]["metrics"]["message_rate"]) == (
        "MB/s",
        0.23,
        231563,
    )
    assert tables["iallreduce"]["metrics"] == {
        "overall": 3034.57,
        "pure": 2325.02,
        "compute": 3006.57,
        "overlap_pct": 76.4,
    }
    assert tables["put_latency"]["parameters"] == {"mode": "aggregate"}


def test_damage_is_named() -> None:
    found = read(MPI1.replace("0.16         0.11", "0.16"))
    assert str(found.problems[0]) == "line 36: row left out: 4 of 5 columns"
    assert len(found.tables) == 4
    found = read(MPI1.replace("#bytes #repetitions  t_min[usec]", "#bytes #repetitions  t_quux[usec]"))
    assert "unknown column 't_quux[usec]'" in str(found.problems[0])
    found = read(
        NBC.replace(
            "            4           20      3034.57      2325.02      3006.57        76.40",
            "            4 time-out.; x",
        )
    )
    assert not found.problems and len(found.tables) == 1
    assert str(found.notes[0]) == "line 10: IMB's time for Iallreduce was over before its first row"


def test_groups_that_had_no_time_or_memory_left_are_passed_over() -> None:
    table = """\
#----------------------------------------------------------------
# Benchmarking Multi-Allreduce
# ( 2 groups of 2 processes each running simultaneous )
#----------------------------------------------------------------
Group        #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
     0            4           20         0.44         0.45         0.44
     1            4           20         0.46         0.47         0.46
     0            8 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over
     0      1048576 out-of-mem.; Needed X= 0.016 GB; use flag "-mem X" or MAX_MEM_USAGE>=X (IMB_mem_info.h)
"""
    whole = read(MPI1.split("#-----")[0] + table)
    assert not whole.problems
    assert [row["size_bytes"] for row in whole.tables[0].rows] == [4, 4]


CHECKED = """\
# Benchmarking Allreduce
# #processes = 4
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]      defects
            8            3         2.00         2.00         2.00         0.00
           16            3         2.00         2.00         2.00         1.00
           32            3         2.00         2.00         2.00          nan
"""


def test_defects_are_verdicts() -> None:
    [table] = read(CHECKED).tables
    assert [row["validated"] for row in table.rows] == [True, False, False]
    assert [row["validated"] for row in read(MPI1).tables[1].rows] == [None, None]

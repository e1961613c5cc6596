"""Logs as people have them, each with what it says; cases/ holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed

CASES = Path(__file__).parent / "cases"
NCCL = ("ranks", "nodes", "devices", "hosts")


def read(name: str, benchmark: str | None = None, text: str = "") -> Parsed:
    return parse(text.encode() or (CASES / f"{name}.log").read_bytes(), Context(f"{name}.log", benchmark))


def column(found: Parsed, *names: str) -> list[Any]:
    rows = [[row.get(name) for name in names] for table in found.tables for row in table.rows]
    return [row[0] if len(names) == 1 else tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("name", "launches", "facts"),
    [
        ("two_copies", 2, (2, None, 2, None)),
        ("two_copies_old", 2, (1, None, 1, None)),
        ("split", 1, (2, 2, 4, None)),
        ("ranks_elided", 1, (16, None, 16, None)),
        ("tail_only", 1, (72, None, 72, None)),
        ("rccl_no_block", 1, (2, 2, 2, ["nodea", "nodeb"])),
    ],
)
def test_ranks_are_those_of_a_communicator(name: str, launches: int, facts: tuple[Any, ...]) -> None:
    found = read(name)
    assert [table.launch for table in found.tables] == list(range(launches)) and not found.problems
    assert column(found, *NCCL) == [facts] * sum(len(table.rows) for table in found.tables)


def test_groups_are_a_parameter_that_is_never_compared_with_one_communicator() -> None:
    assert column(read("split"), "parameters") == [{"groups": "2"}] * 4


def test_a_list_of_devices_without_its_end_says_nothing() -> None:
    text = (CASES / "ranks_elided.log").read_text().replace("#  Rank 15", "#  Rnk 15")
    found = read("ranks_elided", text=text)
    assert set(column(found, "ranks", "nodes", "devices")) == {(None, None, None)}
    assert column(found, "busbw_gbps") == [19.67, 19.46, 26.21, 26.04]


@pytest.mark.parametrize(("name", "collective"), [("rccl_no_block", "alltoall"), ("rccl_version_line", "allreduce")])
def test_rccl_tests_are_not_nccl_tests(name: str, collective: str) -> None:
    facts = ("source", "binding_version", "library", "library_version", "device", "benchmark")
    version = "2.17.9-develop:0a1b2c3"
    assert set(column(read(name), *facts)) == {
        ("rccl-tests", f"rccl-tests {version}", "RCCL", "2.27.7", "rocm", collective)
    }


@pytest.mark.parametrize(
    ("head", "source"),
    [
        ("RCCL version : 2.27.7-HEAD:1a2b3c4\n", "rccl-tests"),
        ("rccl-tests: Version develop:3f7f785\n", "rccl-tests"),
        ("node01: RCCL version 2.22.3+hip6.3\n", "rccl-tests"),
        ("NCCL version 2.27.3+cuda12.8\n", "nccl-tests"),
    ],
)
def test_each_line_that_tells_rccl(head: str, source: str) -> None:
    lines = (CASES / "info_in_row.log").read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if "out-of-place" in line)
    found = read("x", text="".join([*lines[:at], head, *lines[at:]]))
    assert set(column(found, "source")) == {source}


@pytest.mark.parametrize(
    ("name", "values"),
    [("info_in_row", [100.0, 101.0, 150.0, 151.0, 240.0, 241.0]), ("warn_in_row", [100.0, 101.0, 150.0, 151.0])],
)
def test_a_row_that_a_message_broke_is_whole_again(name: str, values: list[float]) -> None:
    found = read(name)
    assert column(found, "value") == values and not found.problems


def test_a_row_that_lost_its_times_is_named() -> None:
    text = (CASES / "warn_in_row.log").read_text().replace("   100.00   10.49   15.73", "")
    found = read("x", text=text)
    assert column(found, "value") == [150.0, 151.0]
    assert ["has no times" in str(problem) for problem in found.problems] == [True]


def test_a_blank_reduction_is_none() -> None:
    found = read("blank_redop", "alltoall")
    assert column(found, "bytes_total", "value", "op") == [
        (32, 89.0, None),
        (32, 85.13, None),
        (64, 86.83, None),
        (64, 85.77, None),
    ]


def test_a_program_with_a_suffix_is_known() -> None:
    found = read("perf_mpi")
    assert column(found, "benchmark", "library_version", "ranks", "value") == [
        ("allgather", "2.29.7", 2, 42.14),
        ("allgather", "2.29.7", 2, 41.79),
    ]


def test_a_program_that_died_is_called_so() -> None:
    [problem] = read("died_before_rows").problems
    assert "alltoall_perf of nccl-tests ended before its first row: " in str(problem)
    assert "Test NCCL failure" in str(problem)


def test_processes_stand_below_the_title_until_5_8() -> None:
    forked = [(0, 20.05, 2), (1, 20.1, 2), (2, 21.25, 2)]
    found = read("latency_mp_58")
    assert column(found, "size_bytes", "value", "ranks") == forked
    assert column(found, "parameters") == [{"process_counts": "2:2"}] * 3
    both = read("latency_mp_then_bw")
    assert [table.benchmark for table in both.tables] == ["latency_mp", "bw"]
    assert column(both, "value") == [20.05, 20.1, 21.25, 2.85, 5.69] and both.tables[1].rows[0]["parameters"] == {}


@pytest.mark.parametrize(("name", "values"), [("backtrace", [1165.51, 1393.15]), ("backtrace_imb", [1.66, 1.67])])
def test_a_backtrace_costs_no_row(name: str, values: list[float]) -> None:
    found = read(name)
    assert column(found, "value") == values and not found.problems

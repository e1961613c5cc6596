"""Criteria against a plan, before anything is measured."""

from __future__ import annotations

import pytest

from omb_py.cli.suite_options import CommandLine
from omb_py.errors import UsageError
from omb_py.orchestrate.accept.criteria_file import read_criteria
from omb_py.orchestrate.accept.criterion_cells import cases_of, needed, planned, with_mock_ups
from omb_py.orchestrate.planning.plan import plan_launches
from omb_py.orchestrate.suites.expand import Ranks, expand
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.accept.criteria import Case
from tests.support.accepting import HEAD, criterion

SUITE = (
    HEAD
    + """
[[entry]]
benchmarks = ["latency"]
ranks = 2
message-size = "8,1K"
[[entry]]
benchmarks = ["allreduce", "reduce", "bcast"]
ranks = [2, 4]
message-size = "8,64K"
"""
)


def cases(lines: str, ranks: int = 2) -> list[Case]:
    suite = parse_suite(SUITE + criterion(lines), "f.toml")
    made = expand(suite, CommandLine(), {}, Ranks(ranks, ranks, given=True))
    criteria = read_criteria(suite)
    requests, skips = with_mock_ups(made.checked, criteria)
    return cases_of(criteria, planned(plan_launches(requests)), [*made.skips, *skips])


def test_a_case_for_each_cell() -> None:
    found = cases('benchmark = "allreduce"\nmax = "5 us"')
    names = ["a, 8 B, 2 ranks", "a, 64 KiB, 2 ranks", "a, 8 B, 4 ranks", "a, 64 KiB, 4 ranks"]
    assert [case.name for case in found] == names
    assert len({case.cell for case in found}) == 4
    assert [case.name for case in cases('benchmark = "allreduce"\nranks = 4\nmax = "5 us"')] == ["a, 8 B", "a, 64 KiB"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('benchmark = "alltoall"\nmax = "5 us"', "no entry of the suite measures alltoall: it has latency, allreduce"),
        ('benchmark = "latency"\nmessage-size = "16"\nmax = "5 us"', "latency of 16 B: its sizes are 8 B, 1 KiB"),
        ('benchmark = "latency"\nranks = 4\nmax = "5 us"', "no entry measures latency with ranks 4"),
        ('benchmark = "allreduce"\nefficiency = "5%"', "a lower bound needs latency at up to 64 B and from 64 KiB on"),
        ('benchmark = "gather"\nguideline = "allgather"', "no entry of the suite measures gather: it has latency"),
    ],
)
def test_a_criterion_about_nothing_is_refused(lines: str, said: str) -> None:
    with pytest.raises(UsageError, match=r"^f\.toml:\d+: ") as caught:
        cases(lines)
    assert said in str(caught.value)


def test_what_cannot_be_measured_here_is_left_for_an_error() -> None:
    text = HEAD + '[[entry]]\nbenchmarks = ["latency", "bcast"]\n' + criterion('benchmark = "latency"\nmax = "5 us"')
    suite = parse_suite(text, "f.toml")
    made = expand(suite, CommandLine(), {}, Ranks(3, 3, given=True))
    (case,) = cases_of(read_criteria(suite), planned(plan_launches(made.checked)), made.skips)
    assert case.name == "a" and case.cell == "none of a"


def test_a_guideline_is_measured_by_its_own_program() -> None:
    """On the ranks of the entry that has the benchmark, at its sizes or the criterion's."""
    found = cases('benchmark = "allreduce"\nranks = 4\nguideline = "reduce + bcast"')
    assert [(c.facts["benchmark"], c.size, c.facts["ranks"]) for c in found] == [
        ("gl5_allreduce", 8, 4),
        ("gl5_allreduce", 65536, 4),
    ]
    assert [c.name for c in found] == ["a, 8 B", "a, 64 KiB"] and needed(found[:1]) == {found[0].cell}
    at = cases('benchmark = "allreduce"\nmessage-size = "1K"\nguideline = "gl6"')
    assert [(c.facts["benchmark"], c.size) for c in at] == [("gl6_allreduce", 1024)] * 2


def test_a_mock_up_that_cannot_run_here_is_left_for_an_error() -> None:
    (case,) = cases('benchmark = "allreduce"\nranks = 2\nguideline = "gl24node_allreduce"')
    assert case.cell == "none of a"

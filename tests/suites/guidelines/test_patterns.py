"""Guidelines as benchmarks: both sides leave the same bytes, in turn, in one loop."""

from __future__ import annotations

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.groups import group_of
from omb_py.engine.program.language import Lap, Step
from omb_py.errors import UsageError
from omb_py.options.request import Request
from omb_py.suites import names
from omb_py.suites.guidelines import mockups as m
from omb_py.suites.guidelines.hierarchy import parts_of
from omb_py.suites.guidelines.patterns import BENCHMARKS, GUIDELINES, LEFT, PATTERNS, RIGHT, Guideline
from omb_py.testing.faults import InjectedFault, slowed
from tests.support.machines.simulated import cell, checked, measured
from tests.support.planning import check

IN_PARTS = [name for name in GUIDELINES if name.startswith("gl24")]
CASES = [(name, ranks) for name in GUIDELINES for ranks in ((6,) if name in IN_PARTS else (3,))]


@pytest.mark.parametrize(("name", "ranks"), CASES)
def test_both_sides_leave_the_right_bytes(name: str, ranks: int) -> None:
    """Of 11 elements, which no number of ranks here divides."""
    done = measured(name, ranks, size=44, iterations=2, validate=True)
    assert (done.validated, done.wrong_bytes) == (True, 0)
    assert set(done.series) == {LEFT, RIGHT} and all(len(s["max"]) == 2 for s in done.series.values())


def test_a_mock_up_that_forgets_a_step_is_found() -> None:
    def half(c: m.Calls) -> m.GuidelineSide:
        whole = m.reduce_bcast(c)
        return m.GuidelineSide(whole.body[:1], whole.reads, whole.leaves)

    broken = Guideline("gl5_allreduce", "", "allreduce", half)
    assert checked(broken.benchmark, 3, cell("gl5_allreduce", 64)) > 0
    assert checked(GUIDELINES["gl5_allreduce"].benchmark, 3, cell("gl5_allreduce", 64)) == 0


def test_sides_take_turns_and_a_barrier_follows_each() -> None:
    (stage,) = BENCHMARKS["gl9_bcast"].program(World(0, 4), cell("gl9_bcast", 64)).stages
    told = [
        [node.name if isinstance(node, Lap) else node.op for node in body if isinstance(node, Lap | Step)]
        for body in stage.variants
    ]
    left, right = [None, "bcast", LEFT, "barrier"], [None, "scatter", "allgather", RIGHT, "barrier"]
    assert told == [left + right, right + left]


def test_a_wait_is_planted_in_the_left_side_alone() -> None:
    program = BENCHMARKS["gl5_allreduce"].program(World(0, 2), cell("gl5_allreduce", 8))
    (stage,) = slowed(program, InjectedFault("busy", 0, nanoseconds=5000), LEFT).stages
    for body in stage.variants:
        (at,) = [k for k, node in enumerate(body) if isinstance(node, Step) and node.op == "compute"]
        assert body[at + 1] == Lap(LEFT)


def test_the_catalogue() -> None:
    numbers = [int("".join(filter(str.isdigit, g.name.partition("_")[0]))) for g in PATTERNS]
    assert sorted(set(numbers)) == list(range(1, 25))
    assert not set(GUIDELINES) & set(names()), "they are no commands"
    for g in GUIDELINES.values():
        assert g.text.startswith(g.left) and "≤" in g.text


def test_what_a_guideline_refuses() -> None:
    for request, text in (
        (Request("gl5_allreduce", process_sync="roundtime"), "leave --process-sync out"),
        (Request("gl5_allreduce", cache="rotate"), "leave --cache out"),
    ):
        with pytest.raises(UsageError, match=text):
            check(request)


@pytest.mark.parametrize(
    ("hosts", "parts"),
    [
        ("aabb", [(0, 1), (2, 3)]),
        ("aabbcc", [(0, 1), (2, 3), (4, 5)]),
        ("aaaa", [(0, 1), (2, 3)]),
        ("abab", [(0, 1), (2, 3)]),
        ("abcd", [(0, 1), (2, 3)]),
        ("aaab", [(0, 1), (2, 3)]),
    ],
)
def test_ranks_are_cut_into_nodes_or_halves(hosts: str, parts: list[tuple[int, ...]]) -> None:
    """Nodes where they have equally many ranks, two or more, one after the other; else halves."""
    assert parts_of(World(0, len(hosts), tuple(hosts))) == parts


@pytest.mark.parametrize("name", IN_PARTS)
def test_by_nodes(name: str) -> None:
    """On three nodes of two, and the steps between nodes are on as many ranks as there are nodes."""
    done = measured(name, 6, "nodes=3", size=44, iterations=2, validate=True)
    assert (done.validated, done.wrong_bytes) == (True, 0)
    (stage,) = BENCHMARKS[name].program(World(0, 6, tuple("aabbcc")), cell(name, 64)).stages
    groups = {group_of(node) for node in stage.variants[0] if isinstance(node, Step)}
    assert (0, 2, 4) in groups

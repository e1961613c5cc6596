"""No operand of any benchmark leaves its buffer: on every rank, at every size, with every option of the conformance."""

from __future__ import annotations

import pytest

from omb_py.engine.program.benchmark import Benchmark, World
from omb_py.engine.program.language import Blocks, Buffer, Program, Region, Repeat, Stage, body
from omb_py.engine.program.rma import WINDOWS
from omb_py.engine.program.steps import gatherv, send
from omb_py.options.table import change_cell, make_cell
from omb_py.suites.guidelines import patterns
from omb_py.suites.registry import BENCHMARKS
from tests.support.bounds import outside
from tests.support.conformance import cells
from tests.support.kinds import one_of_each

RANKS = (1, 2, 3, 4, 5, 8)
A = Region("a", 0, 8)


def programs(benchmark: Benchmark, ranks: int) -> list[Program]:
    if benchmark.ranks.over_nodes and ranks % 2:
        return []  # two nodes with as many ranks
    found = []
    tried = list(cells("mock", "native", benchmark.name, ranks))
    if benchmark.family == "one-sided":
        tried += [change_cell(cell, window_kind=kind) for cell in tried[:1] for kind in WINDOWS]
    for cell in tried:
        # what differs by type alone moves the same bytes
        if cell.dtype in ("char", "int32", "float64") and cell.buffer == "numpy":
            found += [benchmark.program(World(rank, ranks), cell) for rank in range(ranks)]
    return found


@pytest.mark.parametrize("name", one_of_each(BENCHMARKS))
def test_operands_of_a_benchmark_lie_within_its_buffers(name: str) -> None:
    benchmark = BENCHMARKS[name]
    if not any(benchmark.ranks.admits(ranks) for ranks in RANKS):
        pytest.fail(f"{name} admits none of {RANKS}")
    wrong = {text for ranks in RANKS for program in programs(benchmark, ranks) for text in outside(program)}
    assert not wrong


@pytest.mark.slow
def test_operands_of_a_guideline_lie_within_its_buffers() -> None:
    for name, benchmark in patterns.BENCHMARKS.items():
        for ranks in filter(benchmark.ranks.admits, (2, 3, 4, 8)):
            cell = make_cell(benchmark, "mock", "native", 1024)
            programs = (benchmark.program(World(rank, ranks), cell) for rank in range(ranks))
            assert [text for program in programs for text in outside(program)] == [], name


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (Stage(body(send(Region("a", 9, 8), 1, "char"))), "send 8 B to 1: send is 9 to 17 of a, 16 B"),
        (Stage(body(send(Region("a", -1, 8), 1, "char"))), "is -1 to 7 of a"),
        (Stage(body(Repeat(3, (send(Region("a", 0, 8, stride=8), 1, "char"),)))), "is 0 to 24 of a"),
        (Stage(body(send(Region("a", 0, 8, turn=8), 1, "char")), copies=3), "is 0 to 24 of a"),
        (Stage(body(send(Region("b", 0, 8), 1, "char"))), "of b, None B"),
        (Stage(body(gatherv(A, Blocks("a", (8, 4), (0, 13)), 0, "char"))), "is 0 to 17 of a"),
        (Stage((), setup=(send(Region("a", 0, 17), 1, "char"),)), "is 0 to 17 of a"),
    ],
)
def test_what_lies_outside_is_found(stage: Stage, words: str) -> None:
    [text] = outside(Program((Buffer("a", 16),), (stage,)))
    assert words in text


def test_what_just_fits_is_not() -> None:
    inside = (Repeat(2, (send(Region("a", 0, 8, stride=8), 1, "char"),)), send(Region("a", 16, 0), 1, "char"))
    assert not list(outside(Program((Buffer("a", 16),), (Stage((inside,)),))))

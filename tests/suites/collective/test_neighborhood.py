"""Neighborhood collectives: the edges of grids and graphs, and the blocks that travel over them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Blocks, Region, Step
from omb_py.grammar.graphs import has_repeated_neighbors
from omb_py.options.table import change_cell
from omb_py.suites.collective.neighborhood import edges, grid_edges
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell

GRAPH = "graph:0>1,1>0,0>2,0>1"


@given(st.integers(1, 24), st.integers(1, 3), st.integers(1, 2))
def test_a_grid_has_omb_s_degree_and_every_edge_two_ends(ranks: int, dimensions: int, radius: int) -> None:
    found = [grid_edges(ranks, rank, dimensions, radius) for rank in range(ranks)]
    degree = (2 * radius + 1) ** dimensions - 1
    assert all(len(sources) == len(targets) == degree for sources, targets in found)
    sent = Counter((rank, to) for rank in range(ranks) for to in found[rank][1])
    received = Counter((source, rank) for rank in range(ranks) for source in found[rank][0])
    assert sent == received


@given(st.integers(1, 24), st.integers(1, 3), st.integers(1, 2))
def test_neighbors_repeat_where_a_dimension_is_too_short(ranks: int, dimensions: int, radius: int) -> None:
    sources, _ = grid_edges(ranks, 0, dimensions, radius)
    repeat = len({0, *sources}) < 1 + len(sources)
    assert has_repeated_neighbors(f"cart:{dimensions}:{radius}", ranks) == repeat


def test_a_line_has_its_neighbors_on_both_sides() -> None:
    assert grid_edges(4, 0, 1, 1) == ((1, 3), (3, 1))
    assert grid_edges(5, 2, 1, 2) == ((4, 3, 1, 0), (0, 1, 3, 4))


def test_a_graph_s_edges_are_those_written() -> None:
    found = [edges(World(rank, 3), cell("neighbor_alltoall", neighborhood=GRAPH)) for rank in range(3)]
    assert found == [((1,), (1, 2, 1)), ((0, 0), (0,)), ((0,), ())]


@pytest.mark.parametrize(
    ("op", "send", "recv"),
    [
        ("allgather", Region("send", 0, 8), Region("recv", 0, 16)),
        ("allgatherv", Region("send", 0, 8), Blocks.packed("recv", (8, 8))),
        ("alltoall", Region("send", 0, 16), Region("recv", 0, 16)),
        ("alltoallv", Blocks.packed("send", (8, 8)), Blocks.packed("recv", (8, 8))),
        ("alltoallw", Blocks.packed("send", (8, 8)), Blocks.packed("recv", (8, 8))),
    ],
)
def test_a_block_goes_to_each_neighbor_and_one_comes_from_each(op: str, send: object, recv: object) -> None:
    program = BENCHMARKS[f"neighbor_{op}"].program(World(0, 3), cell(f"neighbor_{op}", 8))
    call = program.stages[0].variants[0][1]
    assert isinstance(call, Step) and (call["send"], call["recv"]) == (send, recv)
    assert call.edges == ((1, 2), (2, 1))


def test_a_block_for_nobody_is_named() -> None:
    """Two ranks that disagree about an edge: the one that waits for a block says so."""
    from omb_py.engine.measuring.measure import measure
    from omb_py.engine.program.benchmark import Benchmark
    from omb_py.engine.session import StepFailed
    from tests.support.machines.simulated import session

    whole = BENCHMARKS["neighbor_alltoall"]

    def program(world, what):  # type: ignore[no-untyped-def]

        return whole.program(world, change_cell(what, neighborhood="graph:0>1" if world.rank else "graph:1>0"))

    from dataclasses import replace

    broken: Benchmark = replace(whole, program=program)
    with pytest.raises(StepFailed, match="expects a block from"):
        measure(session(2), broken, cell("neighbor_alltoall", 8))

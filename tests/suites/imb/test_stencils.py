"""Exchange with the neighbors of a grid: who they are, which grids there are, the calls and the printed number."""

from __future__ import annotations

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Step, walk
from omb_py.grammar.graphs import dims_create
from omb_py.suites.imb.stencils import neighbors
from omb_py.suites.registry import find
from tests.support.machines.simulated import cell, measured


@pytest.mark.parametrize(
    ("rank", "lengths", "expected"),
    [
        (0, (2, 2), [1, 1, 2, 2]),
        (4, (3, 3), [3, 5, 1, 7]),
        (0, (3, 2), [1, 1, 4, 2]),
        (11, (3, 2, 2), [10, 10, 9, 9, 7, 3]),
    ],
)
def test_neighbors_are_before_and_after_in_each_dimension(
    rank: int, lengths: tuple[int, ...], expected: list[int]
) -> None:
    assert neighbors(rank, lengths) == expected


@pytest.mark.parametrize(("ranks", "dimensions"), [(6, 2), (12, 2), (8, 3), (12, 3)])
def test_a_neighbor_has_this_rank_as_its_own(ranks: int, dimensions: int) -> None:
    lengths = dims_create(ranks, dimensions)
    for rank in range(ranks):
        for place, peer in enumerate(neighbors(rank, lengths)):
            assert neighbors(peer, lengths)[place ^ 1] == rank


def test_receives_are_posted_before_sends_and_all_are_waited_for_at_once() -> None:
    (stage,) = find("stencil2d").program(World(0, 4), cell("stencil2d")).stages
    ops = [(node.op, node.operands.get("peer")) for node, _ in walk(stage.variants[0]) if isinstance(node, Step)]
    posts = [(op, peer) for op in ("irecv", "isend") for peer in (1, 1, 2, 2)]
    assert ops == [*posts, ("waitall", None)]


@pytest.mark.parametrize(("name", "ranks", "messages"), [("stencil2d", 4, 4), ("stencil3d", 8, 6)])
def test_the_time_is_that_of_a_message(name: str, ranks: int, messages: int) -> None:
    done = measured(name, ranks, "alpha=12us,beta=0ns")
    assert done.laps["time"] == [pytest.approx(12 / messages)] * ranks

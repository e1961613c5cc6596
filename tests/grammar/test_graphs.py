"""``-N``: grids and graph files."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.grammar.graphs import check_graph, dims_create, parse_neighborhood


@pytest.mark.parametrize("text", ["cart:1:1", "cart:2:3", "cart:3:1"])
def test_a_grid_is_itself(text: str) -> None:
    assert parse_neighborhood(f" {text} ") == text


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1), st.booleans())
def test_a_file_gives_its_edges_in_order(tmp_path_factory: pytest.TempPathFactory, edges: list, notes: bool) -> None:
    path = tmp_path_factory.mktemp("graph") / "edges"
    note = "  # as drawn" if notes else ""
    path.write_text("# source, target\n\n" + "".join(f" {a} ,{b}{note}\n" for a, b in edges))
    assert parse_neighborhood(f"graph:{path}") == "graph:" + ",".join(f"{a}>{b}" for a, b in edges)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("crt:1:1", "write cart:DIMENSIONS:RADIUS or graph:FILE"),
        ("cart", "write cart:DIMENSIONS:RADIUS"),
        ("cart:1", "write cart:DIMENSIONS:RADIUS, as cart:1:1"),
        ("cart:x:1", "as cart:1:1"),
        ("cart:0:1", "1 to 8 dimensions"),
        ("cart:8:4", "at most 65535 neighbors"),
        ("graph:", "graph:FILE"),
        ("graph:/nowhere/at/all", "No such file"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_neighborhood(text)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [("0, 1\n1; 2\n", ":2: '1; 2' is no edge"), ("0, x", ":1: '0, x'"), ("1, 2, 3", ":1:"), ("# none\n", "no edge")],
)
def test_a_bad_line_is_named(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "graph"
    path.write_text(content)
    with pytest.raises(UsageError, match="graph") as caught:
        parse_neighborhood(f"graph:{path}")
    assert said in str(caught.value)


def test_edges_must_end_at_ranks_that_are_there() -> None:
    check_graph("graph:0>1,1>0", 2)
    check_graph("cart:3:3", 2)
    with pytest.raises(UsageError, match="edge 0>2, but the ranks are 0 to 1"):
        check_graph("graph:1>0,0>2", 2)


@given(st.integers(1, 200), st.integers(1, 4))
def test_dimensions_multiply_to_the_ranks_and_do_not_increase(ranks: int, dimensions: int) -> None:
    dims = dims_create(ranks, dimensions)
    assert prod(dims) == ranks and len(dims) == dimensions
    assert list(dims) == sorted(dims, reverse=True)


@pytest.mark.parametrize(
    ("ranks", "dims"), [(4, (2, 2)), (12, (4, 3)), (8, (4, 2)), (7, (7, 1)), (36, (6, 6)), (16, (4, 4)), (1, (1, 1))]
)
def test_dimensions_are_as_equal_as_can_be(ranks: int, dims: tuple[int, int]) -> None:
    assert dims_create(ranks, 2) == dims

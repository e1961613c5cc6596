from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.grammar.traffic import blocks, check_traffic, largest, matrix_of, parse_traffic
from omb_py.options.request import Request
from tests.support.machines.simulated import measured
from tests.support.planning import plan


def _write(folder: Path, text: str) -> str:
    file = folder / "matrix.txt"
    file.write_text(text)
    return str(file)


def test_a_file_is_read_with_commas_blanks_and_comments(tmp_path: Path) -> None:
    text = parse_traffic(_write(tmp_path, "# who sends what\n0, 2.5\n1 0  # little\n"))
    assert text == "0,2.5;1,0" and matrix_of(text, 2) == ((0.0, 2.5), (1.0, 0.0))
    check_traffic(text, 2)
    with pytest.raises(UsageError, match="for 2 ranks, not 3: use -n 2"):
        check_traffic(text, 3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 1\n1 0 2\n", "matrix.txt:2: 3 numbers, and 2 in the lines before"),
        ("0 1\n", "has 1 lines of 2 numbers"),
        ("0 x\n1 0\n", "matrix.txt:1: '0 x' are no numbers"),
        ("0 -1\n1 0\n", "0 or more"),
        ("0 inf\n1 0\n", "0 or more"),
        ("0 0\n0 0\n", "no number above 0"),
        ("", "has 0 lines"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_traffic(_write(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        parse_traffic(str(tmp_path / "none"))


@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 50), min_size=n, max_size=n), min_size=n, max_size=n)
    ),
    st.integers(1, 10_000),
    st.sampled_from([1, 2, 4, 8]),
)
def test_blocks_are_whole_elements_and_no_more_than_asked_for(rows: list[list[int]], mean: int, item: int) -> None:
    if not any(map(any, rows)):
        rows[0][0] = 1
    text = ";".join(",".join(map(str, row)) for row in rows)
    n = len(rows)
    made = blocks(text, mean, item, n)
    assert all(size % item == 0 for row in made for size in row)
    total = sum(map(sum, made))
    assert mean * n * n - n * n * item <= total <= mean * n * n
    assert all((size == 0) or rows[i][j] for i, row in enumerate(made) for j, size in enumerate(row))
    assert largest(text, mean, item, n) >= total / n


def test_equal_numbers_are_a_plain_alltoallv() -> None:
    assert blocks("7,7;7,7", 24, 8, 2) == ((24, 24), (24, 24)) and largest("7,7;7,7", 24, 8, 2) == 48


def test_a_spread_sends_what_nccl_tests_send() -> None:
    """At 1008 B a rank over 3 ranks, as AlltoAllvGetPeerBytesDistanceWeighted says."""
    assert blocks(parse_traffic("spread:1"), 336, 4, 3) == ((0, 336, 672), (672, 0, 336), (336, 672, 0))
    assert blocks(parse_traffic("spread:0.0"), 336, 4, 3) == ((336,) * 3,) * 3
    assert blocks("spread:0.5", 336, 4, 3)[0] == (160, 336, 496)  # 168 and 504, cut to 16 bytes
    assert blocks("spread:1", 336, 4, 1) == ((336,),)
    with pytest.raises(UsageError, match=r"a spread is a number from 0 to 1, not '2': --traffic spread:0\.5"):
        parse_traffic("spread:2")


@pytest.mark.parametrize("matrix", ["0,1,2;4,0,0;1,1,0", "spread:0.7"])
def test_every_byte_of_a_matrix_arrives(matrix: str) -> None:
    done = measured("alltoallv", 3, "", size=48, dtype="int32", traffic=matrix, validate=True, iterations=2)
    assert done.wrong_bytes == 0


@pytest.mark.parametrize("more", [{"in_place": True}, {"imbalance": 0.5}])
def test_it_stands_alone(more: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="--traffic does not go together with"):
        plan(Request("alltoallv", traffic="0,1;1,0", **more), 2)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="allreduce has no blocks that a matrix gives"):
        plan(Request("allreduce", traffic="0,1;1,0"), 2)

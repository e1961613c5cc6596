"""Rows as nccl-tests' text: split into its thirteen words and read back; rows measured otherwise are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.engine.dtypes import DTYPES
from omb_py.errors import UsageError
from omb_py.results.nccl_text import TYPES, WORDS, check, footer, header, line, parse

REAL = (
    "     1048576        262144     float     sum      -1    27.76   37.78   66.11       0"
    "    27.49   38.15   66.76       0"
)
"""A line that nccl-tests printed, of 8 GPUs."""


def row(**more: Any) -> dict[str, Any]:
    return {
        "benchmark": "allreduce", "size_bytes": 1048576, "bytes_total": 1048576, "dtype": "float32", "op": "sum",
        "root": None, "ranks": 8, "timing": "pipelined", "bw_formula": "nccl-tests:all_reduce", "value": 27.76,
        "algbw_gbps": 37.78, "busbw_gbps": 66.11, "wrong_bytes": 0, "in_place": False, **more,
    }  # fmt: skip


def test_a_line_is_that_of_nccl_tests_to_the_character() -> None:
    inside = row(value=27.49, algbw_gbps=38.15, busbw_gbps=66.76)
    assert line(row(), inside) == REAL + "\n"


def test_the_header_stands_over_the_columns() -> None:
    names = header().splitlines()[2]
    assert names.lstrip("# ").split() == list(WORDS)
    for word in ("size", "count", "root"):
        end = names.index(word) + len(word)
        assert REAL[end - 1] != " " and (end == len(REAL) or REAL[end] == " ")


numbers = st.floats(0, 1e6, allow_nan=False).map(lambda x: round(x, 2))


@given(
    st.sampled_from(sorted(TYPES)), st.integers(0, 1 << 33), st.sampled_from(["sum", "prod", "min", "max", None]),
    st.one_of(st.none(), st.integers(0, 4096)), numbers, numbers, st.one_of(st.none(), numbers),
    st.one_of(st.none(), st.integers(0, 1 << 40)), st.booleans(),
)  # fmt: skip
def test_what_is_printed_is_read_back(
    dtype: str, size: int, op: str | None, root: int | None, us: float, algbw: float, busbw: float | None,
    wrong: int | None, both: bool,
) -> None:  # fmt: skip
    item = DTYPES[dtype].itemsize
    made = row(
        dtype=dtype, size_bytes=size * item, bytes_total=size * item, op=op, root=root, value=us, algbw_gbps=algbw,
        busbw_gbps=busbw, wrong_bytes=wrong,
    )  # fmt: skip
    text = line(made, made if both else None)
    assert len(text.split()) == 13
    found = parse(text)
    assert (found.size, found.count, found.type) == (size * item, size, TYPES[dtype])
    assert (found.redop, found.root) == (op or "none", -1 if root is None else root)
    assert found.out_of_place[0] == pytest.approx(us, rel=1e-4, abs=0.51)
    assert found.out_of_place[2] == pytest.approx(busbw or 0.0, rel=1e-3, abs=0.51)
    if wrong is None:
        assert found.out_of_place[3] is None
    else:
        assert found.out_of_place[3] == pytest.approx(-(-wrong // item), rel=1e-5)
    assert found.in_place == (found.out_of_place if both else (None,) * 4)


def test_sizes_and_counts_are_those_of_nccl_tests() -> None:
    gathered = row(
        benchmark="allgather", size_bytes=1024, bytes_total=8192, bw_formula="nccl-tests:all_gather", op=None
    )  # fmt: skip
    assert (parse(line(gathered, None)).size, parse(line(gathered, None)).count) == (8192, 256)
    scattered = row(size_bytes=8192, bytes_total=8192, bw_formula="nccl-tests:reduce_scatter")
    assert parse(line(scattered, None)).count == 256


def test_a_broadcast_is_in_place() -> None:
    found = parse(line(row(bw_formula="nccl-tests:broadcast", op=None, root=0), None))
    assert found.out_of_place[0] is None and found.in_place[0] == 27.76 and found.root == 0


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"timing": "local_max"}, "was timed local_max, nccl-tests time pipelined"),
        ({"timing": "event"}, "was timed event"),
        ({"bw_formula": None}, "no such operation"),
        ({"dtype": "complex64"}, "no type complex64"),
    ],
)
def test_rows_measured_otherwise_are_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check(row(**more))
    with pytest.raises(UsageError, match=says):
        line(row(), row(**more))


def test_the_end_says_whether_anything_was_wrong() -> None:
    assert footer([row(), row(busbw_gbps=33.89)]) == (
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 50\n#\n"
    )  # fmt: skip
    assert "3 FAILED" in footer([row(wrong_bytes=3)])
    assert "Out of bounds" not in footer([row(wrong_bytes=None)])


@pytest.mark.parametrize("text", ["", "1 2 3", REAL + " 7"])
def test_other_lines_are_no_rows(text: str) -> None:
    with pytest.raises(ValueError, match="words"):
        parse(text)

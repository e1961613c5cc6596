"""The grammar of -D."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.engine.program.datatype_layouts import pieces_of
from omb_py.errors import UsageError
from omb_py.grammar.layouts import parse_layout


@pytest.mark.parametrize(
    ("text", "layout"), [("cont", "cont"), ("vect:8:4", "vect:8:4"), (" vect:08:1 ", "vect:8:1"), ("vect", "vect:8:4")]
)
def test_forms(text: str, layout: str) -> None:
    assert parse_layout(text) == layout


@given(st.integers(1, 1 << 20), st.integers(1, 1 << 20))
def test_vectors_whose_block_fits_into_the_stride(stride: int, block: int) -> None:
    if block > stride:
        with pytest.raises(UsageError, match="a block of 1 to STRIDE"):
            parse_layout(f"vect:{stride}:{block}")
    else:
        assert pieces_of(parse_layout(f"vect:{stride}:{block}")) == (((0, block),), stride)


@given(st.text(max_size=30))
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    if text.strip().partition(":")[0] in ("cont", "vect", "indx"):
        return
    with pytest.raises(UsageError) as caught:
        parse_layout(text)
    assert "write cont, vect:STRIDE:BLOCK, indx:FILE or once:FILE" in str(caught.value)


def test_a_file_of_pieces(tmp_path: Path) -> None:
    file = tmp_path / "pieces"
    file.write_text("# what travels\n0, 2\n\n4,1 # one more\n")
    assert parse_layout(f"indx:{file}") == "indx:0+2,4+1"
    assert pieces_of("indx:0+2,4+1") == (((0, 2), (4, 1)), 5)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0, 2\nx, 1\n", "2: 'x, 1' is no piece: write DISPLACEMENT, LENGTH"),
        ("0\n", "1: '0' is no piece"),
        ("0, 0\n", "1: '0, 0' is no piece"),
        ("-1, 2\n", "1: '-1, 2' is no piece"),
        ("0, 3\n2, 2\n", "2: the piece begins at 2, but the one before ends at 3"),
        ("# nothing\n", "has no piece"),
    ],
)
def test_a_bad_line_is_named(text: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "pieces"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        parse_layout(f"indx:{file}")
    assert why in str(caught.value) and str(file) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        parse_layout(f"indx:{tmp_path / 'none'}")

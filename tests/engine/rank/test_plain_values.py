"""What ranks tell each other comes back as it went, and never runs code."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.engine.rank.plain_values import decode, encode

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
KEYS = st.text() | st.integers() | st.tuples(st.integers(), st.integers())
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner), max_leaves=20
)


def same(a: Any, b: Any) -> bool:
    """Equal, and of the same types all the way down: 1, True and 1.0 are three values."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return [*a] == [*b] and all(map(same, a.values(), b.values())) and all(map(same, a, b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.mark.slow
@given(VALUES)
def test_a_value_comes_back_as_it_went(value: Any) -> None:
    text = encode(value)
    assert b"\n" not in text
    assert same(decode(text), value)


@pytest.mark.parametrize("value", [{"~": 1}, {"~": ["tuple", 1]}, {"a": {"~": "x"}}, {"~": {}}])
def test_what_looks_like_a_tag_is_no_tag(value: Any) -> None:
    assert same(decode(encode(value)), value)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("f8", (0,)), ("<i4", (3,)), (">f4", (2, 3)), ("u1", (2, 3)), ("bool", (3,)), ("i8", (2, 3))]
)
def test_arrays_keep_type_shape_and_content(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    back = decode(encode((array, {"strided": array[..., ::2]})))
    np.testing.assert_array_equal(back[0], array, strict=True)
    np.testing.assert_array_equal(back[1]["strided"], array[..., ::2], strict=True)
    back[0][...] = 0  # it is ours


def test_not_a_number_and_infinity_survive() -> None:
    nan, inf = decode(encode([float("nan"), np.float32("-inf")]))
    assert math.isnan(nan) and inf == -math.inf


def test_numpy_scalars_become_python_numbers() -> None:
    assert same(decode(encode([np.int64(3), np.float64(0.5), np.bool_(True)])), [3, 0.5, True])


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, np.array([object()]), np.array(["text"]), print])
def test_other_values_are_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match=f"of type {type(value).__name__}"):
        encode(value)


PAYLOADS = [
    pickle.dumps(print),
    b"",
    b"[",
    b"[" * 100_000,
    b'{"~":["object","os.system"]}',
    b'{"~":[]}',
    b'{"~":7}',
    b'{"~":["bytes",1]}',
    b'{"~":["bytes","%"]}',
    b'{"~":["dict",[[1],2]]}',
    b'{"~":["dict",[1]]}',
    json.dumps({"~": ["array", "|O", [1], "AAAAAAAAAAA="]}).encode(),
    json.dumps({"~": ["array", "<f8", [9], "AAAAAAAAAAA="]}).encode(),
    json.dumps({"~": ["array", "nonsense", [1], ""]}).encode(),
]


@pytest.mark.parametrize("text", PAYLOADS)
def test_anything_else_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):
        decode(text)

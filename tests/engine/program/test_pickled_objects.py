from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.engine.program.buffers import OBJECT_ITEM_BYTES, OBJECTS
from omb_py.engine.program.pickled_objects import make, payload_of


@pytest.mark.parametrize("kind", OBJECTS)
@given(data=st.data())
def test_a_pickled_object_gives_back_the_bytes_that_it_was_made_of(kind: str, data: st.DataObject) -> None:
    items = data.draw(st.integers(0, 40))
    whole = np.frombuffer(data.draw(st.binary(min_size=640, max_size=640)), np.uint8)[: items * OBJECT_ITEM_BYTES[kind]]
    there = pickle.loads(pickle.dumps(make(kind, whole, "char"), 5))
    found = payload_of(kind, there)
    assert found is not None and found.tobytes() == whole.tobytes()


@pytest.mark.parametrize("kind", OBJECTS)
def test_another_thing_has_no_payload_or_another_one(kind: str) -> None:
    data = np.arange(32, dtype=np.uint8)
    for thing in (None, 5, "text", [object()], {"key": 1}):
        found = payload_of(kind, thing)
        assert found is None or found.tobytes() != data.tobytes()


@pytest.mark.parametrize("kind", OBJECTS)
def test_one_other_byte_is_another_payload(kind: str) -> None:
    data = np.arange(32, dtype=np.uint8)
    for place in range(32):
        other = data.copy()
        other[place] ^= 255
        found = payload_of(kind, make(kind, other, "char"))
        assert found is not None and np.flatnonzero(found != data).tolist() == [place]


def test_an_array_has_elements_and_memory_of_its_own() -> None:
    data = np.arange(16, dtype=np.uint8)
    array = make("ndarray", data, "float64")
    assert array.dtype == np.float64 and not np.shares_memory(array, data)

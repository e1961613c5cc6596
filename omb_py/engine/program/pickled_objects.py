"""Python objects whose content is known: made of the payload's bytes, and turned back into them for the checks.

Kinds: ``bytes`` (one block, pickling copies it), ``ndarray`` (one block behind a header, may go out of band), ``list``
(of integers of 8 bytes), ``dict`` (text keys, such integers as values), ``dataclass`` (a list of records of two).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.program.dtypes import DTYPES

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Record:
    """An item of kind ``dataclass``: 16 bytes of payload."""

    first: int
    second: int


def _numbers(data: Bytes) -> list[int]:
    out: list[int] = data.view(np.int64).tolist()
    return out


_MAKE: Final[Mapping[str, Callable[[Bytes, str], object]]] = {
    "bytes": lambda data, dtype: data.tobytes(),
    "ndarray": lambda data, dtype: data.copy().view(DTYPES[dtype].numpy),
    "list": lambda data, dtype: _numbers(data),
    "dict": lambda data, dtype: {f"key{k}": number for k, number in enumerate(_numbers(data))},
    "dataclass": lambda data, dtype: [Record(*pair) for pair in data.view(np.int64).reshape(-1, 2).tolist()],
}
_UNMAKE: Final[Mapping[str, Callable[[Any], object]]] = {
    "bytes": lambda value: np.frombuffer(value, np.uint8),
    "ndarray": lambda value: value,
    "list": lambda value: np.array(value, np.int64),
    "dict": lambda value: np.array([value[f"key{k}"] for k in range(len(value))], np.int64),
    "dataclass": lambda value: np.array([(r.first, r.second) for r in value], np.int64),
}


def make(kind: str, data: Bytes, dtype: str) -> object:
    """An object whose payload is `data`; an ``ndarray`` has elements of `dtype`.

    The bytes must be a multiple of the kind's item (:data:`omb_py.engine.program.buffers.OBJECT_ITEM_BYTES`).
    """
    return _MAKE[kind](data, dtype)


def payload_of(kind: str, value: object) -> Bytes | None:
    """The bytes of an object's payload; None when it is no object of this kind."""
    try:
        return np.ascontiguousarray(_UNMAKE[kind](value)).reshape(-1).view(np.uint8)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
        return None

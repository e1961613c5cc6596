"""Values that ranks tell each other, as JSON: nothing that comes over a socket is ever unpickled.

None, bool, int, float, str, bytes, list, tuple, dict and arrays of numbers come back as they went. What JSON lacks
stands in an object with the one key ``~``, whose value begins with a kind: ``{"~": ["tuple", 1, 2]}``.
"""

from __future__ import annotations

import base64
import json
import sys
from array import array
from types import ModuleType
from typing import Any, Final

from omb_py.grammar.json_values import JsonValue

_TAG: Final = "~"
_NUMBERS: Final = frozenset("biuf")
"""Kinds of NumPy's types that an array may have: none that holds Python objects."""


def encode(value: object) -> bytes:
    """A value as one line of JSON without its end. Raises TypeError for a value of another type."""
    return json.dumps(_plain(value), separators=(",", ":")).encode()


def decode(text: bytes) -> Any:
    """The value that :func:`encode` wrote. Raises ValueError for anything else."""
    try:
        return _value(json.loads(text))
    except (RecursionError, TypeError, LookupError) as error:
        raise ValueError(f"not a value: {error}") from None


def _plain(value: object) -> JsonValue:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return {_TAG: ["tuple", *(_plain(item) for item in value)]}
    if isinstance(value, dict):
        if _TAG not in value and all(isinstance(key, str) for key in value):
            return {key: _plain(item) for key, item in value.items()}
        return {_TAG: ["dict", *([_plain(key), _plain(item)] for key, item in value.items())]}
    if isinstance(value, (bytes, bytearray)):
        return {_TAG: ["bytes", base64.b64encode(value).decode()]}
    if isinstance(value, array):
        return {_TAG: ["numbers", value.typecode, base64.b64encode(value.tobytes()).decode()]}
    if (numpy := sys.modules.get("numpy")) is not None:  # where it is not loaded no value is NumPy's
        return _convert_numpy(value, numpy)
    raise _refuse_value(value)


def _convert_numpy(value: object, np: ModuleType) -> JsonValue:
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS:
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {_TAG: ["array", value.dtype.str, list(value.shape), data]}
    raise _refuse_value(value)


def _refuse_value(value: object) -> TypeError:
    return TypeError(f"ranks do not tell each other values of type {type(value).__name__}")


def _value(plain: object) -> object:
    if isinstance(plain, list):
        return [_value(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if _TAG not in plain:
        return {key: _value(item) for key, item in plain.items()}
    kind, *parts = plain[_TAG]
    if kind == "tuple":
        return tuple(_value(item) for item in parts)
    if kind == "dict":
        return {_value(key): _value(item) for key, item in parts}
    if kind == "bytes":
        return base64.b64decode(parts[0], validate=True)
    if kind == "numbers" and parts[0] in ("d", "q"):
        return array(parts[0], base64.b64decode(parts[1], validate=True))
    if kind == "array":
        import numpy as np

        dtype = np.dtype(parts[0])
        if dtype.kind in _NUMBERS:
            return np.frombuffer(base64.b64decode(parts[2], validate=True), dtype).reshape(parts[1]).copy()
    raise ValueError(f"not a value: {kind!r}")

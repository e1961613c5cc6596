"""Reductions of two vectors, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

REDUCTIONS: Final[Mapping[str, np.ufunc]] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
    "land": np.logical_and,
    "lor": np.logical_or,
    "lxor": np.logical_xor,
}


def work_type(reduction: np.ufunc, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which a reduction works: MPI, unlike NumPy, does not widen sums of small integers."""
    return np.dtype(bool) if reduction.__name__.startswith("logical") else dtype

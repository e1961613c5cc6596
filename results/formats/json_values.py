"""Values of NumPy, pandas and Arrow as plain Python values, which JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """Convert a value for JSON: NumPy and pandas types to Python's, times to ISO text, NaN and NA to None."""
    if hasattr(value, "isoformat"):
        return None if value != value else value.isoformat()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (str, int)):
        return value
    return None if type(value).__name__ == "NAType" else str(value)

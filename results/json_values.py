"""JSON of values of NumPy, pandas and Arrow."""

from __future__ import annotations

import json
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


def read_object(line: str | bytes) -> dict[str, Any] | None:
    """The object in a line of a log; None where the run was cut off while it wrote it."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def json_text(data: Mapping[str, object]) -> str:
    """One JSON object with a line end. Numbers that are not finite, which JSON cannot hold, become null."""
    return json.dumps(plain(data), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

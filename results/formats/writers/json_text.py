"""Write a document as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from omb_py.results.formats.document import Document


def to_json(document: Document) -> str:
    """The machine-readable form of a document as one object."""
    return json_text(document.data())


def json_text(data: Mapping[str, Any]) -> str:
    """One JSON object with a line end. Numbers that are not finite, which JSON cannot hold, become null."""
    return json.dumps(_finite(data), indent=1, allow_nan=False, ensure_ascii=False, default=str) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

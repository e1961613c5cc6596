"""Types of what JSON can hold, to use in place of Any for a value that was read from JSON or will be written as it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""Any value of JSON; a reader narrows it with isinstance."""
JsonObject: TypeAlias = "Mapping[str, JsonValue]"
"""An object of JSON: a mapping from names to values."""

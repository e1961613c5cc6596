"""Numbers and sizes as people read them."""

from __future__ import annotations

import math
from typing import Any

from omb_py.results.formats.tables import plain

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size_text(size_bytes: Any) -> str:
    """A size for a reader: exact, in the largest binary unit that divides it. ``8192`` is ``8 KiB``.

    >>> size_text(1536)
    '1536 B'
    """
    number = number_of(size_bytes)
    if math.isnan(number):
        return "-"
    size = int(number)
    for unit, name in _UNITS:
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def counted(count: int, word: str) -> str:
    """``1 launch``, ``3 launches``."""
    ending = "es" if word.endswith(("ch", "s", "x")) else "s"
    return f"{count} {word if count == 1 else word + ending}"


def share_text(share: float) -> str:
    """A fraction in per cent, not rounded to whole ones.

    >>> share_text(0.999)
    '99.9%'
    """
    return f"{100 * share:g}%"


def number_of(value: Any) -> float:
    """NaN for None and for pandas' NA."""
    found = plain(value)
    return math.nan if found is None else float(found)

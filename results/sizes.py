"""Sizes as text."""

from __future__ import annotations

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def exact_size(size: int) -> str:
    """Bytes for a reader: exact, in the largest binary unit that divides them.

    >>> exact_size(8192), exact_size(1536)
    ('8 KiB', '1536 B')
    """
    for unit, name in _UNITS:
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"

"""The SHA-256 that a file of the store carries of itself.

It stands in the footer under :data:`KEY`, and is the hash of all bytes of the file with the 64 digits replaced by
zeros. So it travels with the file, covers samples, footer and provenance alike, and needs no list beside the store.
"""

from __future__ import annotations

import hashlib
import re

KEY = b"omb_py.sha256"
_MARK = b"sha256:"
_DIGITS = 64
BLANK = _MARK + b"0" * _DIGITS
"""What is written under :data:`KEY` before :func:`seal`."""
_PLACE = re.compile(re.escape(KEY) + rb".{1,4}?" + _MARK + rb"([0-9a-f]{64})", re.DOTALL)
_TAIL = 8
"""Bytes after the footer: its length and Parquet's mark."""


def seal(data: bytearray) -> str:
    """Write the hash into a whole file that has :data:`BLANK` in its footer; the digits.

    Raises ValueError when there is no place for it.
    """
    place = _place(data)
    if place is None:
        raise ValueError("no place for a hash")
    digits = hashlib.sha256(data).hexdigest()
    data[place : place + _DIGITS] = digits.encode()
    return digits


def carried(data: bytes | bytearray) -> str | None:
    """The hash that a whole file carries; None when it carries none."""
    place = _place(data)
    return None if place is None else bytes(data[place : place + _DIGITS]).decode()


def computed(data: bytes | bytearray) -> str | None:
    """The hash that a whole file should carry; None when it has no place for one."""
    place = _place(data)
    if place is None:
        return None
    digest = hashlib.sha256(memoryview(data)[:place])
    digest.update(b"0" * _DIGITS)
    digest.update(memoryview(data)[place + _DIGITS :])
    return digest.hexdigest()


def _place(data: bytes | bytearray) -> int | None:
    length = int.from_bytes(data[-_TAIL:-4], "little")
    start = max(0, len(data) - _TAIL - length)
    last = None
    for last in _PLACE.finditer(data, start):  # noqa: B007  the last one is the writer's own
        pass
    return None if last is None else last.start(1)

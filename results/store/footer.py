"""Additions to the footer of a file: an excerpt of the rows, for the index, a checksum, and the file's own hash.

Opening a Parquet file takes a millisecond, and each of its columns some 30 µs. For thousands of files of a few hundred
rows this is nearly all of the reading time. The excerpt therefore holds the rows without the lists of samples in one
piece, a compressed Arrow record batch under :data:`EXCERPT_KEY`. It is only a copy. A file without an excerpt is read
as any Parquet file; so is one whose data before the footer are not as long as the excerpt says, because other software
has rewritten it.

Parquet's own checksums cover pages, not the footer: with one changed letter in the name of a column that column would
be empty. So a CRC-32 of the footer stands under :data:`SUM_KEY`, with the footer's length and the bytes before it, and
every reader checks it (:func:`read_schema`). A footer with other lengths is another software's, and is not judged.

The hash, SHA-256, stands under :data:`HASH_KEY`. It covers all bytes of the file (samples, footer and provenance), with
its own 64 digits replaced by zeros. It travels with the file and needs no list beside the store.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import zlib
from collections import deque
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.digests import hex_digest
from omb_py.results.store import schema

if TYPE_CHECKING:
    import pyarrow as pa

EXCERPT_KEY = b"omb_py.excerpt"
COLUMNS: tuple[str, ...] = tuple(c.name for c in schema.COLUMNS if c.kind != "floats")
"""The columns of an excerpt and of the index: all but the lists of samples."""
_CODEC = "zstd"
_PARQUET = b"PAR1"
_TAIL = 8
"""Bytes after the footer: its length and the magic number."""
_GUESS = 128 * 1024
"""Bytes of a file's end that are read at once; most footers fit."""
_HEAD = re.compile(re.escape(EXCERPT_KEY) + rb".{1,6}?([0-9a-f]{16}):(\d+):(\d+):(\d+):(\d+):", re.DOTALL)
"""The groups: layout, bytes before the footer, bytes of the batch, its CRC-32, length of the base64 text after it."""

HASH_KEY = b"omb_py.sha256"
_HASH_MARK = b"sha256:"
_DIGITS = 64
BLANK_HASH = _HASH_MARK + b"0" * _DIGITS
"""Placeholder under :data:`HASH_KEY` until :func:`seal` replaces it."""

SUM_KEY = b"omb_py.footer"
_SUM_DIGITS = 8
BLANK_SUM = b"crc32:" + b"0" * _SUM_DIGITS + b":" + b"0" * 12 + b":" + b"0" * 12 + b":"
"""Placeholder under :data:`SUM_KEY` until :func:`seal` replaces it: the sum, bytes before the footer, its length."""
BLANKS = {SUM_KEY: BLANK_SUM, HASH_KEY: BLANK_HASH}
_SUM = re.compile(re.escape(SUM_KEY) + rb".{1,4}?crc32:([0-9a-f]{8}):([0-9]{12}):([0-9]{12}):", re.DOTALL)
_HASH = re.compile(re.escape(HASH_KEY) + rb".{1,4}?" + _HASH_MARK + rb"([0-9a-f]{64})", re.DOTALL)


@cache
def layout() -> str:
    """Hash of the columns. Excerpts and indexes with another layout are ignored, since another version wrote them."""
    return hex_digest(repr([(c.name, c.kind) for c in schema.COLUMNS]))[:16]


@cache
def columns_schema() -> pa.Schema:
    """The Arrow schema of :data:`COLUMNS`."""
    import pyarrow as pa

    return pa.schema([pa.field(name, schema.arrow_type(schema.BY_NAME[name].kind)) for name in COLUMNS])


def excerpt_of(table: pa.Table, data_end: int) -> bytes:
    """The excerpt of a file's rows.

    Args:
        table: the rows, with the store's schema.
        data_end: length in bytes of the file before its footer.
    """
    import pyarrow as pa

    rows = table.select(COLUMNS).replace_schema_metadata(None).combine_chunks()
    raw = rows.to_batches()[0].serialize()
    packed = base64.b64encode(pa.compress(raw, codec=_CODEC, asbytes=True))
    return f"{layout()}:{data_end}:{len(raw)}:{zlib.crc32(raw)}:{len(packed)}:".encode() + packed


def unreadable(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """What reading a damaged or foreign Parquet file raises: of the system, of Arrow, of a name that is no text."""
    import pyarrow as pa

    return (OSError, UnicodeError, pa.ArrowException, *more)


def read_excerpt(path: Path) -> pa.RecordBatch | None:
    """The excerpt of a file, with :func:`columns_schema`; None when there is no usable one. Raises OSError."""
    import pyarrow as pa

    tail, before = _read_tail(path)
    start = tail.find(EXCERPT_KEY)
    head = _HEAD.match(tail, start) if start >= 0 and tail.endswith(_PARQUET) else None
    if head is None or head[1].decode() != layout() or int(head[2]) != before:
        return None
    try:
        packed = base64.b64decode(tail[head.end() : head.end() + int(head[5])], validate=True)
        raw = pa.decompress(packed, decompressed_size=int(head[3]), codec=_CODEC)
        if zlib.crc32(raw) != int(head[4]):
            return None
        batch = pa.ipc.read_record_batch(raw, columns_schema())
    except unreadable(binascii.Error):
        return None
    return batch


def _read_tail(path: Path) -> tuple[bytes, int]:
    """(the footer with its length and magic number, bytes of the file before it). Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(handle).st_size
        tail = os.pread(handle, _GUESS, max(0, size - _GUESS))
        footer = int.from_bytes(tail[-_TAIL : 4 - _TAIL], "little") + _TAIL
        if len(tail) < footer <= size:
            tail = os.pread(handle, footer, size - footer)
    finally:
        os.close(handle)
    return tail[-footer:], size - footer


def read_schema(path: str | Path) -> pa.Schema:
    """The schema and the metadata of a file, whose footer is checked against its sum; a footer without one is believed.

    Raises what :func:`unreadable` lists: the footer is not the one that was written, or the file is no Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    tail, before = _read_tail(Path(path))
    check(tail, before)
    return pq.read_schema(pa.BufferReader(tail) if tail.endswith(_PARQUET) and before > 0 else path)


def check_whole(data: bytes) -> None:
    """:func:`check` for a whole file."""
    before = len(data) - _TAIL - int.from_bytes(data[-_TAIL:-4], "little")
    check(data[max(0, before) :], before)


def check(tail: bytes | bytearray | memoryview, before: int) -> None:
    """Raises pyarrow.ArrowInvalid where a footer is not the one that was written.

    Args:
        tail: the footer, its length and the magic number.
        before: bytes of the file before it.
    """
    import pyarrow as pa

    stated = _last(_SUM, tail)
    if stated is None or (int(stated[2]), int(stated[3])) != (before, len(tail) - _TAIL):
        return
    if int(stated[1], 16) != _sum(tail, stated.start(1)):
        raise pa.ArrowInvalid("its footer is not the one that was written")


def _sum(tail: bytes | bytearray | memoryview, place: int) -> int:
    """The CRC-32 of a footer, with the digits of the sum at `place` and of the hash replaced by zeros."""
    hashed = _last(_HASH, tail)
    blanks = [(place, _SUM_DIGITS)] + ([(hashed.start(1), _DIGITS)] if hashed else [])
    view, value, done = memoryview(tail), 0, 0
    for start, digits in sorted(blanks):
        value = zlib.crc32(b"0" * digits, zlib.crc32(view[done:start], value))
        done = start + digits
    return zlib.crc32(view[done:], value)


def seal(data: bytearray) -> str:
    """Put sum and hash in the place of :data:`BLANK_SUM` and :data:`BLANK_HASH` in the footer of a whole file.

    Returns the 64 hex digits of the hash. Raises ValueError when the footer has no place for them.
    """
    length = int.from_bytes(data[-_TAIL:-4], "little")
    before = len(data) - _TAIL - length
    stated = _last(_SUM, data[before:]) if before > 0 else None
    place = _hash_place(data)
    if place is None or stated is None:
        raise ValueError("no place for a hash")
    start = before + stated.start(1)
    data[start + _SUM_DIGITS + 1 : before + stated.end()] = b"%012d:%012d:" % (before, length)
    data[start : start + _SUM_DIGITS] = b"%08x" % _sum(data[before:], stated.start(1))
    import hashlib  # faster with much, and slow to load

    digits = hashlib.sha256(data).hexdigest()
    data[place : place + _DIGITS] = digits.encode()
    return digits


def hash_in(data: bytes | bytearray) -> str | None:
    """The hash that is stored in a whole file; None when there is none."""
    place = _hash_place(data)
    return None if place is None else bytes(data[place : place + _DIGITS]).decode()


def hash_of(data: bytes | bytearray) -> str | None:
    """The hash computed from the bytes of a whole file; None when its footer has no place for one."""
    place = _hash_place(data)
    if place is None:
        return None
    import hashlib

    digest = hashlib.sha256(memoryview(data)[:place])
    digest.update(b"0" * _DIGITS)
    digest.update(memoryview(data)[place + _DIGITS :])
    return digest.hexdigest()


def _hash_place(data: bytes | bytearray) -> int | None:
    length = int.from_bytes(data[-_TAIL:-4], "little")
    last = _last(_HASH, data, max(0, len(data) - _TAIL - length))
    return None if last is None else last.start(1)


def _last(pattern: re.Pattern[bytes], data: bytes | bytearray | memoryview, start: int = 0) -> re.Match[bytes] | None:
    """The last match, which is the writer's own: texts from elsewhere stand before it."""
    last = deque(pattern.finditer(data, start), maxlen=1)
    return last[0] if last else None

"""The summary index of a big store: every column but the lists of samples, in a few Parquet files.

``STORE/.index/*.part`` are *parts*: Parquet files under another suffix, so that who reads ``**/*.parquet`` counts no
row twice. Each holds the rows of some files of the store, and names those files in its metadata (path, size, time of
change). Its rows of a file count only while the file is unchanged. Parts are only added and merged, so the index grows
incrementally, and it may be removed at any time.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from omb_py.results.store import schema
from omb_py.results.store.footer import COLUMNS, columns_schema, layout, read_excerpt, read_schema, unreadable
from omb_py.results.store.paths import DATE, INDEX, OnSkip, StoreFile, wait_for_lock
from omb_py.results.store.provenance import launches, why_not
from omb_py.results.store.write import first_line, reason

FOLDER = INDEX
SUFFIX = ".part"
WORTH = 64
"""A store with at least this many files is indexed."""
FILE, ROW = "_file", "_row"
"""Columns of a part: the index of the file in the part's list, and of the row in the file."""

_KEY = b"omb_py.index"
_NEW = 16
"""At least this many files without an index get a part; fewer are read directly."""
_PARTS = 8
"""Small parts are merged when there are more parts than this."""
_YOUNG_NS = 2_000_000_000
"""A file that changed less than 2 s ago is not indexed yet: it may change again and keep the same time."""
_BATCH = 256
"""At most this many files have their rows sorted together."""
_BATCH_ROWS = 65_536
"""A batch ends with the file that reaches this number of rows, since merged files hold many."""
_AHEAD = 16
"""Number of files that are read ahead."""
_ROW_GROUP = 8192
_PATIENCE_S = 60.0
"""Time to wait for another process that is indexing this store."""
_ORDER = [("benchmark", "ascending"), ("backend", "ascending"), ("size_bytes", "ascending"), ("ranks", "ascending")]
"""Rows that are requested together lie together, so that the statistics of row groups rule out all others."""


@dataclass(frozen=True, slots=True)
class IndexPart:
    """One file of the index."""

    path: Path
    files: tuple[tuple[str, int, int, tuple[str, ...]], ...]
    """For each file: path relative to the store, size, time of change in ns, launches if it is a merged file."""
    bad: dict[str, tuple[int, int, str]]
    """For each unreadable file, by relative path: size, time of change in ns, reason."""


@dataclass(slots=True)
class Index:
    """The indexed files of a store."""

    parts: list[IndexPart] = field(default_factory=list)
    covered: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Relative path -> (index of the part, index of the file in it)."""
    bad: set[str] = field(default_factory=set)
    """Relative paths of files that who indexed them could not read; another user may, or a later reading."""

    def missing(self, entries: Iterable[StoreFile]) -> list[StoreFile]:
        """The files that are new or changed since they were indexed."""
        return [e for e in entries if e.relative not in self.covered and e.relative not in self.bad]

    def launches_of(self, relative: str) -> tuple[str, ...]:
        """The launches of a covered file if it is a merged one; else empty."""
        part, number = self.covered[relative]
        return self.parts[part].files[number][3]


def refreshed(root: Path, entries: Sequence[StoreFile], on_skip: OnSkip) -> Index:
    """The index of a store, brought up to date where that is possible and saves time.

    The caller reads the files that it still does not cover. When the index cannot be written (a read-only store, a full
    disk), `on_skip` is called with the reason, and the existing part of the index is used.
    """
    index = _read_index(root, entries)
    if len(index.missing(entries)) < _NEW:
        return index
    try:
        (root / FOLDER).mkdir(exist_ok=True)
        handle = os.open(root / FOLDER / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if wait_for_lock(handle, _PATIENCE_S):
                os.utime(handle)
                index = _read_index(root, entries)  # another process may have updated it meanwhile
                _update(root, index, entries, before=os.fstat(handle).st_mtime_ns - _YOUNG_NS)
                index = _read_index(root, entries)
        finally:
            os.close(handle)
    except OSError as error:
        on_skip(root / FOLDER, f"no index can be written ({reason(error)}), so every file is read")
    return index


def read(index: Index, wanted: pa.Schema, expression: ds.Expression | None, order: dict[str, int]) -> pa.Table:
    """The rows of all covered files in `order`, unsorted.

    Args:
        index: the result of :func:`refreshed`.
        wanted: columns to read, of :data:`COLUMNS` and ``date``; texts as they are or as dictionaries.
        expression: a filter of pyarrow, or None.
        order: relative path -> number of the file; other files are left out.

    Returns:
        The columns, :data:`FILE` (the number from `order`) and :data:`ROW`.

    Raises:
        OSError, pyarrow.ArrowException: a part was removed or is damaged.
    """
    fields = _fields(wanted)
    whole = schema.replace_fields(_schema(), wanted)
    parquet = ds.ParquetFileFormat(dictionary_columns=schema.list_dictionaries(wanted))
    tables = [fields.empty_table()]
    for number, part in enumerate(index.parts):
        places = [
            order.get(f[0], -1) if index.covered.get(f[0]) == (number, i) else -1 for i, f in enumerate(part.files)
        ]
        if all(place < 0 for place in places):
            continue
        live = [i for i, place in enumerate(places) if place >= 0]
        keep = None if len(live) == len(places) else ds.field(FILE).isin(pa.array(live, pa.int32()))
        filters = [f for f in (expression, keep) if f is not None]
        combined = filters[0] & filters[1] if len(filters) == 2 else (filters or [None])[0]
        table = ds.dataset(str(part.path), schema=whole, format=parquet).to_table(fields.names, filter=combined)
        tables.append(_renumber(table, places))
    return pa.concat_tables(tables)


def read_new(
    entries: Sequence[StoreFile],
    wanted: pa.Schema,
    expression: ds.Expression | None,
    order: Mapping[str, int],
    on_skip: OnSkip,
) -> pa.Table:
    """The rows of files that no part covers, as :func:`read` has them, without the lists of samples.

    Raises FileNotFoundError where a file was removed.
    """
    fields = _fields(wanted)
    tables = [fields.empty_table()]
    paths = {entry.relative: entry.path for entry in entries}
    for files, bad, table in _rows_of(entries):
        for relative, (_, _, why) in bad.items():
            on_skip(paths.pop(relative), why)
        for relative, *_ in files:
            del paths[relative]
        if table is not None:
            rows = table if expression is None else table.filter(expression)
            # many small dictionaries take ten times as much
            rows = rows.select(fields.names).combine_chunks().cast(fields)
            tables.append(_renumber(rows, [order[relative] for relative, *_ in files]))
    if paths:
        raise FileNotFoundError(next(iter(paths)))
    return pa.concat_tables(tables)


def number_rows(rows: pa.Table, number: int) -> pa.Table:
    """All rows of the file of this number as :func:`read` has them."""
    file = pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
    return rows.append_column(FILE, file).append_column(ROW, pa.array(range(rows.num_rows), pa.int32()))


def _fields(wanted: pa.Schema) -> pa.Schema:
    """The fields of a reading: those that are wanted, and which row of which file it is."""
    return pa.schema([*wanted, *(_schema().field(name) for name in (FILE, ROW) if name not in wanted.names)])


def _renumber(rows: pa.Table, places: Sequence[int]) -> pa.Table:
    """The rows with another number for each file."""
    numbers = pa.array(places, pa.int32()).take(rows[FILE].combine_chunks())
    return rows.set_column(rows.column_names.index(FILE), pa.field(FILE, pa.int32()), numbers)


def discard(root: Path) -> None:
    """Remove all parts because one is damaged; the next reader writes them again."""
    for path in (root / FOLDER).glob("*" + SUFFIX):
        with contextlib.suppress(OSError):
            path.unlink()


@cache
def _schema() -> pa.Schema:
    more = [pa.field(DATE, pa.string()), pa.field(FILE, pa.int32()), pa.field(ROW, pa.int32())]
    return pa.schema([*columns_schema(), *more])


def _read_index(root: Path, entries: Sequence[StoreFile]) -> Index:
    """The index on disk, without files that have changed; of two parts with the same file the later one counts."""
    index = Index(_parts(root / FOLDER))
    now = {entry.relative: (entry.size, entry.changed_ns) for entry in entries}
    for number, part in enumerate(index.parts):
        for position, (relative, size, changed, _) in enumerate(part.files):
            if now.get(relative) == (size, changed):
                index.covered[relative] = (number, position)
        index.bad.update(relative for relative, facts in part.bad.items() if now.get(relative) == facts[:2])
    return index


def _parts(folder: Path) -> list[IndexPart]:
    parts = []
    for path in sorted(folder.glob("[0-9]*" + SUFFIX)):
        try:
            description = json.loads((pq.read_metadata(path).metadata or {})[_KEY])
            if description["layout"] == layout():
                files = tuple((r, s, c, tuple(held)) for r, s, c, held in description["files"])
                parts.append(IndexPart(path, files, {r: tuple(v) for r, v in description["bad"].items()}))
        except (OSError, KeyError, ValueError, TypeError, pa.ArrowException):
            continue  # torn, or of another version: its files count as not indexed
    return parts


def _update(root: Path, index: Index, entries: Sequence[StoreFile], before: int) -> None:
    """Add a part for the files that no part covers and that did not change since `before` (ns); merge small parts."""
    new = [entry for entry in index.missing(entries) if entry.changed_ns < before]
    if len(new) >= _NEW:
        _write(root / FOLDER, _rows_of(new))
        index = _read_index(root, entries)
    live = [0] * len(index.parts)
    for number, _ in index.covered.values():
        live[number] += 1
    half_dead = {n for n, part in enumerate(index.parts) if 2 * live[n] < len(part.files)}
    small = {n for n in range(len(index.parts)) if 2 * live[n] < max(live)} if len(live) > _PARTS else set()
    if len(live) > _PARTS and len(small) < 2:
        small = set(range(len(live)))
    merged = sorted(half_dead | small)
    if merged:
        _write(root / FOLDER, _rows_again(index, merged))
    known = {part.path for n, part in enumerate(index.parts) if n not in merged}
    newest = max((root / FOLDER).glob("[0-9]*" + SUFFIX), default=None)
    for path in (root / FOLDER).iterdir():
        if path.suffix in (SUFFIX, ".tmp") and path not in known and path != newest:
            path.unlink(missing_ok=True)


Batch = tuple[list[tuple[str, int, int, tuple[str, ...]]], dict[str, tuple[int, int, str]], "pa.Table | None"]
Read = tuple["list[pa.RecordBatch] | None", tuple[str, ...], str]
"""A file's rows without lists of samples, and its launches if it is merged; or None and the reason ("": removed)."""


def _rows_of(entries: Sequence[StoreFile]) -> Iterator[Batch]:
    left = iter(entries)
    batch: list[StoreFile] = []
    contents: list[Read] = []
    rows = 0
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        # the next files are read while the caller writes these
        ahead = deque((entry, pool.submit(_read_file, entry)) for entry in islice(left, _AHEAD))
        while ahead:
            entry, reading = ahead.popleft()
            batch.append(entry)
            contents.append(reading.result())
            rows += sum(part.num_rows for part in contents[-1][0] or ())
            ahead.extend((later, pool.submit(_read_file, later)) for later in islice(left, 1))
            if len(batch) == _BATCH or rows >= _BATCH_ROWS or not ahead:
                yield _join(batch, contents)
                batch, contents, rows = [], [], 0


def _join(entries: Sequence[StoreFile], contents: Sequence[Read]) -> Batch:
    files: list[tuple[str, int, int, tuple[str, ...]]] = []
    bad: dict[str, tuple[int, int, str]] = {}
    batches: list[pa.RecordBatch] = []
    rows: list[int] = []
    days: list[str | None] = []
    for entry, (file_batches, held, why) in zip(entries, contents, strict=True):
        if file_batches is None:
            if why:
                bad[entry.relative] = (entry.size, entry.changed_ns, why)
            continue
        batches += file_batches
        rows.append(sum(batch.num_rows for batch in file_batches))
        files.append((entry.relative, entry.size, entry.changed_ns, held))
        folder = entry.path.parent.name
        days.append(folder.removeprefix(f"{DATE}=") if folder.startswith(f"{DATE}=") else None)
    if not files:
        return files, bad, None
    numbers = pa.array(np.repeat(np.arange(len(files), dtype=np.int32), rows))
    table = pa.Table.from_batches(batches, columns_schema())
    columns = [
        *table.columns,
        pa.array(days, pa.string()).take(numbers),
        numbers,
        pa.array(np.concatenate([np.arange(count, dtype=np.int32) for count in rows])),
    ]
    return files, bad, pa.table(columns, schema=_schema())


def _read_file(entry: StoreFile) -> Read:
    try:
        excerpt = read_excerpt(entry.path)
        if excerpt is not None:
            return [excerpt], (), ""
        file_schema = read_schema(entry.path)
        with pq.ParquetFile(entry.path, pre_buffer=False, page_checksum_verification=True) as file:
            why = why_not(file_schema)
            if why:
                return None, (), why
            present = set(file_schema.names)
            table = file.read([name for name in COLUMNS if name in present], use_threads=False)
            table.validate(full=True)  # Arrow reads a damaged text as it is
    except FileNotFoundError:
        return None, (), ""
    except unreadable() as error:
        return None, (), f"not a readable Parquet file ({first_line(error)})"
    return schema.fitted(table, columns_schema()).to_batches(), tuple(launches(file_schema.metadata)), ""


def _rows_again(index: Index, parts: Sequence[int]) -> Iterator[Batch]:
    """The rows of parts that are to be merged into one, without those of changed files."""
    for number in parts:
        part = index.parts[number]
        live = {f[0]: i for i, f in enumerate(part.files) if index.covered.get(f[0]) == (number, i)}
        files = [part.files[i] for i in live.values()]
        bad = {r: facts for r, facts in part.bad.items() if r in index.bad}
        alone = Index([part], {relative: (0, i) for relative, i in live.items()})
        order = {relative: place for place, relative in enumerate(live)}
        yield files, bad, read(alone, _schema(), None, order) if files else None


def _write(folder: Path, batches: Iterator[Batch]) -> None:
    """Write all batches into one part. Raises OSError."""
    numbers = [int(path.name[:8]) for path in folder.glob("[0-9]*" + SUFFIX) if path.name[:8].isdigit()]
    target = folder / f"{max(numbers, default=0) + 1:08d}-{uuid.uuid4().hex[:8]}{SUFFIX}"
    temporary = target.with_suffix(".tmp")
    files: list[tuple[str, int, int, tuple[str, ...]]] = []
    bad: dict[str, tuple[int, int, str]] = {}
    encoded = [*(c.name for c in schema.COLUMNS if c.kind in ("string", "int32", "int64")), DATE, FILE]
    try:
        with pq.ParquetWriter(temporary, _schema(), compression="lz4", use_dictionary=encoded) as writer:
            for batch_files, unreadable, table in batches:
                bad |= unreadable
                if table is not None:
                    at = table.schema.get_field_index(FILE)
                    moved = pc.add(table[FILE], pa.scalar(len(files), pa.int32()))
                    # in one piece: sorting moves rows one by one, and finding each among many pieces is slow
                    table = table.set_column(at, FILE, moved).combine_chunks().sort_by(_ORDER)
                    writer.write_table(table, row_group_size=_ROW_GROUP)
                files += batch_files
            description = {"layout": layout(), "files": files, "bad": bad}
            writer.add_key_value_metadata({_KEY: json.dumps(description).encode()})
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(target)
    except pa.ArrowException as error:
        raise OSError(first_line(error)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)

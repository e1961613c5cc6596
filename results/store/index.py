"""The summary index of a big store: every column but the lists of samples, in a few Parquet files.

``STORE/.index/*.parquet`` are *parts*. Each holds the rows of some files of the store and says in its metadata which
files those were (path, size, time of change); what a file says now decides whether its rows still count. Parts are only
ever added and merged, so the index is made incrementally, and it may be removed at any time.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omb_py.results.store import schema
from omb_py.results.store.footer import COLUMNS, columns_schema, layout, read_excerpt
from omb_py.results.store.paths import DATE, SUFFIX, Entry, OnSkip, wait_for_lock
from omb_py.results.store.provenance import launches, why_not
from omb_py.results.store.write import first_line, reason

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = ".index"
WORTH = 64
"""Files from which on a store is indexed."""
FILE, ROW = "_file", "_row"
"""Columns of a part: number of the file in the part's list, number of the row in the file."""

_KEY = b"omb_py.index"
_NEW = 16
"""Files that are not indexed yet, from which on a part is made for them; fewer are read as they are."""
_PARTS = 8
"""Parts from which on small ones are merged."""
_YOUNG_NS = 2_000_000_000
"""A file that changed within 2 s may change again without another time: it is not indexed yet."""
_BATCH = 256
"""Files whose rows are sorted together."""
_AHEAD = 2
"""Batches that are being read at a time."""
_ROW_GROUP = 8192
_PATIENCE_S = 60.0
"""Seconds for which another process that is indexing this store is waited for."""
_ORDER = [("benchmark", "ascending"), ("backend", "ascending"), ("size_bytes", "ascending"), ("ranks", "ascending")]
"""Rows that are asked for together lie together, so that statistics of row groups rule the others out."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the index."""

    path: Path
    files: tuple[tuple[str, int, int, tuple[str, ...]], ...]
    """Path below the store, size, time of change in ns, launches when it is a merged file."""
    bad: dict[str, tuple[int, int, str]]
    """Files that cannot be read: size, time of change, why."""


@dataclass(slots=True)
class Index:
    """What of a store is indexed."""

    parts: list[Part] = field(default_factory=list)
    covered: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Path below the store -> (part, number of the file in it)."""
    bad: dict[str, str] = field(default_factory=dict)
    """Files that cannot be read, and why."""

    def missing(self, entries: Iterable[Entry]) -> list[Entry]:
        """Files that the index does not know as they are now."""
        return [e for e in entries if e.relative not in self.covered and e.relative not in self.bad]

    def launches_of(self, relative: str) -> tuple[str, ...]:
        """Of a covered merged file the launches; else empty."""
        part, number = self.covered[relative]
        return self.parts[part].files[number][3]


def refreshed(root: Path, entries: Sequence[Entry], on_skip: OnSkip) -> Index:
    """The index of a store, brought up to date where that is worth it and possible.

    Files that it still does not cover are for the caller to read. When it cannot be written (a read-only store, a full
    disk) that is told to `on_skip`, and what there is of it is used.
    """
    found = _known(root, entries)
    if len(found.missing(entries)) < _NEW:
        return found
    try:
        (root / FOLDER).mkdir(exist_ok=True)
        handle = os.open(root / FOLDER / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if wait_for_lock(handle, _PATIENCE_S):
                os.utime(handle)
                found = _known(root, entries)  # another may just have made it
                _update(root, found, entries, before=os.fstat(handle).st_mtime_ns - _YOUNG_NS)
                found = _known(root, entries)
        finally:
            os.close(handle)
    except OSError as error:
        on_skip(root / FOLDER, f"no index can be written ({reason(error)}), so every file is read")
    return found


def read(index: Index, wanted: Sequence[str], expression: Any, order: dict[str, int]) -> pa.Table:
    """The rows of all covered files that `order` has, unsorted.

    Args:
        index: as :func:`refreshed` gives it.
        wanted: columns of :data:`COLUMNS` and ``date``.
        expression: a filter of pyarrow, or None.
        order: path below the store -> number of the file; others are left out.

    Returns:
        The columns, and :data:`FILE` (as numbered by `order`) and :data:`ROW`.

    Raises:
        OSError, pyarrow.ArrowException: a part is gone or damaged.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    tables = []
    names = list(dict.fromkeys([*wanted, FILE, ROW]))
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
        table = ds.dataset(str(part.path), schema=_schema(), format="parquet").to_table(names, filter=combined)
        numbers = pa.array(places, pa.int32()).take(table[FILE].combine_chunks())
        tables.append(table.set_column(names.index(FILE), pa.field(FILE, pa.int32()), numbers))
    return pa.concat_tables([_schema_of(names).empty_table(), *tables])


def discard(root: Path) -> None:
    """Remove all parts, since one of them is damaged: the next reader makes them anew."""
    for path in (root / FOLDER).glob("*" + SUFFIX):
        with contextlib.suppress(OSError):
            path.unlink()


@cache
def _schema() -> pa.Schema:
    import pyarrow as pa

    more = [pa.field(DATE, pa.string()), pa.field(FILE, pa.int32()), pa.field(ROW, pa.int32())]
    return pa.schema([*columns_schema(), *more])


def _schema_of(names: Sequence[str]) -> pa.Schema:
    return _fields(tuple(names))


@cache
def _fields(names: tuple[str, ...]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([_schema().field(name) for name in names])


def _known(root: Path, entries: Sequence[Entry]) -> Index:
    """What the parts on disk say of the files as they are now; of two parts with a file the later one counts."""
    found = Index(_parts(root / FOLDER))
    now = {entry.relative: (entry.size, entry.changed_ns) for entry in entries}
    for number, part in enumerate(found.parts):
        for position, (relative, size, changed, _) in enumerate(part.files):
            if now.get(relative) == (size, changed):
                found.covered[relative] = (number, position)
        for relative, (size, changed, why) in part.bad.items():
            if now.get(relative) == (size, changed):
                found.bad[relative] = why
    return found


def _parts(folder: Path) -> list[Part]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = []
    for path in sorted(folder.glob("[0-9]*" + SUFFIX)):
        try:
            said = json.loads((pq.read_metadata(path).metadata or {})[_KEY])
            if said["layout"] == layout():
                files = tuple((r, s, c, tuple(held)) for r, s, c, held in said["files"])
                found.append(Part(path, files, {r: tuple(v) for r, v in said["bad"].items()}))
        except (OSError, KeyError, ValueError, TypeError, pa.ArrowException):
            continue  # torn or of another version: made anew
    return found


def _update(root: Path, index: Index, entries: Sequence[Entry], before: int) -> None:
    """Add a part for the files that none covers and that did not change since `before`; merge small parts."""
    new = [entry for entry in index.missing(entries) if entry.changed_ns < before]
    if len(new) >= _NEW:
        _write(root / FOLDER, _rows_of(new))
        index = _known(root, entries)
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
"""A file's rows without lists of samples, and its launches when it is merged; or None and why, "" when it went."""


def _rows_of(entries: Sequence[Entry]) -> Iterator[Batch]:
    chosen = [entries[start : start + _BATCH] for start in range(0, len(entries), _BATCH)]
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        ahead = deque(pool.map(_read_file, some) for some in chosen[:_AHEAD])
        for number, some in enumerate(chosen):
            # the next files are read while the caller writes these
            found = list(ahead.popleft())
            ahead.extend(pool.map(_read_file, more) for more in chosen[number + _AHEAD : number + _AHEAD + 1])
            yield _joined(some, found)


def _joined(entries: Sequence[Entry], found: Sequence[Read]) -> Batch:
    import numpy as np
    import pyarrow as pa

    files: list[tuple[str, int, int, tuple[str, ...]]] = []
    bad: dict[str, tuple[int, int, str]] = {}
    batches: list[pa.RecordBatch] = []
    rows: list[int] = []
    days: list[str | None] = []
    for entry, (of_file, held, why) in zip(entries, found, strict=True):
        if of_file is None:
            if why:
                bad[entry.relative] = (entry.size, entry.changed_ns, why)
            continue
        batches += of_file
        rows.append(sum(batch.num_rows for batch in of_file))
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


def _read_file(entry: Entry) -> Read:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        copied = read_excerpt(entry.path)
        if copied is not None:
            return [copied], (), ""
        with pq.ParquetFile(entry.path, pre_buffer=False) as file:
            found = file.schema_arrow
            why = why_not(found)
            if why:
                return None, (), why
            there = set(found.names)
            table = file.read([name for name in COLUMNS if name in there], use_threads=False)
    except FileNotFoundError:
        return None, (), ""
    except (OSError, pa.ArrowException) as error:
        return None, (), f"not a readable Parquet file ({first_line(error)})"
    has = dict(zip(table.column_names, table.columns, strict=True))
    wanted = columns_schema()
    columns = [has[f.name] if f.name in has else pa.nulls(table.num_rows, f.type) for f in wanted]
    return pa.table(columns, schema=wanted).to_batches(), tuple(launches(found.metadata)), ""


def _rows_again(index: Index, parts: Sequence[int]) -> Iterator[Batch]:
    """The live rows of parts that are merged into one."""
    for number in parts:
        part = index.parts[number]
        live = {f[0]: i for i, f in enumerate(part.files) if index.covered.get(f[0]) == (number, i)}
        files = [part.files[i] for i in live.values()]
        bad = {r: facts for r, facts in part.bad.items() if r in index.bad}
        alone = Index([part], {relative: (0, i) for relative, i in live.items()})
        order = {relative: place for place, relative in enumerate(live)}
        yield files, bad, read(alone, [*COLUMNS, DATE], None, order) if files else None


def _write(folder: Path, batches: Iterator[Batch]) -> None:
    """One part of all batches. Raises OSError."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    numbers = [int(path.name[:8]) for path in folder.glob("[0-9]*" + SUFFIX) if path.name[:8].isdigit()]
    target = folder / f"{max(numbers, default=0) + 1:08d}-{uuid.uuid4().hex[:8]}{SUFFIX}"
    temporary = target.with_suffix(".tmp")
    files: list[tuple[str, int, int, tuple[str, ...]]] = []
    bad: dict[str, tuple[int, int, str]] = {}
    words = [c.name for c in schema.COLUMNS if c.kind in ("string", "int32", "int64")]
    try:
        with pq.ParquetWriter(temporary, _schema(), compression="lz4", use_dictionary=[*words, DATE, FILE]) as writer:
            for some, unreadable, table in batches:
                bad |= unreadable
                if table is not None:
                    at = table.schema.get_field_index(FILE)
                    moved = pc.add(table[FILE], pa.scalar(len(files), pa.int32()))
                    # in one piece: rows are moved one by one, and finding each among many pieces is slow
                    table = table.set_column(at, FILE, moved).combine_chunks().sort_by(_ORDER)
                    writer.write_table(table, row_group_size=_ROW_GROUP)
                files += some
            said = {"layout": layout(), "files": files, "bad": bad}
            writer.add_key_value_metadata({_KEY: json.dumps(said).encode()})
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(target)
    except pa.ArrowException as error:
        raise OSError(first_line(error)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)

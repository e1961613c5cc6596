"""Write one Parquet file for each launch, whole or not at all.

``STORE/date=YYYY-MM-DD/<launch_id>.parquet`` is written under a temporary name in the same folder, synced and renamed;
then the folder is synced. The file's metadata holds the provenance of the launch as JSON.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.errors import EnvironmentProblem, NotStored
from omb_py.results.store import footer, schema
from omb_py.results.store.row import Row

if TYPE_CHECKING:
    import pyarrow as pa

PROVENANCE_KEY = b"omb_py.provenance"
VERSION_KEY = b"omb_py.schema_version"
LAUNCHES_KEY = b"omb_py.launches"
PROVENANCES_KEY = b"omb_py.provenances"
ROW_GROUP = 4096
"""Maximum rows of a row group, so that one launch of a merged file can be read without the others."""
JOURNALS = ".journal"
"""Folder of the journals of a store (:mod:`omb_py.results.store.journal`)."""
_PACKED = "zstd"
_LAUNCH_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_writable(store: str | Path, needed: bool = True) -> None:
    """Create the store's folder and write a test file in it, and in those of its folders that a launch of today needs.

    Args:
        needed: whether the command cannot do without a store.

    Raises:
        EnvironmentProblem: with the reason and what to do, in one line.
    """
    root = Path(store)
    elsewhere = f"choose another folder with --store DIR{'' if needed else ', or measure with --no-store'}"
    try:
        str(root.absolute()).encode()
    except UnicodeEncodeError:
        # Arrow takes paths as UTF-8: it could not read what we write there
        raise EnvironmentProblem(
            f"cannot write results to {os.fsencode(root)!r}: the path is not UTF-8; {elsewhere}"
        ) from None
    except FileNotFoundError:
        raise EnvironmentProblem("this folder no longer exists, and the store is in it: cd to another") from None
    try:
        folder = root
        root.mkdir(parents=True, exist_ok=True)
        for folder in (root, *root.glob(JOURNALS), *root.glob(f"date={datetime.now(UTC).date()}")):
            handle, name = tempfile.mkstemp(prefix=".write-test-", dir=folder)
            try:
                _write_all(handle, b"omb-py")
            finally:
                os.close(handle)
                os.unlink(name)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write results to {str(folder)!r}: {reason(error)}; {elsewhere}") from error


def write_launch(
    store: str | Path, rows: Sequence[Row], provenance: Mapping[str, object], blocks: Sequence[bytes] = ()
) -> Path:
    """Write the rows of one launch, all or none.

    Args:
        store: the folder; it is created if needed.
        rows: rows, all of one launch; missing columns become null.
        provenance: JSON-serialisable facts, already redacted (:mod:`omb_py.results.store.redact`).
        blocks: further rows (:func:`pack`); there is at least one row or block.

    Returns:
        The file. A file of the same launch is replaced.

    Raises:
        NotStored: the disk is full, or the folder cannot be written.
        ValueError: the rows are not of one launch, or a column is unknown, missing or of the wrong type.
    """
    tables = _pieces(rows, blocks)
    table = next(tables).replace_schema_metadata(_metadata(provenance))
    launch_id = table["launch_id"][0].as_py()
    if not _LAUNCH_ID.fullmatch(launch_id) or set(table["launch_id"].to_pylist()) != {launch_id}:
        raise ValueError(f"not the rows of one launch with a usable id: {launch_id!r}")
    # its number in µs: a time of Python's would load time zones
    date = datetime.fromtimestamp(table["started_at"][0].value // 1_000_000, UTC).date().isoformat()
    target = Path(store) / f"date={date}" / f"{launch_id}.parquet"
    try:
        write_atomically(target, parquet(table, more=tables))
    except OSError as error:
        raise NotStored(f"cannot write {str(target)!r}: {reason(error)}") from error
    return target


def to_table(rows: Sequence[Row], provenance: Mapping[str, object]) -> pa.Table:
    """Convert rows to an Arrow table with the store's schema and metadata. Raises ValueError when they do not fit."""
    import pyarrow as pa

    if not rows:
        raise ValueError("a launch without rows")
    complete = [schema.complete_row(row) for row in rows]
    arrays = []
    for column in schema.COLUMNS:
        values: list[object] = [row[column.name] for row in complete]  # type: ignore[literal-required]
        if convert := _ARROW_VALUES.get(column.kind):
            values = [None if value is None else convert(value) for value in values]
        try:
            arrays.append(pa.array(values, type=schema.arrow_type(column.kind)))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ValueError(f"column {column.name}: {error}") from error
    return pa.table(arrays, schema=schema.arrow_schema().with_metadata(_metadata(provenance)))


def _metadata(provenance: Mapping[str, object]) -> dict[bytes, bytes]:
    text = json.dumps(provenance, sort_keys=True, default=str)
    return {VERSION_KEY: str(schema.SCHEMA_VERSION).encode(), PROVENANCE_KEY: text.encode()}


def pack(rows: Sequence[Row]) -> bytes:
    """Rows as one compressed piece, a tenth as large: a sweep over all pairs has a million. Raises as :func:`to_table`.

    It is an Arrow stream, which names its columns.
    """
    import pyarrow as pa

    table, sink = to_table(rows, {}), pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, _PACKED) as packed, pa.ipc.new_stream(packed, schema.arrow_schema()) as stream:
        stream.write_table(table.replace_schema_metadata(None))
    return bytes(sink.getvalue())


def unpack(block: bytes) -> pa.Table:
    """The rows of :func:`pack`, with the store's schema. Raises ValueError on anything else."""
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(block), _PACKED) as packed:
            return schema.fitted(pa.ipc.open_stream(packed).read_all(), schema.arrow_schema())
    except (OSError, pa.ArrowException) as error:
        raise ValueError(first_line(error)) from error


def _pieces(rows: Sequence[Row], blocks: Sequence[bytes]) -> Iterator[pa.Table]:
    """The rows as one table, then those of the blocks as tables of :data:`ROW_GROUP`."""
    import pyarrow as pa

    if rows or not blocks:
        yield to_table(rows, {})
    waiting: list[pa.Table] = []
    for block in blocks:
        waiting.append(unpack(block))
        while sum(table.num_rows for table in waiting) >= ROW_GROUP:
            together = pa.concat_tables(waiting)
            yield together.slice(0, ROW_GROUP)
            waiting = [together.slice(ROW_GROUP)]
    if any(table.num_rows for table in waiting):
        yield pa.concat_tables(waiting)


def reason(error: OSError) -> str:
    """The cause of a system error, in words."""
    if error.errno == errno.ENOSPC:
        return "no space left on the disk"
    if error.errno == errno.EDQUOT:
        return "your quota of disk space is used up"
    if error.errno == errno.EEXIST and error.filename and not os.path.exists(error.filename):
        return f"{error.filename} is a link to {os.readlink(error.filename)}, which does not exist"
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return "a file is in the way, not a folder"
    return (error.strerror or str(error)).lower()


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or the name of its class if it has no text; of the system's, the cause."""
    if isinstance(error, OSError) and error.errno:
        return reason(error)
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def sync_folder(folder: Path) -> None:
    """Make new and renamed files in this folder survive a crash, where the file system can sync folders."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _items(value: object) -> object:
    return list(value.items()) if isinstance(value, Mapping) else value


_ARROW_VALUES: Mapping[schema.Kind, Callable[[object], object]] = {
    "time": schema.in_utc,
    "numbers": _items,
    "texts": _items,
}
"""Kind of a column -> how its values become Arrow's; the others do by themselves."""


def parquet(table: pa.Table, merged: bool = False, more: Iterable[pa.Table] = ()) -> memoryview:
    """The bytes of a Parquet file with the rows of tables and a hash in its footer.

    Args:
        table: rows with the store's schema and the metadata of :func:`to_table`.
        merged: whether the rows are of many launches. Pages are then long, so every column is compressed. The file of
            one launch has its numbers uncompressed, since opening a compressed page takes longer than reading its few
            hundred values, and has an excerpt in its footer (:mod:`omb_py.results.store.footer`).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink, alone = pa.BufferOutputStream(), True
    packed = [c for c in schema.COLUMNS if merged or c.name not in schema.SCALARS]
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression={path: "zstd" for column in packed for path in _leaves(column)},
        use_dictionary=[c.name for c in schema.COLUMNS if c.kind in ("string", "int32", "int64")],
        write_statistics=[c.name for c in schema.COLUMNS if c.name in schema.SCALARS],
        store_schema=False,  # Arrow's own schema would hold all metadata again, in base64
        write_page_checksum=True,
    ) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP)
        for further in more:
            writer.write_table(further, row_group_size=ROW_GROUP)
            alone = False
        excerpt = {} if merged or not alone else {footer.EXCERPT_KEY: footer.excerpt_of(table, sink.tell())}
        writer.add_key_value_metadata({**(table.schema.metadata or {}), **excerpt, **footer.BLANKS})
    data = bytearray(sink.getvalue())
    footer.seal(data)
    return memoryview(data)


def _leaves(column: schema.Column) -> tuple[str, ...]:
    """The paths of the leaf columns that Parquet stores for a column."""
    if column.kind in ("numbers", "texts"):
        return f"{column.name}.key_value.key", f"{column.name}.key_value.value"
    return (f"{column.name}.list.element",) if column.kind in ("floats", "strings") else (column.name,)


def write_atomically(target: Path, data: bytes | memoryview) -> None:
    """Write a file whole or not at all, so that it survives a crash: hidden name, sync, rename, sync of the folder.

    Raises OSError.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.stem}-", suffix=".tmp", dir=target.parent)
    try:
        try:
            _write_all(handle, data)
            os.fchmod(handle, 0o666 & ~_umask())  # mkstemp lets only the owner read
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    sync_folder(target.parent)
    sync_folder(target.parent.parent)  # target.parent may be new


def _write_all(handle: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _umask() -> int:
    """The process's umask; the only portable way to read it is to set it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask

"""Turn the journals that interrupted runs left behind into files of the store."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from omb_py.errors import EnvironmentProblem
from omb_py.results.json_values import read_object
from omb_py.results.store import schema
from omb_py.results.store.footer import read_schema, unreadable
from omb_py.results.store.journal import SUFFIX, decode_block, decode_row, left_in, lock
from omb_py.results.store.paths import check_store
from omb_py.results.store.provenance import MERGED, launches
from omb_py.results.store.row import Row
from omb_py.results.store.write import first_line, write_launch
from omb_py.results.units import counted

State = Literal["recovered", "stored already", "empty", "running", "unreadable", "failed"]

DAMAGED_SUFFIX = ".damaged"
"""Added to the name of a journal with unreadable lines, after the readable ones were stored."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The outcome for one journal."""

    path: Path
    """The Parquet file if there is one, else the journal."""
    launch_id: str
    cells: int
    """Finished cells of this launch in the store; for a running launch, those in its journal."""
    state: State
    note: str = ""
    """Why it was not recovered, or what was lost."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The readable part of a journal."""

    header: dict[str, Any]
    provenance: dict[str, object]
    rows: list[Row]
    blocks: list[bytes]
    """Rows that were finished together (:func:`omb_py.results.store.write.pack`)."""
    cells: int
    """Number of rows, those of the blocks with them."""
    damaged: int
    """Number of unreadable lines, not counting the last, which a crash may have cut off."""


def journals(store: str | Path) -> list[Path]:
    """The journals in a store, of running launches and of interrupted ones. Raises as :func:`left_in`."""
    return left_in(store, SUFFIX)


def recover(store: str | Path) -> list[Recovered]:
    """Write the finished cells of every journal whose writer has ended into the store, and remove the journal.

    A torn last line is a cell that was never announced, and is dropped. The call may be repeated: a launch that is
    already in the store is not written again. A journal that cannot be read is reported and left in place.

    Raises UsageError when there is no such folder, and as :func:`journals`.
    """
    check_store(Path(store))
    results = (_recover_one(Path(store), path) for path in journals(store))
    return [result for result in results if result is not None]


def read(path: Path) -> Contents:
    """The contents of a journal. Raises ValueError when its header is unreadable or was written by a newer omb-py."""
    header, *lines = path.read_bytes().split(b"\n")
    head = read_object(header)
    if head is None or "launch_id" not in head:
        raise ValueError("it has no readable header")
    if head.get("schema_version", 0) > schema.SCHEMA_VERSION:
        raise ValueError("written by a newer omb-py: recover with that one")
    provenance = dict(head.get("provenance") or {})
    rows: list[Row] = []
    blocks: list[bytes] = []
    cells = damaged = 0
    last = len(lines) - 1
    for number, line in enumerate(lines):
        if not line:
            continue
        try:
            entry = read_object(line) or {}
            if "row" in entry:
                rows.append(decode_row(entry["row"]))
                cells += 1
            elif "rows" in entry:
                block, more = decode_block(entry["rows"])
                blocks.append(block)
                cells += more
            elif "provenance" in entry:
                provenance = dict(entry["provenance"])
            else:
                raise ValueError("neither a row nor provenance")
        except (ValueError, TypeError, AttributeError):
            damaged += number < last
    return Contents(head, provenance, rows, blocks, cells, damaged)


def _recover_one(store: Path, path: Path) -> Recovered | None:
    """The outcome for one journal; None when another process has recovered it meanwhile."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Recovered(path, path.stem, 0, "unreadable", (error.strerror or str(error)).lower())
    try:
        try:
            locks = lock(handle)
        except BlockingIOError:
            return Recovered(path, path.stem, _count(path), "running", "its run is still alive")
        if os.fstat(handle).st_nlink == 0:  # removed between open and lock
            return None
        return _store(store, path, locks)
    finally:
        os.close(handle)


def _store(store: Path, path: Path, locks: bool) -> Recovered:
    try:
        contents = read(path)
    except (ValueError, OSError) as error:
        return Recovered(path, path.stem, 0, "unreadable", first_line(error))
    launch_id = str(contents.header["launch_id"])
    alive = _maybe_alive(contents.header, locks)
    if alive:
        return Recovered(path, launch_id, contents.cells, "running", alive)
    if not contents.cells:
        return Recovered(path, launch_id, 0, "empty", _put_away(path, contents.damaged))
    stored = _find_stored(store, launch_id)
    if stored is not None and stored[1] >= contents.cells:
        return Recovered(stored[0], launch_id, stored[1], "stored already", _put_away(path, contents.damaged))
    try:
        provenance = {**contents.provenance, "recovered": True}
        target = write_launch(store, contents.rows, provenance, contents.blocks)
    except (EnvironmentProblem, ValueError) as error:
        return Recovered(path, launch_id, 0, "failed", first_line(error))
    return Recovered(target, launch_id, contents.cells, "recovered", _put_away(path, contents.damaged))


def _put_away(path: Path, damaged: int) -> str:
    """Remove a journal, or rename one with unreadable lines; what was lost, empty for nothing."""
    if not damaged:
        path.unlink()
        return ""
    path.rename(path.with_name(path.name + DAMAGED_SUFFIX))
    return f"{counted(damaged, 'line')} could not be read; the journal is kept as {path.name}{DAMAGED_SUFFIX}"


def _maybe_alive(header: dict[str, Any], locks: bool) -> str:
    """Why the writer may still run, judged by its process number where there are no locks; empty when it has ended."""
    if locks and header.get("locked", True):
        return ""
    host, pid = header.get("host"), header.get("pid")
    if host != socket.gethostname():
        return f"no file locks here, and its run was on {host}: recover there"
    if not isinstance(pid, int):
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return f"process {pid} is alive"


def _count(path: Path) -> int:
    try:
        return read(path).cells
    except (ValueError, OSError):
        return 0


def _find_stored(store: Path, launch_id: str) -> tuple[Path, int] | None:
    """The launch's file and its number of cells; None when there is no readable one."""
    import pyarrow.parquet as pq

    for path in sorted(store.glob(f"date=*/{launch_id}.parquet")):
        try:
            read_schema(path)
            return path, pq.read_metadata(path).num_rows
        except unreadable():
            continue
    for path in sorted(store.glob(f"date=*/{MERGED}*.parquet")):
        try:
            facts = launches(read_schema(path).metadata).get(launch_id)
        except unreadable():
            continue
        if facts is not None:
            return path, int(facts["rows"])
    return None

"""The journal of a running launch. Each finished cell is on disk before it is shown, so a killed run loses none.

``STORE/.journal/<launch_id>.jsonl`` has a header line, then one line for each finished cell, written with one call and
synced; cells that were finished together are one line. The writer holds a lock on the file as long as it lives, so that
``results recover`` takes only journals whose writer has ended. Lists of samples are base64 of little-endian float32
under ``{"f4": …}``.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import json
import os
import shlex
import socket
import sys
import weakref
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, cast

from omb_py.errors import EnvironmentProblem, NotStored, UsageError
from omb_py.grammar.json_values import JsonObject
from omb_py.results.store import schema
from omb_py.results.store.row import Row
from omb_py.results.store.write import JOURNALS, pack, reason, sync_folder, unpack, write_launch

SUFFIX = ".jsonl"
_MANY = 50_000
"""Samples from which on NumPy, which must be loaded, converts them faster: the ranks measure meanwhile."""
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


def recover_command(store: str | Path) -> str:
    """The shell command that turns journals into rows of the store."""
    return f"omb-py results recover --store {shlex.quote(str(store))}"


class Journal:
    """The journal of one running launch. As a context manager it closes the journal without finishing it."""

    def __init__(self, store: str | Path, launch_id: str, header: Mapping[str, Any]) -> None:
        """Create and lock the journal file.

        Args:
            store: the store's folder; it is created if needed.
            launch_id: id of the launch.
            header: ``run_id``, ``started_at`` and ``provenance`` of the launch; other entries are kept too.

        Raises:
            NotStored: the store cannot be written.
            ValueError: this launch already has a journal.
        """
        self.store = Path(store)
        self.path = Path(store) / JOURNALS / f"{launch_id}{SUFFIX}"
        self.launch_id = launch_id
        self.cells = 0
        """Finished cells."""
        self._rows: list[Row] = []
        self._blocks: list[bytes] = []
        self._provenance: Mapping[str, object] = dict(header.get("provenance") or {})
        if self.path.exists():
            raise ValueError(f"there is a journal {self.path} already")
        # written under a hidden name and renamed, so that nobody sees a journal without a lock or a header
        hidden = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        except OSError as error:
            raise NotStored(f"cannot write the journal {str(self.path)!r}: {reason(error)}") from error
        self._size = 0
        self._broken = False
        try:
            locked = lock(self._handle)
            fixed = {
                "schema_version": schema.SCHEMA_VERSION,
                "launch_id": launch_id,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "locked": locked,
            }
            self._line({**header, **fixed})
            os.rename(hidden, self.path)
            sync_folder(self.path.parent)
        except BaseException as error:
            self.close()
            with contextlib.suppress(OSError):
                os.unlink(hidden)
            if isinstance(error, OSError):
                raise NotStored(f"cannot write the journal {str(self.path)!r}: {reason(error)}") from error
            raise

    def append(self, row: Row) -> None:
        """Write a finished cell. It is on disk when this returns.

        Raises:
            NotStored: the cell could not be written; earlier ones are still there.
            ValueError: the row does not fit the schema.
        """
        (complete,) = self._check_rows([row])
        self._line({"row": encode_row(complete)})
        self._rows.append(complete)
        self.cells += 1

    def extend(self, rows: Sequence[Row]) -> None:
        """Write cells that were finished together, as one line. Raises like :meth:`append`."""
        block = pack(self._check_rows(rows))
        self._line({"rows": base64.b64encode(block).decode("ascii")})
        self._blocks.append(block)
        self.cells += len(rows)

    def _check_rows(self, rows: Sequence[Row]) -> list[Row]:
        complete = [schema.complete_row(row) for row in rows]
        other = next((row["launch_id"] for row in complete if row["launch_id"] != self.launch_id), None)
        if other is not None:
            raise ValueError(f"a row of launch {other} in the journal of {self.launch_id}")
        return complete

    def provenance(self, facts: Mapping[str, object]) -> None:
        """Replace the provenance of the header. Raises NotStored when it cannot be written."""
        self._line({"provenance": dict(facts)})
        self._provenance = dict(facts)

    def finish(self) -> Path | None:
        """Write the launch's Parquet file and remove the journal.

        Returns:
            The Parquet file, or None when no cell was appended.

        Raises:
            NotStored: the file could not be written. The journal stays, and the message says how to recover.
        """
        path: Path | None = None
        if self.cells:
            try:
                path = write_launch(self.store, self._rows, self._provenance, self._blocks)
            except NotStored as error:
                self.close()
                raise NotStored(f"{error}; {self._say_kept()}") from error
        # removed before the lock is released, so that no recovery takes it
        with contextlib.suppress(OSError):
            self.path.unlink()
        self.close()
        return path

    def close(self) -> None:
        """Release the journal without finishing it; it stays for ``results recover``."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _say_kept(self) -> str:
        if not self.cells:
            return "no cell of this launch was finished: make room, then start again"
        cells = "1 finished cell is" if self.cells == 1 else f"{self.cells} finished cells are"
        if not self.path.exists():
            return f"{cells} only on the screen: somebody removed {self.path} while the launch ran"
        return f"{cells} kept in {self.path}: make room, then run: {recover_command(self.store)}"

    def _line(self, value: Mapping[str, object]) -> None:
        if self._broken or self._handle < 0:
            raise NotStored(f"the journal is closed; {self._say_kept()}")
        data = json.dumps(value, separators=(",", ":"), default=_plain).encode() + b"\n"
        try:
            written = os.write(self._handle, data)
            if written < len(data):
                # a nearly full disk takes a part of the data; only the next call says why
                written += os.write(self._handle, data[written:])
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._handle)
        except OSError as error:
            self._take_back()
            raise NotStored(
                f"cannot write the journal {str(self.path)!r}: {reason(error)}; {self._say_kept()}"
            ) from error
        self._size += len(data)

    def _take_back(self) -> None:
        """Cut off the remains of a failed write, so that the next line starts at its beginning."""
        try:
            os.ftruncate(self._handle, self._size)
        except OSError:
            self._broken = True


def lock(handle: int) -> bool:
    """Lock an open file for the life of this process.

    Returns:
        False when the file system has no locks.

    Raises:
        BlockingIOError: another process holds the lock.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


class RunLock:
    """The lock of a run that this process measures, held as long as the object lives.

    A run has a journal only while a launch is made: between launches this lock alone says that it goes on.
    """

    def __init__(self, store: str | Path, run_id: str) -> None:
        """Take the lock; it may be taken again in the process that has it.

        Raises:
            UsageError: another process measures this run.
            EnvironmentProblem: the store cannot be written.
        """
        path = self._path = (Path(store) / JOURNALS / f"{run_id}{_RUN}").absolute()
        handle, holders = _HELD[path] if path in _HELD else (_open_locked(path, run_id), 0)
        _HELD[path] = handle, holders + 1
        weakref.finalize(self, _release, path, os.getpid())

    def ended_early(self, how: RunEnd) -> None:
        """Note how the run ended before its end: the file stays, for :func:`unfinished_runs`, until the run goes on."""
        handle, _ = _HELD[self._path]
        with contextlib.suppress(OSError):  # a full disk: then the run is one that was killed, by its empty file
            os.ftruncate(handle, 0)
            os.pwrite(handle, how.encode(), 0)


def left_in(store: str | Path, suffix: str) -> list[Path]:
    """The files with this suffix that launches have, or have left, in the folder of the journals.

    Raises EnvironmentProblem when they cannot be listed: they are another user's.
    """
    folder = Path(store) / JOURNALS
    try:
        return sorted(folder / name for name in os.listdir(folder) if name.endswith(suffix))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise EnvironmentProblem(f"cannot list {str(folder)!r}: {reason(error)}") from error


def unfinished_runs(store: str | Path) -> dict[str, RunEnd]:
    """How each run of a store stands that has not reached its end, by its id.

    A file system without locks does not tell a run that goes on from one that was killed: neither is named there.

    Raises as :func:`left_in`.
    """
    found: dict[str, RunEnd] = {}
    for path in left_in(store, _RUN):
        with contextlib.suppress(OSError), path.open("rb") as file:
            how = file.read().decode()
            if how in ENDS:  # whoever noted it may hold the lock a moment longer
                found[path.stem] = how
                continue
            try:
                if lock(file.fileno()):
                    found[path.stem] = "killed"
            except BlockingIOError:
                found[path.stem] = "running"
    return found


RunEnd = Literal["running", "interrupted", "failed", "killed"]
ENDS: tuple[RunEnd, ...] = ("interrupted", "failed")
"""Ends that a run notes itself."""
_RUN = ".run"
_HELD: dict[Path, tuple[int, int]] = {}
"""Path of each lock that this process has -> its descriptor and how many objects hold it."""


def _open_locked(path: Path, run_id: str) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                lock(handle)
                # whoever had the lock before removes the file: then this one is nobody's lock
                if _is(path, handle):
                    os.ftruncate(handle, 0)  # of a run that had ended early, and goes on
                    return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
    except BlockingIOError:
        raise UsageError(f"run {run_id} is still running: end it, or begin another without --resume") from None
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {str(path)!r}: {reason(error)}") from error


def _is(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _release(path: Path, process: int) -> None:
    if os.getpid() != process:  # a forked child has a copy of the object
        return
    handle, holders = _HELD.pop(path)
    if holders > 1:
        _HELD[path] = handle, holders - 1
        return
    with contextlib.suppress(OSError):
        if not os.fstat(handle).st_size:
            path.unlink()
    os.close(handle)


def encode_row(row: Row) -> dict[str, object]:
    """Convert a row for JSON: nulls are left out, lists of floats become base64 of float32."""
    return {k: _encode_floats(v) if k in schema.FLOAT_LISTS else v for k, v in row.items() if v is not None}


def decode_row(data: JsonObject) -> Row:
    """Invert :func:`encode_row`; lists of floats become arrays of float32. Raises ValueError on anything else."""
    values = {n: _decode_floats(value) if n in schema.FLOAT_LISTS else value for n, value in data.items()}
    return schema.complete_row(cast(Row, values))


def decode_block(value: object) -> tuple[bytes, int]:
    """The block of cells that were finished together, and their number. Raises ValueError on anything else."""
    if not isinstance(value, str):
        raise ValueError("a block of rows is not base64")
    block = base64.b64decode(value, validate=True)
    return block, unpack(block).num_rows


def _encode_floats(value: object) -> dict[str, str]:
    values = cast(Sequence[float], value)
    if len(values) > _MANY:
        import numpy as np

        return {"f4": base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode("ascii")}
    content = array("f", values)
    if sys.byteorder == "big":
        content.byteswap()
    return {"f4": base64.b64encode(content).decode("ascii")}


def _decode_floats(value: object) -> array[float]:
    if not isinstance(value, Mapping) or not isinstance(value.get("f4"), str):
        raise ValueError("a list of samples is not base64")
    content = array("f", base64.b64decode(value["f4"], validate=True))
    if sys.byteorder == "big":
        content.byteswap()
    return content


def _plain(value: object) -> object:
    """Convert for JSON: a NumPy scalar or array to Python's, a time to ISO text, anything else to text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)

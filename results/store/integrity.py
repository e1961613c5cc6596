"""Check that every file of a store holds the bytes that were written into it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from omb_py.results.store.footer import hash_in, hash_of
from omb_py.results.store.paths import DATE, StoreFile, check_store, entries
from omb_py.results.store.provenance import launches, outdated_launches, why_not
from omb_py.results.store.write import first_line

State = Literal["ok", "changed", "unreadable", "foreign", "misplaced", "double"]

BAD: tuple[State, ...] = ("changed", "unreadable", "misplaced")
"""States that make the check fail."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on one file."""

    path: Path
    state: State
    rows: int = 0
    note: str = ""


def verify(store: str | Path) -> Iterator[Checked]:
    """Read every file of a store whole, and yield a verdict on each.

    - ``ok``: all bytes are those that were written.
    - ``changed``: bytes differ from those that were written.
    - ``unreadable``: it is not a Parquet file, or a newer omb-py wrote it.
    - ``foreign``: omb-py did not write it.
    - ``misplaced``: it holds another launch or another day than its name says.
    - ``double``: some of its launches are read from another file. This is harmless; ``results compact`` ends it.

    Raises UsageError when there is no such store.
    """
    root = Path(store)
    check_store(root)
    problems: dict[Path, str] = {}
    listed = entries(root, problems.__setitem__)
    for path, why in problems.items():
        yield Checked(path, "unreadable", note=why)
    yield from filter(None, (_check(entry, listed) for entry in listed))


def _check(entry: StoreFile, listed: list[StoreFile]) -> Checked | None:
    """The verdict on a file; None when it was merged or removed meanwhile."""
    try:
        data = entry.path.read_bytes()
        carried = hash_in(data)
        if carried is not None and carried != hash_of(data):
            return Checked(entry.path, "changed", note="its bytes are not those that were written")
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            file_schema = file.schema_arrow
            why = why_not(file_schema)
            if why:
                foreign = why == "not written by omb-py"
                return Checked(entry.path, "foreign" if foreign else "unreadable", file.metadata.num_rows, why)
            if carried is None:
                return Checked(entry.path, "changed", file.metadata.num_rows, "it has no hash")
            table = file.read(["launch_id", "started_at"])
        held = launches(file_schema.metadata)
        wrong = _misplaced(entry, table, held or {entry.path.stem})
        if wrong:
            return Checked(entry.path, "misplaced", table.num_rows, wrong)
        elsewhere = outdated_launches(listed, {entry.relative: tuple(held)} if held else {})
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowException, ValueError) as error:
        return Checked(entry.path, "unreadable", note=first_line(error))
    if elsewhere:
        names = elsewhere[entry.relative]
        note = f"{len(names)} of its launches count elsewhere: {names[0]}"
        return Checked(entry.path, "double", table.num_rows, note)
    return Checked(entry.path, "ok", table.num_rows)


def _misplaced(entry: StoreFile, table: pa.Table, held: Collection[str]) -> str:
    """Why a file's name contradicts its rows; empty when it does not."""
    launch_ids = set(table["launch_id"].unique().to_pylist())
    if launch_ids != set(held):
        return f"it holds launch {min(map(str, launch_ids ^ set(held)))}, against its name or its list"
    days = set(pc.strftime(table["started_at"].cast(pa.timestamp("us")), "%Y-%m-%d").unique().to_pylist())
    folder = entry.path.parent.name
    if folder.startswith(f"{DATE}=") and days != {folder.removeprefix(f"{DATE}=")}:
        return f"its launches are of {', '.join(sorted(map(str, days)))}"
    return ""

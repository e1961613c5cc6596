"""Does every file of a store hold what was written into it?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from omb_py.errors import UsageError
from omb_py.results.store.footer import hash_in, hash_of
from omb_py.results.store.paths import DATE, Entry, entries
from omb_py.results.store.provenance import launches, outdated_launches, why_not
from omb_py.results.store.write import first_line

if TYPE_CHECKING:
    import pyarrow as pa

State = Literal["ok", "no hash", "changed", "unreadable", "foreign", "misplaced", "double"]

BAD: tuple[State, ...] = ("changed", "unreadable", "misplaced")
"""States that are a negative verdict."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on one file."""

    path: Path
    state: State
    rows: int = 0
    note: str = ""


def verify(store: str | Path) -> Iterator[Checked]:
    """Every file of a store, read whole, with its verdict.

    ``ok``: all bytes are those that were written. ``no hash``: written by a version without hashes; it reads well.
    ``changed``: bytes differ. ``unreadable``: no Parquet file, or of a newer omb-py. ``foreign``: not omb-py's.
    ``misplaced``: another launch or another day than its name says. ``double``: some of its launches count elsewhere;
    harmless, ``results compact`` ends it.

    Raises UsageError when there is no such store.
    """
    root = Path(store)
    if not root.is_dir():
        raise UsageError(f"no store at {str(root)!r}")
    problems: dict[Path, str] = {}
    listed = entries(root, problems.__setitem__)
    for path, why in problems.items():
        yield Checked(path, "unreadable", note=why)
    for entry in listed:
        found = _check(entry, listed)
        if found is not None:
            yield found


def _check(entry: Entry, listed: list[Entry]) -> Checked | None:
    """None when the file was merged or removed meanwhile."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        data = entry.path.read_bytes()
        carried = hash_in(data)
        if carried is not None and carried != hash_of(data):
            return Checked(entry.path, "changed", note="its bytes are not those that were written")
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            known = file.schema_arrow
            why = why_not(known)
            if why:
                foreign = why == "not written by omb-py"
                return Checked(entry.path, "foreign" if foreign else "unreadable", file.metadata.num_rows, why)
            table = file.read(None if carried is None else ["launch_id", "started_at"])
        held = launches(known.metadata)
        wrong = _misplaced(entry, table, held or {entry.path.stem: {}})
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
    if carried is None:
        version = json.loads((known.metadata or {})[b"omb_py.schema_version"])
        return Checked(entry.path, "no hash", table.num_rows, f"schema version {version}; all of it can be read")
    return Checked(entry.path, "ok", table.num_rows)


def _misplaced(entry: Entry, table: pa.Table, held: dict[str, dict[str, object]]) -> str:
    """What of a file's name is not true; empty when all is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = set(table["launch_id"].unique().to_pylist())
    if found != set(held):
        return f"it holds launch {min(map(str, found ^ set(held)))}, against its name or its list"
    days = set(pc.strftime(table["started_at"].cast(pa.timestamp("us")), "%Y-%m-%d").unique().to_pylist())
    folder = entry.path.parent.name
    if folder.startswith(f"{DATE}=") and days != {folder.removeprefix(f"{DATE}=")}:
        return f"its launches are of {', '.join(sorted(map(str, days)))}"
    return ""

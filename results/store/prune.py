"""Remove launches from a store: by age, by tag, by run. Whole launches only, and never by accident."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from omb_py.errors import UsageError
from omb_py.results.store.compact import merge, remove, tidying
from omb_py.results.store.launchfile import MERGED, launches
from omb_py.results.store.paths import Entry, OnSkip, entries, raise_generation
from omb_py.results.store.read import load_table, to_rows

_COLUMNS = ("run_id", "launch_id", "started_at", "tags")


@dataclass(frozen=True, slots=True)
class Doomed:
    """A launch that is to go."""

    launch_id: str
    run_id: str
    started_at: str
    cells: int


def doomed(
    store: str | Path,
    *,
    older_than: timedelta | None = None,
    tags: Mapping[str, str] | None = None,
    runs: Sequence[str] = (),
    now: datetime | None = None,
    on_skip: OnSkip = lambda path, why: None,
) -> list[Doomed]:
    """The launches that meet every criterion given, oldest first.

    Args:
        store: the folder.
        older_than: started so long before `now`.
        tags: with all these tags, in any of their cells.
        runs: of these runs, by id.
        now: for tests.
        on_skip: called with each file that cannot be read; it is never removed.

    Raises:
        UsageError: no criterion, since that would be the whole store; no such store.
    """
    if older_than is None and not tags and not runs:
        raise UsageError("say what to remove: --older-than AGE, --tag K=V or --run RUN")
    table = load_table(store, columns=_COLUMNS, on_skip=on_skip, **({"run_id": list(runs)} if runs else {}))
    before = None if older_than is None else ((now or datetime.now(UTC)) - older_than).isoformat()
    counted: dict[str, int] = {}
    tagged: dict[str, dict[str, str]] = {}
    rows: dict[str, dict[str, Any]] = {}
    for row in to_rows(table):
        name = row["launch_id"]
        counted[name] = counted.get(name, 0) + 1
        tagged.setdefault(name, {}).update(row["tags"] or {})
        rows.setdefault(name, row)
    found = [
        Doomed(name, row["run_id"], row["started_at"], counted[name])
        for name, row in rows.items()
        if (before is None or row["started_at"] < before)
        and all(tagged[name].get(key) == value for key, value in (tags or {}).items())
    ]
    return sorted(found, key=lambda one: (one.started_at, one.launch_id))


def prune(store: str | Path, launch_ids: Sequence[str], on_skip: OnSkip = lambda path, why: None) -> int:
    """Remove these launches: their own files, and their rows in merged files, which are written anew without them.

    Returns:
        Files that were removed or written anew.

    Raises:
        EnvironmentProblem: a file could not be removed or written, or another process is tidying; repeat it then.
    """
    root, gone = Path(store), frozenset(launch_ids)
    changed = 0
    with tidying(root):
        listed = entries(root)
        alone = [entry for entry in listed if entry.path.stem in gone]
        raise_generation(root)
        # merged ones first: a copy in one would count again as soon as the launch's own file is gone
        for entry in listed:
            if entry.path.name.startswith(MERGED) and not gone.isdisjoint(_held(entry)):
                merge(root, [entry], on_skip, gone)
                changed += 1
        for entry in alone:
            changed += remove(entry.path, entry.path.stat().st_ino)
    return changed


def _held(entry: Entry) -> Sequence[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return tuple(launches(pq.read_schema(entry.path).metadata))
    except (OSError, pa.ArrowException):
        return ()

"""Make a store smaller: merge the launch files of old days, and remove launches by age, tag or run.

The launch files of an old day become one file with the provenance of every launch, and no row is lost at any moment.
The merged file is written whole, read back and compared. Then the store's generation is raised. Only then do the old
files lose their names, each only if it is still the file that was read. Until then a launch's own file counts and the
merged copy does not (``outdated_launches``), so that a crash between any two of these steps leaves every row readable
exactly once, and repeating the merge finishes the work.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.results.store import index as summary_index
from omb_py.results.store import journal, schema
from omb_py.results.store.footer import check_whole, hash_in, read_schema, unreadable
from omb_py.results.store.paths import OnSkip, StoreFile, entries, maintenance, raise_generation
from omb_py.results.store.provenance import MERGED, MergedLaunch, Provenance, launches, pack, provenances, why_not
from omb_py.results.store.read import load_table, to_rows
from omb_py.results.store.row import Row
from omb_py.results.store.write import (
    LAUNCHES_KEY,
    PROVENANCES_KEY,
    VERSION_KEY,
    first_line,
    parquet,
    reason,
    write_atomically,
)

FILES = 500
"""At most this many files are merged into one."""
BYTES = 128 * 2**20
"""At most this many bytes of files are merged into one, since all of them are in memory at a time."""
_OLD = ".old"
_PRUNED_BY = ("run_id", "launch_id", "started_at", "tags")


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged file that replaces a group of files."""

    path: Path
    """The new file; in a dry run, the folder of the day."""
    launches: int
    files: int
    """Number of files that it replaces."""
    rows: int


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read whole, with its inode at that time."""

    entry: StoreFile
    inode: int
    table: pa.Table
    launches: dict[str, MergedLaunch]
    """By launch id."""
    provenance: Mapping[str, Provenance]
    """The provenance of each launch, by launch id."""


def compact(
    store: str | Path,
    older_than: timedelta,
    *,
    dry_run: bool = False,
    now: datetime | None = None,
    on_skip: OnSkip = lambda path, why: None,
) -> list[Merged]:
    """Merge the launch files of every day that ended at least `older_than` ago.

    Args:
        store: the folder.
        older_than: days that ended less than this before `now` are left unchanged.
        dry_run: return what would be merged, and change nothing.
        now: the current time; tests set it.
        on_skip: called with each file that is left unchanged, and the reason.

    Returns:
        The merged files; a day with nothing to merge has none.

    Raises:
        EnvironmentProblem: the store cannot be written, the disk is full, or another process is merging. No row is
            lost.
    """
    root = Path(store)
    last = ((now or datetime.now(UTC)) - older_than).date() - timedelta(1)
    if dry_run:
        return [_plan(group) for group in _groups(root, last)]
    with tidying(root):
        groups = list(_groups(root, last))
        merged = [result for group in groups if (result := merge(root, group, on_skip)) is not None]
    if merged:  # so that no reader has to make the index of all that was moved
        listed = entries(root)
        if len(listed) >= summary_index.WORTH:
            summary_index.refreshed(root, listed, on_skip)
    return merged


@contextlib.contextmanager
def tidying(root: Path) -> Iterator[None]:
    """Like :func:`maintenance`, and turn an OSError inside the block into an EnvironmentProblem."""
    with maintenance(root):
        try:
            _put_back(root)
            yield
        except OSError as error:
            raise EnvironmentProblem(f"cannot merge files of {str(root)!r}: {reason(error)}") from error


def merge(
    root: Path, group: Sequence[StoreFile], on_skip: OnSkip, without: frozenset[str] = frozenset()
) -> Merged | None:
    """Replace files of one day by one merged file. The caller must hold :func:`maintenance`.

    Args:
        root: the store.
        group: files of one folder. From a merged file only the launches are taken that have no file of their own here.
        on_skip: called with each file that cannot be read; it stays in place.
        without: ids of launches that are left out, and so removed from the store.

    Returns:
        The new file, or None when nothing could be read or nothing is left.

    Raises:
        OSError: the new file could not be written; the old ones are still there.
    """
    sources = [source for entry in group if (source := _read(entry, on_skip)) is not None]
    if not sources:
        return None
    parts = list(_keep_newest(sources, without))
    folder = sources[0].entry.path.parent
    target = None
    rows = sum(table.num_rows for _, table, _, _ in parts)
    if parts:
        table = _join(parts)
        names = sorted((name, facts.get("sha256") or "") for name, _, facts, _ in parts)
        target = folder / f"{MERGED}{hashlib.sha256(repr(names).encode()).hexdigest()[:16]}.parquet"
        write_atomically(target, parquet(table, merged=True))
        _compare(target, table)
    raise_generation(root)
    for source in sources:
        if source.entry.path != target:
            remove(source.entry.path, source.inode)
    return None if target is None else Merged(target, len(parts), len(sources), rows)


def remove(path: Path, inode: int) -> bool:
    """Remove a file if it still has this inode. Returns False, and keeps the file, when a newer one took its name."""
    hidden = path.with_name(f".{path.name}{_OLD}")
    # renamed before it is checked: between a check and a removal another process could replace the file
    try:
        os.rename(path, hidden)
    except FileNotFoundError:
        return False
    same = hidden.stat().st_ino == inode
    if not same:
        with contextlib.suppress(FileExistsError):  # then a still newer one is there
            os.link(hidden, path)
    os.unlink(hidden)
    return same


def _put_back(root: Path) -> None:
    """Restore the names of files that a crash in :func:`remove` left hidden."""
    for hidden in root.glob(f"*/.*{_OLD}"):
        with contextlib.suppress(FileExistsError):
            os.link(hidden, hidden.with_name(hidden.name[1 : -len(_OLD)]))
        os.unlink(hidden)


def _groups(root: Path, last: date) -> Iterator[list[StoreFile]]:
    """Groups of files to merge. Each is of one day, with no running launch and at least one file that is not merged."""
    listed = entries(root)
    running = {path.stem for path in journal.left_in(root, journal.SUFFIX)}
    folders: dict[Path, list[StoreFile]] = {}
    for entry in listed:
        with contextlib.suppress(ValueError):
            if date.fromisoformat(entry.day) <= last and entry.path.stem not in running:
                folders.setdefault(entry.path.parent, []).append(entry)
    for day_files in folders.values():
        alone = [entry for entry in day_files if not entry.path.name.startswith(MERGED)]
        if not alone:
            continue
        held = {entry: set(_launches(entry.path)) for entry in day_files if entry not in alone}
        outdated = [entry for entry, names in held.items() if names & {single.path.stem for single in alone}]
        small = [e for e, names in held.items() if e not in outdated and len(names) < FILES // 2]
        if len(alone) + len(outdated) + len(small) < 2:
            continue
        # a launch must not end up in two merged files, so its own file goes together with the outdated merged one
        again = {name for entry in outdated for name in held[entry]}
        must = [*outdated, *(entry for entry in alone if entry.path.stem in again)]
        rest = [*small, *(entry for entry in alone if entry.path.stem not in again)]
        yield from _split_bounded(must, rest)


def _split_bounded(must: Sequence[StoreFile], rest: Sequence[StoreFile]) -> Iterator[list[StoreFile]]:
    """Split files into groups within :data:`FILES` and :data:`BYTES`; all of `must` are in the first group.

    A file that is alone in its group is left as it is: merged alone, it would be merged again with each later launch.
    """
    group = list(must)
    for entry in rest:
        if group and (len(group) >= FILES or sum(e.size for e in group) + entry.size > BYTES):
            if len(group) > 1:
                yield group
            group = []
        group.append(entry)
    if len(group) > 1:
        yield group


def _plan(group: Sequence[StoreFile]) -> Merged:
    rows = 0
    names: set[str] = set()
    for entry in group:
        with contextlib.suppress(*unreadable()):
            rows += pq.read_metadata(entry.path).num_rows
            names |= set(_launches(entry.path)) or {entry.path.stem}
    return Merged(group[0].path.parent, len(names), len(group), rows)


def _launches(path: Path) -> Iterable[str]:
    try:
        return launches(read_schema(path).metadata)
    except unreadable():
        return ()


def _read(entry: StoreFile, on_skip: OnSkip) -> Source | None:
    """Read a file whole, with the columns of this version; None when it is gone, replaced or unreadable."""
    try:
        with entry.path.open("rb") as handle:
            inode = os.fstat(handle.fileno()).st_ino
            data = handle.read()
        check_whole(data)
        with pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True) as file:
            file_schema = file.schema_arrow
            why = why_not(file_schema)
            if why:
                on_skip(entry.path, why)
                return None
            table = file.read([name for name in schema.NAMES if name in set(file_schema.names)])
        held = launches(file_schema.metadata)
        provenance = provenances(entry.path)
    except FileNotFoundError:
        return None
    except unreadable(EnvironmentProblem) as error:
        on_skip(entry.path, f"damaged ({first_line(error)})")
        return None
    if entry.path.stat().st_ino != inode:  # replaced since: its provenance may be of the newer file
        return None
    if not held:
        ids = table["launch_id"].unique().to_pylist()
        if ids != [entry.path.stem]:
            on_skip(entry.path, "not the rows of the one launch that its name says")
            return None
        version = json.loads((file_schema.metadata or {}).get(VERSION_KEY, b"0"))
        held = {entry.path.stem: {"sha256": hash_in(data), "rows": table.num_rows, "schema_version": version}}
    return Source(entry, inode, schema.fitted(table, schema.arrow_schema()), held, provenance)


Piece = tuple[str, "pa.Table", MergedLaunch, "Provenance"]
"""One launch: id, rows, facts, provenance."""


def _keep_newest(sources: Sequence[Source], without: frozenset[str]) -> Iterator[Piece]:
    """Each launch once, sorted by id; its own file takes precedence over a merged one."""
    chosen: dict[str, Source] = {}
    for source in sorted(sources, key=lambda s: (s.entry.path.name.startswith(MERGED), s.entry.path.name)):
        for name in source.launches:
            chosen.setdefault(name, source)
    for name in sorted(chosen):
        source = chosen[name]
        if name in without:
            continue
        mask = pc.equal(source.table["launch_id"], pa.scalar(name))
        yield name, source.table.filter(mask), source.launches[name], source.provenance.get(name) or {}


def _join(parts: Sequence[Piece]) -> pa.Table:
    metadata = {
        VERSION_KEY: str(schema.SCHEMA_VERSION).encode(),
        LAUNCHES_KEY: json.dumps({name: facts for name, _, facts, _ in parts}, sort_keys=True).encode(),
        PROVENANCES_KEY: pack({name: provenance for name, _, _, provenance in parts}),
    }
    return pa.concat_tables([table for _, table, _, _ in parts]).replace_schema_metadata(metadata)


def _compare(target: Path, wanted: pa.Table) -> None:
    """Read a file back before anything is removed. Raises OSError when it differs from `wanted`."""
    try:
        with pq.ParquetFile(target) as file:
            copy = file.read()
        rows_differ = copy.num_rows != wanted.num_rows or any(
            not _are_same(copy[name], wanted[name]) for name in wanted.column_names
        )
    except pa.ArrowException as error:
        raise OSError(first_line(error)) from error
    if rows_differ:
        target.unlink(missing_ok=True)
        raise OSError(f"what was written to {str(target)!r} reads differently; nothing was removed")


def _are_same(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    """Whether two columns are equal value by value, with NaN equal to NaN."""
    return bool(a.equals(b) or repr(a.to_pylist()) == repr(b.to_pylist()))


@dataclass(frozen=True, slots=True)
class Doomed:
    """A launch that is to be removed."""

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
    """The launches that meet all given criteria, oldest first.

    Args:
        store: the folder.
        older_than: select launches that started more than this before `now`.
        tags: select launches that have all these tags, each in any of their cells.
        runs: select launches of the runs with these ids.
        now: the current time; tests set it.
        on_skip: called with each file that cannot be read; it is never removed.

    Raises:
        UsageError: no criterion is given, which would select the whole store; or there is no such store.
    """
    if older_than is None and not tags and not runs:
        raise UsageError("say what to remove: --older-than AGE, --tag K=V or --run RUN")
    table = load_table(store, columns=_PRUNED_BY, on_skip=on_skip, **({"run_id": list(runs)} if runs else {}))
    before = None if older_than is None else ((now or datetime.now(UTC)) - older_than).isoformat()
    counted: dict[str, int] = {}
    tagged: dict[str, dict[str, str]] = {}
    rows: dict[str, Row] = {}
    for row in to_rows(table):
        name = row["launch_id"]
        counted[name] = counted.get(name, 0) + 1
        tagged.setdefault(name, {}).update(row["tags"] or {})
        rows.setdefault(name, row)
    selected = [
        Doomed(name, row["run_id"], row["started_at"], counted[name])
        for name, row in rows.items()
        if (before is None or row["started_at"] < before)
        and all(tagged[name].get(key) == value for key, value in (tags or {}).items())
    ]
    return sorted(selected, key=lambda launch: (launch.started_at, launch.launch_id))


def prune(store: str | Path, launch_ids: Sequence[str], on_skip: OnSkip = lambda path, why: None) -> int:
    """Remove launches: delete their own files, and rewrite merged files without their rows.

    Returns:
        The number of files that were removed or rewritten.

    Raises:
        EnvironmentProblem: a file could not be removed or written, or another process is merging; the call may be
            repeated.
    """
    root, gone = Path(store), frozenset(launch_ids)
    changed = 0
    with tidying(root):
        listed = entries(root)
        alone = [entry for entry in listed if entry.path.stem in gone]
        raise_generation(root)
        # merged files first: a copy in one would count again as soon as the launch's own file is gone
        for entry in listed:
            if entry.path.name.startswith(MERGED) and not gone.isdisjoint(_launches(entry.path)):
                merge(root, [entry], on_skip, gone)
                changed += 1
        for entry in alone:
            changed += remove(entry.path, entry.path.stat().st_ino)
    return changed

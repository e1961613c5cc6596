"""Select the launches that a word on the command line means: a run, a tag, a column's value, or another store."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from omb_py.errors import UsageError, nearest
from omb_py.results.compare.match import COLUMNS, PILOT_ROUND, SIDES, Side, round_of
from omb_py.results.compare.tags import COMPARE_SIDE, leave_unusual_phases_out
from omb_py.results.dialects.log_files import logs_in, read_log, without_files
from omb_py.results.dialects.storing import ImportOptions, store_bytes
from omb_py.results.repro_command import storing
from omb_py.results.store.filters import TAGS, Filter, parse_filter
from omb_py.results.store.paths import SUFFIX, OnSkip, check_store, is_store, pass_over
from omb_py.results.store.provenance import Provenance, is_simulated, provenance_of
from omb_py.results.store.read import DATE, distinct_tags, load_table, to_rows
from omb_py.results.store.row import Row
from omb_py.results.store.runs import find_run
from omb_py.results.store.write import JOURNALS

_SHORT = 3
"""With so few cells the texts of two launches may well be equal."""


@dataclass(frozen=True, slots=True)
class SideLaunches:
    """One side, read from a store."""

    word: str
    rows: list[Row]
    provenances: list[Provenance]

    @property
    def count(self) -> int:
        return len({row["launch_id"] for row in self.rows})

    @property
    def is_simulated(self) -> bool:
        """Whether the ranks of a launch were simulated."""
        return any(map(is_simulated, self.provenances))


def read_side(word: str, store: Path, more: Sequence[str] = (), on_skip: OnSkip | None = None) -> SideLaunches:
    """Read the launches of one side.

    Args:
        word: a run's id, the beginning of it, or ``last``; ``tag=K=V``; ``COLUMN=VALUE`` as ``library_version=5.0.2``;
            or a folder: all launches of a store, or a launch for each log of another tool.
        store: folder of the store that is searched, unless `word` is a folder.
        more: columns to read beside those that a comparison needs.
        on_skip: as of :func:`omb_py.results.store.read.load`.

    Raises:
        UsageError: the word matches no launch; the text names the nearest word that does.
    """
    if is_folder_of_logs(word):
        return _read_logs(Path(word), more, on_skip)
    if not word:
        raise UsageError("a side is a run, tag=K=V, COLUMN=VALUE or the folder of a store, not an empty word")
    place, rows = _rows(word, store, on_skip, more)
    if not rows:
        raise UsageError(f"no launch in {str(place)!r} with {word}: {_list_there(word, place)}")
    return SideLaunches(word, rows, _provenances(place, rows))


def is_folder_of_logs(word: str) -> bool:
    """Whether a word names a folder that has files and is no store."""
    folder = Path(word)
    if not word or not folder.is_dir() or (folder / JOURNALS).exists() or any(folder.rglob(f"*{SUFFIX}")):
        return False
    return bool(logs_in(folder))


def _read_logs(folder: Path, more: Sequence[str], on_skip: OnSkip | None) -> SideLaunches:
    """Read each file of a folder as a launch, or as several where it has several tables of one kind.

    A short text that another folder has too is a launch of its own there.

    Raises:
        UsageError: no file could be read.
    """
    skip = on_skip or pass_over
    contents: Counter[bytes] = Counter()
    with tempfile.TemporaryDirectory(prefix="omb-py-") as name:
        for path in map(Path, logs_in(folder)):
            try:
                data, modified = read_log(str(path))
                digest = sha256(data).digest()
                imported = store_bytes(data, path.name, modified, name, ImportOptions(), contents[digest])
            except UsageError as error:
                skip(path, str(error))
                continue
            contents[digest] += 1
            for problem in imported.problems:
                skip(path, str(problem))
        store = Path(name)
        rows = _load(store, on_skip, more)
        if not rows:
            raise UsageError(f"no file of {folder} is a log that a reader knows: omb-py results import FILE says why")
        side = SideLaunches(str(folder), rows, _provenances(store, rows))
    place = sha256(bytes(folder.resolve())).hexdigest()[:8]
    cells = Counter(row["launch_id"] for row in rows)
    for row in rows:
        if cells[row["launch_id"]] <= _SHORT:
            row["launch_id"] = f"{row['launch_id']}-{place}"
    return side


def read_comparison(word: str, store: Path, on_skip: OnSkip | None = None) -> tuple[SideLaunches, SideLaunches]:
    """Read both sides of a run that was a comparison itself; `on_skip` is as of :func:`read_side`.

    Raises:
        UsageError: the run was no comparison, or `word` is a folder.
    """
    place, rows = _rows(word, store, on_skip)
    rows = [row for row in rows if round_of(row) != PILOT_ROUND]
    sides = [[row for row in rows if dict(row["tags"] or {}).get(COMPARE_SIDE) == side] for side in SIDES]
    if not all(sides) and is_store(word):
        raise UsageError(
            f"{word} is a folder, all of whose launches are one side: name the other too, as omb-py compare {word} "
            f"OTHER, or sides within it, as omb-py compare BASE NEW --store {word}"
        )
    if not all(sides):
        raise UsageError(
            f"{word} is no run of omb-py compare: name two sides, as omb-py compare {word} RUN (omb-py results list)"
        )
    base, new = (
        SideLaunches(f"{word} {side}", s, _provenances(place, s)) for side, s in zip(SIDES, sides, strict=True)
    )
    return base, new


def check_apart(base: SideLaunches, new: SideLaunches, store: Path) -> None:
    """Check that two sides, of a store unless they are folders, are separate.

    Raises:
        UsageError: the sides share launches, or one of them holds both sides of a comparison.
    """
    shared = {row["launch_id"] for row in base.rows} & {row["launch_id"] for row in new.rows}
    if shared:
        raise UsageError(
            f"{base.word} and {new.word} have {len(shared)} of their launches in common, such as {min(shared)}: "
            "name sides apart from each other, or see omb-py aa for a library against itself"
        )
    for side in (base, new):
        mixed: set[Side] = {dict(row["tags"] or {}).get(COMPARE_SIDE) for row in side.rows} - {None}  # type: ignore[assignment]
        if len(mixed) > 1:
            run = next(row["run_id"] for row in side.rows if dict(row["tags"] or {}).get(COMPARE_SIDE))
            shown = storing(f"omb-py compare {run}", side.word if Path(side.word).is_dir() else store)
            raise UsageError(
                f"{side.word} holds both sides of a comparison: {shown} shows it, and "
                f"tag={COMPARE_SIDE}=BASE names one side"
            )


def _rows(word: str, store: Path, on_skip: OnSkip | None, more: Sequence[str] = ()) -> tuple[Path, list[Row]]:
    name, equals, value = word.partition("=")
    if not equals and Path(word).is_file():
        raise UsageError(
            f"{word} is a file: omb-py results import {word} --tag file={Path(word).name} --store {store}, and "
            f"compare tag=file={Path(word).name}"
        )
    if not equals and ("/" in word or is_store(word)):
        rows = _load(Path(word), on_skip, more)
        if not rows and not (Path(word) / JOURNALS).exists():
            raise UsageError(without_files(word))
        return Path(word), rows
    if not equals:
        return store, _load(store, on_skip, more, run_id=_run(word, store))
    check_store(store)
    if not value:
        raise UsageError(f"{word!r} has no value: write {name}=VALUE, or tag=K=V")
    return store, _load(store, on_skip, more, **parse_filter(word).arguments())


def _run(word: str, store: Path) -> str:
    try:
        check_store(store)
        return find_run(store, word, on_skip=pass_over)
    except UsageError:
        if Path(word).is_dir():  # neither a run's name nor a folder with launches or logs
            raise UsageError(without_files(word)) from None
        raise


def _load(store: Path, on_skip: OnSkip | None, more: Sequence[str] = (), **filters: object) -> list[Row]:
    columns = dict.fromkeys((*COLUMNS, DATE, *more))
    rows = to_rows(load_table(store, columns=tuple(columns), on_skip=on_skip, **filters))
    return [*leave_unusual_phases_out(rows)]


def _list_there(word: str, place: Path) -> str:
    """Name what the store has of the kind that `word` asks for, the nearest first."""
    asked = parse_filter(word) if "=" in word else Filter("run_id", "")
    values = load_table(place, columns=[asked.column], on_skip=pass_over)[asked.column]
    if asked.tag:
        known = {Filter(TAGS, value, key).text() for key, value in distinct_tags(values)}
        return nearest(asked.text(), sorted(known)[:50]) if known else "it has no tags"
    known = {str(value) for value in values.unique().to_pylist() if value is not None}
    return nearest(asked.value, sorted(known)[:50]) if known else "it is empty"


def _provenances(store: Path, rows: Sequence[Row]) -> list[Provenance]:
    """Read the provenance of one launch of each environment; a launch without its file has none."""
    environments = {(row["environment_key"], row["library_version"]): row for row in rows}
    look = provenance_of(store)
    provenances = [look(str(row["launch_id"])) for row in environments.values()]
    return [provenance for provenance in provenances if provenance]

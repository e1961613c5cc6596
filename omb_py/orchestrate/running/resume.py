"""Resuming a suite: which of its cells are in the store already.

Every row of a suite has the suite's name and hash and its cell's key as tags. A key is made from everything that
decides what is measured, so a cell whose options have changed is measured again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from omb_py.engine.program.benchmark import Cell
from omb_py.errors import UsageError
from omb_py.options.request import Part
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.results.compare import tags as tag_names
from omb_py.results.store.keys import digest
from omb_py.results.store.paths import pass_over

SUITE_TAG, HASH_TAG, CELL_TAG = tag_names.SUITE, tag_names.SUITE_HASH, tag_names.SUITE_CELL
ACCEPTED = tag_names.ACCEPT_PHASE
"""Tag of the rows of ``omb-py accept``, which resumes in its own way."""
NEWEST = "last"
"""Stands for a run's id: the newest run of the same suite, or a new one where there is none."""
_COLUMNS = ("run_id", "launch_index", "started_at", "validated", "tags")


@dataclass(frozen=True, slots=True)
class SuiteProgress:
    """Progress of a run, by its rows in the store."""

    run_id: str
    done: frozenset[str]
    """Keys of the cells that have rows."""
    wrong: frozenset[str]
    """Keys of the cells that did not validate."""
    launches: int
    """Index of the next launch."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run to resume, with its rows from the store."""

    run_id: str
    rows: list[dict[str, Any]]
    """The rows, in the order of their launches."""

    @property
    def next_launch(self) -> int:
        """Index of the next launch."""
        return 1 + max(int(row["launch_index"]) for row in self.rows)


def suite_tags(part: Part) -> dict[str, str]:
    """Tags of all rows of a suite."""
    return {SUITE_TAG: part.suite, HASH_TAG: part.digest}


def cell_key(launch: LaunchPlan, cell: Cell) -> str:
    """The key of a cell within its run: the same cell of the same repetition has the same key in any launch."""
    facts = {**asdict(cell), "sweep": None}
    return digest([facts, asdict(launch.needs), launch.ranks, launch.turn])[:12]


def progress(store: Path, part: Part, which: str) -> SuiteProgress | None:
    """The progress of the run `which`; None for :data:`NEWEST` where the store has no run of this suite.

    Raises:
        UsageError: as :func:`stored_run`.
    """
    stored = stored_run(store, part, which, accepting=False)
    if stored is None:
        return None
    done = frozenset(key_of(row) for row in stored.rows)
    wrong = frozenset(key_of(row) for row in stored.rows if row["validated"] is False)
    return SuiteProgress(stored.run_id, done, wrong, stored.next_launch)


def stored_run(
    store: Path, part: Part, which: str, *, accepting: bool, columns: Sequence[str] = ()
) -> StoredRun | None:
    """Find the run of a suite to resume, after recovering the journals of processes that died.

    Args:
        store: folder of the store.
        part: any part of the suite.
        which: a run's id, the beginning of one, or :data:`NEWEST`.
        accepting: True for ``omb-py accept``, False for ``omb-py run``; neither resumes a run of the other.
        columns: further columns to read.

    Returns:
        None for :data:`NEWEST` where the store has no such run.

    Raises:
        UsageError: there is no such run, it belongs to another suite or version, the other command began it, or it is
            still running.
    """
    from omb_py.results.store.read import load_table, to_rows
    from omb_py.results.store.recovery import recover
    from omb_py.results.store.runs import find_run

    if not store.is_dir():
        if which == NEWEST:
            return None
        raise UsageError(f"no run {which!r}: there is no store at {str(store)!r}")
    alive = [journal.launch_id for journal in recover(store) if journal.state == "running"]
    wanted: dict[str, Any] = {} if which == NEWEST else {"run_id": find_run(store, which, on_skip=pass_over)}
    of_suite = to_rows(load_table(store, columns=_COLUMNS, on_skip=pass_over, tags=suite_tags(part), **wanted))
    if not of_suite and which != NEWEST:
        rows = to_rows(load_table(store, columns=_COLUMNS, on_skip=pass_over, **wanted))
        raise UsageError(_of_another(wanted["run_id"], part, rows))
    candidates = [row for row in of_suite if (ACCEPTED in dict(row["tags"])) is accepting]
    if not candidates and which == NEWEST:
        return None
    if not candidates:
        begun, command = ("was not begun", "run") if accepting else ("was begun", "accept")
        raise UsageError(f"run {which} {begun} by omb-py accept: omb-py {command} --resume resumes it")
    run_id = str(max(candidates, key=lambda row: (row["started_at"], row["run_id"]))["run_id"])
    if any(launch.startswith(f"{run_id}-") for launch in alive):
        raise UsageError(f"run {run_id} is still running: end it, or start another without --resume")
    both = list(dict.fromkeys((*_COLUMNS, *columns)))
    rows = to_rows(load_table(store, columns=both, on_skip=pass_over, run_id=run_id))
    rows.sort(key=lambda row: int(row["launch_index"]))
    return StoredRun(run_id, rows)


def remaining(launches: Sequence[LaunchPlan], known: SuiteProgress) -> list[LaunchPlan]:
    """The launches with the cells that are not in the store. Their indexes follow those of the stored launches."""
    ended = {cell.sweep for launch in launches for cell in launch.cells if cell_key(launch, cell) in known.wrong}
    left: list[LaunchPlan] = []
    for launch in launches:
        cells = tuple(c for c in launch.cells if c.sweep not in ended and cell_key(launch, c) not in known.done)
        if cells:
            left.append(replace(launch, cells=cells, index=known.launches + len(left)))
    return left


def key_of(row: Mapping[str, Any]) -> str:
    """The key of a row's cell, see :func:`cell_key`."""
    return str(dict(row["tags"])[CELL_TAG])


def _of_another(run_id: str, part: Part, rows: Iterable[dict[str, Any]]) -> str:
    suites = {dict(row["tags"] or {}).get(SUITE_TAG) for row in rows}
    if part.suite in suites:
        return f"run {run_id} was begun by another version of suite {part.suite}: start a new run without --resume"
    return f"run {run_id} is not one of suite {part.suite}: see omb-py results list"

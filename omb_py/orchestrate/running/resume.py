"""Resuming what was interrupted, for every command: its declared design, its launches, the cells that are left.

Comparisons and tunings declare a design in ``STORE/.reports`` before their first launch. Every row of a suite has the
suite's name and hash and its cell's key as tags; a key is made from all that decides what is measured, so a cell whose
options have changed is measured again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from omb_py.engine.program.benchmark import Cell
from omb_py.errors import NotStored, UsageError
from omb_py.options.request import NEWEST, SuitePosition
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.results.compare.tags import ACCEPT_PHASE, SUITE, SUITE_CELL, SUITE_HASH
from omb_py.results.store.keys import digest
from omb_py.results.store.paths import REPORTS, pass_over, report_files
from omb_py.results.store.row import Row
from omb_py.results.store.write import reason, write_atomically

_COLUMNS = ("run_id", "started_at", "tags")
LOST = "lost"
"""What a design says of nodes that stopped answering."""
COMPARISON, TUNING = ".begun", ".tuning"
"""Endings of the files that hold the designs of commands."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run to resume, with its rows from the store."""

    run_id: str
    rows: list[Row]
    """The rows, in the order of their launches."""

    @property
    def next_launch(self) -> int:
        """Index of the next launch."""
        return 1 + max((int(row["launch_index"]) for row in self.rows), default=-1)

    @property
    def done(self) -> frozenset[str]:
        """Keys of the cells of a suite that have rows."""
        return frozenset(map(key_of, self.rows))

    @property
    def wrong(self) -> frozenset[str]:
        """Keys of the cells of a suite that did not validate."""
        return frozenset(key_of(row) for row in self.rows if row["validated"] is False)

    def by_launch(self) -> list[list[Row]]:
        """The rows of each launch, in the order of the launches."""
        launches: dict[int, list[Row]] = {}
        for row in self.rows:
            launches.setdefault(int(row["launch_index"]), []).append(row)
        return list(launches.values())


def read_run(store: Path, run_id: str, what: str) -> StoredRun:
    """Read the launches of an interrupted run, after recovering the journals of processes that died.

    Args:
        store: folder of the launches.
        run_id: the run; it may have no launch yet.
        what: what it is, as ``comparison``, for the message.

    Raises:
        UsageError: the run is still running.
    """
    from omb_py.results.store.recovery import recover

    if any(journal.state == "running" and journal.launch_id.startswith(f"{run_id}-") for journal in recover(store)):
        raise UsageError(f"run {run_id} is still running: end it, or begin another {what} without --resume")
    return StoredRun(run_id, _rows_of(store, run_id))


def _rows_of(store: Path, run_id: str) -> list[Row]:
    """The rows of a run without their samples, in the order of its launches."""
    from omb_py.results.store import schema
    from omb_py.results.store.read import load_table, to_rows

    columns = [name for name in schema.NAMES if name not in ("samples_us", "samples_avg_us")]
    rows = to_rows(load_table(store, columns=columns, on_skip=pass_over, run_id=run_id))
    return sorted(rows, key=lambda row: int(row["launch_index"]))


def suite_tags(part: SuitePosition) -> dict[str, str]:
    """Tags of all rows of a suite."""
    return {SUITE: part.suite, SUITE_HASH: part.digest}


def cell_key(launch: LaunchPlan, cell: Cell) -> str:
    """The key of a cell within its run: the same cell of the same repetition has the same key in any launch."""
    facts = {**asdict(cell), "sweep": None}
    part = launch.requests[cell.sweep].part if launch.requests else None
    place = [part.name, part.hosts] if part and (part.name or part.hosts) else []
    return digest([facts, asdict(launch.needs), launch.ranks, launch.turn, *place])[:12]


def stored_run(store: Path, part: SuitePosition, which: str, *, accepting: bool) -> StoredRun | None:
    """Find the run of a suite to resume, after recovering the journals of processes that died.

    Args:
        store: folder of the store.
        part: any part of the suite.
        which: a run's id, the beginning of one, or :data:`NEWEST`.
        accepting: True for ``omb-py accept``, False for ``omb-py run``; neither resumes a run of the other.

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
    wanted: dict[str, str] = {} if which == NEWEST else {"run_id": find_run(store, which, on_skip=pass_over)}
    of_suite = to_rows(load_table(store, columns=_COLUMNS, on_skip=pass_over, tags=suite_tags(part), **wanted))
    if not of_suite and which != NEWEST:
        rows = to_rows(load_table(store, columns=_COLUMNS, on_skip=pass_over, **wanted))
        raise UsageError(_explain_other_suite(wanted["run_id"], part, rows))
    candidates = [row for row in of_suite if (ACCEPT_PHASE in dict(row["tags"])) is accepting]
    if not candidates and which == NEWEST:
        return None
    if not candidates:
        begun, command = ("was not begun", "run") if accepting else ("was begun", "accept")
        raise UsageError(f"run {which} {begun} by omb-py accept: omb-py {command} --resume resumes it")
    run_id = str(max(candidates, key=lambda row: (row["started_at"], row["run_id"]))["run_id"])
    if any(launch.startswith(f"{run_id}-") for launch in alive):
        raise UsageError(f"run {run_id} is still running: end it, or start another without --resume")
    return StoredRun(run_id, _rows_of(store, run_id))


def note_new(note: Callable[[str], None], which: str | None, earlier: object, what: str, store: Path | None) -> None:
    """Note that a new run begins where ``--resume`` (`which`) found none of `what`, as ``interrupted tuning``."""
    if which is not None and earlier is None:
        note(f"--resume: no {what} in {str(store)!r}: a new one begins")


def remaining(launches: Sequence[LaunchPlan], stored: StoredRun) -> list[LaunchPlan]:
    """The launches with the cells that are not in the store. Their indexes follow those of the stored launches."""
    done, wrong = stored.done, stored.wrong
    ended = {cell.sweep for launch in launches for cell in launch.cells if cell_key(launch, cell) in wrong}
    left: list[LaunchPlan] = []
    for launch in launches:
        cells = tuple(c for c in launch.cells if c.sweep not in ended and cell_key(launch, c) not in done)
        if cells:
            left.append(replace(launch, cells=cells, index=stored.next_launch + len(left)))
    return left


def key_of(row: Row) -> str:
    """The key of a row's cell, see :func:`cell_key`."""
    return str(dict(row["tags"])[SUITE_CELL])


def _explain_other_suite(run_id: str, part: SuitePosition, rows: Iterable[Row]) -> str:
    suites = {dict(row["tags"] or {}).get(SUITE) for row in rows}
    if part.suite in suites:
        return f"run {run_id} was begun by another version of suite {part.suite}: start a new run without --resume"
    return f"run {run_id} is not one of suite {part.suite}: see omb-py results list"


def declare_design(store: Path, run_id: str, design: Mapping[str, object], ending: str = COMPARISON) -> None:
    """Write the design of a comparison before its first launch. Raises NotStored.

    `ending` is that of the file, by which another command keeps its designs apart.
    """
    path = _design_path(store, run_id, ending)
    try:
        write_atomically(path, json.dumps(design, indent=1, sort_keys=True).encode())
    except OSError as error:
        raise NotStored(f"cannot write {str(path)!r}: {reason(error)}") from error


def continues(store: Path, command: str, run_id: str) -> bool:
    """Whether ``--resume`` of the command that began a run can continue it: one that is a part of another cannot."""
    ending = {"compare": COMPARISON, "aa": COMPARISON, "tune": TUNING}.get(command)
    return ending is None or _design_path(store, run_id, ending).is_file()


def forget_design(store: Path, run_id: str, ending: str = COMPARISON) -> None:
    """Remove the design of a comparison whose last launch was made."""
    _design_path(store, run_id, ending).unlink(missing_ok=True)


def _design_path(store: Path, run_id: str, ending: str) -> Path:
    return store / REPORTS / f"{run_id}{ending}"


def find_unfinished(
    store: Path, which: str, declared: Mapping[str, object], ending: str = COMPARISON, what: str = "comparison"
) -> tuple[str, dict[str, Any]] | None:
    """Find the comparison to resume among those that were interrupted.

    Args:
        store: folder of its launches.
        which: id of the run, the beginning of one, or ``last`` for the newest that declared the same.
        declared: what it must have declared, as :func:`check_same_design`.
        ending: ending of the files that hold designs.
        what: what is looked for, for messages.

    Returns:
        The id of the run and its design; None for ``last`` where no comparison was interrupted.

    Raises:
        UsageError: there is no such comparison, several ids begin so, or it declared something else.
    """
    known = {path.name.removesuffix(ending): path for path in sorted((store / REPORTS).glob(f"*{ending}"))}
    fits = [run for run in known if which == NEWEST or run.startswith(which)]
    if which == NEWEST and not known:
        return None
    if not fits and (done := [path.stem for path in report_files(store) if path.stem.startswith(which)]):
        raise UsageError(f"--resume={which}: run {done[-1]} is finished: leave --resume out to measure anew")
    if which != NEWEST and len(fits) != 1:
        ids = ", ".join(sorted(known)[-5:]) or "none"
        why = f"several interrupted {what}s begin so" if fits else f"no interrupted {what} has this id"
        raise UsageError(f"--resume={which}: {why}; interrupted in {str(store)!r}: {ids}")
    designs = {run: _read_design(known[run], run, what) for run in reversed(fits)}
    same = [run for run, design in designs.items() if not _difference(design, declared)]
    run_id = next(iter(same or designs))
    check_same_design(run_id, designs[run_id], declared)
    return run_id, designs[run_id]


def lost_before(store: Path, which: str | None, ending: str = COMPARISON) -> dict[str, str]:
    """The nodes that were lost before the interruption -> reason: a resumed command leaves them out too.

    Args:
        which: as of :func:`find_unfinished`; None: nothing is resumed.
    """
    known = [] if which is None else sorted((store / REPORTS).glob(f"*{ending}"), reverse=True)
    fits = [path for path in known if which == NEWEST or path.name.startswith(which or "")]
    if not fits:
        return {}
    design = _read_design(fits[0], fits[0].name.removesuffix(ending), "run")
    return {str(node): str(why) for node, why in design.get(LOST, {}).items()}


def _read_design(path: Path, run_id: str, what: str) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise UsageError(f"--resume={run_id}: its design cannot be read ({error}): start a new {what}") from None


def check_same_design(run_id: str, begun: Mapping[str, object], now: Mapping[str, object]) -> None:
    """Raises UsageError where a comparison was begun with another design: all of its launches are judged together."""
    if what := _difference(begun, now):
        raise UsageError(
            f"run {run_id} was begun with {what}: its launches are judged together: give the same options, or "
            "begin a new comparison without --resume"
        )


def _difference(begun: Mapping[str, object], now: Mapping[str, object]) -> str:
    """The first thing in which two designs differ, in words; empty where they are the same."""
    for name, value in now.items():
        if begun.get(name) != value:
            before, after = (json.dumps(v, sort_keys=True) for v in (begun.get(name), value))
            short = len(before) < 60 and len(after) < 60
            return f"{name} {before}, and is resumed with {after}" if short else f"other {name}"
    return ""

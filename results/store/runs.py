"""The runs of a store: list them, find one by its id, return its rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.results.store.journal import RunEnd, unfinished_runs
from omb_py.results.store.read import OnSkip, load_table, to_rows
from omb_py.results.store.row import Row

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_LISTED = tuple("run_id launch_id started_at benchmark backend library library_version ranks validated".split())
_ROW, _FIRST = "row", "row_min"
"""Columns: the place of a cell in the store, and the first one of a group."""

LAST = "last"
"""Stands for the newest run, in place of a run's id."""


class _Group(Row):
    """Cells of a launch that are equal in the columns :data:`_LISTED`."""

    count_all: int


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Summary of one invocation."""

    run_id: str
    started_at: str
    """Start of the first launch, ISO 8601, UTC."""
    benchmarks: tuple[str, ...]
    backends: tuple[str, ...]
    libraries: tuple[str, ...]
    """Each library's name and version."""
    ranks: tuple[int, ...]
    cells: int
    launches: int
    failed: int
    """Number of cells with wrong bytes."""
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tag -> its values in the launches, those that omb-py writes too."""
    state: RunEnd | None = None
    """How a run stands that has not reached its end; None: it has."""


def runs(store: str | Path, *, on_skip: OnSkip | None = None) -> list[RunSummary]:
    """The runs of a store, oldest first. Raises UsageError when there is no such folder."""
    import pyarrow as pa

    grouped: dict[str, list[_Group]] = {}
    cells = load_table(store, columns=(*_LISTED, "tags"), on_skip=on_skip)
    cells = cells.append_column(_ROW, pa.array(range(cells.num_rows), pa.int64()))
    # counted in Arrow first: a big store has many cells but few distinct combinations of these columns
    kinds = cells.group_by(list(_LISTED)).aggregate([([], "count_all"), (_ROW, "min")])
    for row in cast("list[_Group]", to_rows(kinds.sort_by(_FIRST))):  # groups come in an order of their hashes
        grouped.setdefault(row["run_id"], []).append(row)
    tags = _tags(cells)
    unfinished: dict[str, RunEnd] = {}
    with contextlib.suppress(EnvironmentProblem):  # the folder is another user's
        unfinished = unfinished_runs(store)
    summaries = [_run(run_id, rows, tags.get(run_id, {}), unfinished.get(run_id)) for run_id, rows in grouped.items()]
    return sorted(summaries, key=lambda run: (run.started_at, run.run_id))


def find_run(store: str | Path, which: str, *, on_skip: OnSkip | None = None) -> str:
    """Find the id of a run: the whole id, the beginning of only one, or ``last`` for the newest.

    Raises UsageError when no run matches (it names the nearest) or several do (it lists them).
    """
    cells = load_table(store, columns=("run_id", "started_at"), on_skip=on_skip)
    begun = cells.group_by("run_id").aggregate([("started_at", "min")])
    known: list[str] = begun.sort_by([("started_at_min", "ascending"), ("run_id", "ascending")])["run_id"].to_pylist()
    if not known:
        raise UsageError(f"no runs in {str(store)!r}: name another --store, or measure first, as omb-py allreduce -n 2")
    if which == LAST:
        return known[-1]
    if not which:
        raise UsageError(f"a run is its id, the beginning of it, or {LAST}: omb-py results list shows them")
    matches = [run for run in known if run == which] or [run for run in known if run.startswith(which)]
    if len(matches) == 1 and which:
        return matches[0]
    if not matches:
        raise UsageError(f"no run {which!r} in {str(store)!r}: {nearest(which, known[-20:])}")
    shown = ", ".join(matches[:5]) + (", …" if len(matches) > 5 else "")
    raise UsageError(f"{len(matches)} runs start with {which!r}: {shown}")


def show(store: str | Path, which: str = LAST, *, on_skip: OnSkip | None = None) -> list[Row]:
    """All rows of one run, in the order in which they were measured. Raises UsageError like :func:`find_run`."""
    run_id = find_run(store, which, on_skip=on_skip)
    rows = to_rows(load_table(store, run_id=run_id, on_skip=lambda path, why: None))
    return sorted(rows, key=lambda row: int(row["launch_index"]))


def _tags(cells: pa.Table) -> dict[str, dict[str, list[str]]]:
    """Run id -> tag -> its values; read from one row of each launch, because a launch has one set of tags."""
    first = cells.group_by("launch_id").aggregate([(_ROW, "min")]).sort_by(_FIRST)[_FIRST]
    out: dict[str, dict[str, list[str]]] = {}
    for row in to_rows(cells.select(["run_id", "tags"]).take(first)):
        for key, value in dict(row["tags"] or {}).items():
            values = out.setdefault(row["run_id"], {}).setdefault(key, [])
            if value not in values:
                values.append(value)
    return out


def _run(run_id: str, rows: list[_Group], tags: Mapping[str, list[str]], state: RunEnd | None) -> RunSummary:
    return RunSummary(
        run_id=run_id,
        started_at=min(row["started_at"] for row in rows),
        benchmarks=_distinct(row["benchmark"] for row in rows),
        backends=_distinct(row["backend"] for row in rows),
        libraries=_distinct(_library(row) for row in rows),
        ranks=_distinct(row["ranks"] for row in rows),
        cells=sum(row["count_all"] for row in rows),
        launches=len({row["launch_id"] for row in rows}),
        failed=sum(row["count_all"] for row in rows if row["validated"] is False),
        tags={key: tuple(values) for key, values in tags.items()},
        state=state,
    )


def _library(row: _Group) -> str | None:
    return " ".join(filter(None, (row["library"], row["library_version"]))) or None


def _distinct(values: Iterable[T | None]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))

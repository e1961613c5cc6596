"""Resuming a comparison: its declared design, and the launches of it that are stored.

A comparison is a fixed sequence of launches, given its seed and the results so far. A resumed one goes through the same
sequence and takes the results of a launch from the store where it has them, so it ends with the report that it would
have had. ``STORE/.reports/RUN.begun`` holds the design until the report is made.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omb_py.engine.program.benchmark import Cell
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.orchestrate.running.resume import NEWEST
from omb_py.results.compare.match import PAIR_TAG, SIDE_TAG, SIDES, Side, round_of
from omb_py.results.store.paths import REPORTS
from omb_py.results.store.write import reason, write_atomically

BEGUN = ".begun"
Row = dict[str, Any]
_SAME = ("benchmark", "backend", "binding", "dtype", "op")
"""Columns by which a row is recognised as that of a cell, with the size; the order of the rows does the rest."""


@dataclass(slots=True)
class StoredPairs:
    """The launches of a comparison that are in the store, in the order in which they were made."""

    waiting: deque[list[Row]] = field(default_factory=deque)
    """Rows of each launch that was not taken yet."""
    provenances: dict[Side, list[dict[str, Any]]] = field(default_factory=lambda: {side: [] for side in SIDES})
    next_index: int = 0
    """Index of the next launch."""

    def take(self, side: Side, number: int, pair: int, cells: Sequence[tuple[int, Cell]]) -> dict[int, Row]:
        """Take the stored rows of one launch of the sequence.

        Args:
            side: the side of the launch.
            number: its round.
            pair: its pair.
            cells: its cells with their numbers, in the order in which they are measured.

        Returns:
            Number of a cell -> its row. Cells that an interrupted launch lacks are missing; it may be all of them.
        """
        rows: dict[int, Row] = {}
        while self.waiting:
            first = self.waiting[0][0]
            tags = dict(first["tags"])
            if tags.get(SIDE_TAG) != side or round_of(first) != number or tags.get(PAIR_TAG) != str(pair):
                break
            left = [(index, cell) for index, cell in cells if index not in rows]
            matched = _matched(self.waiting[0], left)
            if matched is None:
                break
            rows |= matched
            self.waiting.popleft()
            if len(rows) == len(cells):
                break
        return rows


def _matched(rows: Sequence[Row], cells: Sequence[tuple[int, Cell]]) -> dict[int, Row] | None:
    """Match the rows of a launch to cells, both in order; None where a row has no cell."""
    matched: dict[int, Row] = {}
    following = iter(cells)
    for row in rows:
        for index, cell in following:
            if all(_text(row[name]) == _text(getattr(cell, name)) for name in _SAME) and (row["size_bytes"] or 0) == (
                cell.size or 0
            ):
                matched[index] = row
                break
        else:
            return None
    return matched


def _text(value: Any) -> str:
    return str(value or "")


def declare(store: Path, run_id: str, design: Mapping[str, Any], ending: str = BEGUN) -> None:
    """Write the design of a comparison before its first launch. Raises EnvironmentProblem.

    `ending` is that of the file, by which another command keeps its designs apart.
    """
    path = _path(store, run_id, ending)
    try:
        write_atomically(path, json.dumps(design, indent=1, sort_keys=True).encode())
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {str(path)!r}: {reason(error)}") from error


def ended(store: Path, run_id: str, ending: str = BEGUN) -> None:
    """Remove the design of a comparison whose last launch was made."""
    _path(store, run_id, ending).unlink(missing_ok=True)


def _path(store: Path, run_id: str, ending: str) -> Path:
    return store / REPORTS / f"{run_id}{ending}"


def unfinished(
    store: Path, which: str, ending: str = BEGUN, what: str = "comparison"
) -> tuple[str, dict[str, Any]] | None:
    """Find a comparison that was interrupted.

    Args:
        store: folder of its launches.
        which: id of the run, the beginning of one, or ``last``.
        ending: ending of the files that hold designs.
        what: what is looked for, for messages.

    Returns:
        The id of the run and its design; None for ``last`` where no comparison was interrupted.

    Raises:
        UsageError: there is no such comparison, or several ids begin so.
    """
    known = {path.name.removesuffix(ending): path for path in sorted((store / REPORTS).glob(f"*{ending}"))}
    if which == NEWEST:
        if not known:
            return None
        run_id = max(known)
    else:
        fits = [run for run in known if run.startswith(which)]
        if len(fits) != 1:
            ids = ", ".join(sorted(known)[-5:]) or "none"
            why = f"several interrupted {what}s begin so" if fits else f"no interrupted {what} has this id"
            raise UsageError(f"--resume={which}: {why}; interrupted in {str(store)!r}: {ids}")
        (run_id,) = fits
    try:
        return run_id, dict(json.loads(known[run_id].read_text()))
    except (OSError, ValueError) as error:
        raise UsageError(f"--resume={run_id}: its design cannot be read ({error}): start a new {what}") from None


def check_same(run_id: str, begun: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises UsageError where a comparison was begun with another design: all of its launches are judged together."""
    for name, value in now.items():
        if begun.get(name) != value:
            before, after = (json.dumps(v, sort_keys=True) for v in (begun.get(name), value))
            short = len(before) < 60 and len(after) < 60
            what = f"{name} {before}, and is resumed with {after}" if short else f"other {name}"
            raise UsageError(
                f"run {run_id} was begun with {what}: its launches are judged together: give the same options, or "
                "begin a new comparison without --resume"
            )


def stored_launches(store: Path, run_id: str) -> StoredPairs:
    """Read the launches of a comparison, after recovering the journals of processes that died.

    Raises:
        UsageError: the comparison is still running.
    """
    from omb_py.results.store import schema
    from omb_py.results.store.provenance import provenance_of
    from omb_py.results.store.read import load_table, to_rows
    from omb_py.results.store.recovery import recover

    if any(journal.state == "running" and journal.launch_id.startswith(f"{run_id}-") for journal in recover(store)):
        raise UsageError(f"run {run_id} is still running: end it, or begin another comparison without --resume")
    columns = [name for name in schema.NAMES if name not in ("samples_us", "samples_avg_us")]
    rows = to_rows(load_table(store, columns=columns, run_id=run_id))
    stored = StoredPairs()
    by_launch: dict[int, list[Row]] = {}
    for row in rows:
        by_launch.setdefault(int(row["launch_index"]), []).append(row)
    stored.waiting.extend(by_launch[index] for index in sorted(by_launch))
    stored.next_index = max(by_launch, default=-1) + 1
    look = provenance_of(store)
    for side, launch_id in _first_of_each(rows):
        if provenance := dict(look(launch_id)):
            stored.provenances[side].append(provenance)
    return stored


def _first_of_each(rows: Sequence[Row]) -> Iterator[tuple[Side, str]]:
    for side in SIDES:
        launch = next((str(row["launch_id"]) for row in rows if dict(row["tags"]).get(SIDE_TAG) == side), None)
        if launch is not None:
            yield side, launch

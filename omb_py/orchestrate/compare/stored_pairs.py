"""The stored launches of a comparison that is resumed.

The order of a comparison's launches depends on its seed and its results alone. So a resumed comparison goes through the
same order and takes each launch from the store, as long as there is one.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omb_py.engine.program.benchmark import Cell
from omb_py.orchestrate.compare.interleaving import CompareDesign
from omb_py.orchestrate.compare.pilot import PAIRS
from omb_py.orchestrate.running.resume import declare_design, read_run
from omb_py.results.compare.match import PILOT_ROUND, SIDES, Side, round_of
from omb_py.results.compare.tags import COMPARE_PAIR, COMPARE_SIDE
from omb_py.results.store.row import Row
from omb_py.results.store.schema import value_of

if TYPE_CHECKING:
    from omb_py.results.store.provenance import Provenance

_SAME = ("benchmark", "backend", "binding", "dtype", "op", "size_bytes")
"""Columns by which a row is recognised as that of a cell; the order of the rows does the rest."""


@dataclass(slots=True)
class StoredPairs:
    """The launches of a comparison that are in the store, in the order in which they were made."""

    waiting: deque[list[Row]] = field(default_factory=deque)
    """Rows of each launch that was not taken yet."""
    provenances: dict[Side, list[Provenance]] = field(default_factory=lambda: {side: [] for side in SIDES})
    next_index: int = 0

    def has_next(self, side: Side, number: int, pair: int) -> bool:
        """Whether the next launch is this one of the sequence."""
        if not self.waiting:
            return False
        first = self.waiting[0][0]
        tags = dict(first["tags"])
        return tags.get(COMPARE_SIDE) == side and round_of(first) == number and tags.get(COMPARE_PAIR) == str(pair)

    def take(self, side: Side, number: int, pair: int, cells: Sequence[tuple[int, Cell]]) -> dict[int, Row]:
        """Take the stored rows of one launch of the sequence.

        Args:
            cells: its cells with their numbers, in the order in which they are measured.

        Returns:
            Number of a cell -> its row. Cells that an interrupted launch lacks are missing; it may be all of them.
        """
        rows: dict[int, Row] = {}
        while self.has_next(side, number, pair):
            left = [(index, cell) for index, cell in cells if index not in rows]
            matched = _match(self.waiting[0], left)
            if matched is None:
                break
            rows |= matched
            self.waiting.popleft()
            if len(rows) == len(cells):
                break
        return rows


def _match(rows: Sequence[Row], cells: Sequence[tuple[int, Cell]]) -> dict[int, Row] | None:
    """Match the rows of a launch to cells, both in order; None where a row has no cell."""
    matched: dict[int, Row] = {}
    following = iter(cells)
    for row in rows:
        for index, cell in following:
            # a row of no reduction has no operation, whatever the cell has
            op = cell.options.get("op") if value_of(row, "op") else ""
            of_cell = (cell.benchmark, cell.backend, cell.binding, cell.dtype, op, cell.size)
            if list(map(_text, of_cell)) == [_text(value_of(row, name)) for name in _SAME]:
                matched[index] = row
                break
        else:
            return None
    return matched


def _text(value: object) -> str:
    return str(value or "")


_SEED, _PLAN = "seed", "planned"
"""What the file of a design has beside what was declared: what was drawn, and what the pairs of a pilot chose."""


def declared_design(design: CompareDesign) -> dict[str, object]:
    """The part of a design that a resumed comparison must share with its beginning, as plain data."""
    return {
        "launches": design.launches,
        "budget": design.budget_s,
        "rules": json.loads(json.dumps(asdict(design.rules))),
    }


def keep_plan(store: Path, run_id: str, declared: Mapping[str, object], design: CompareDesign) -> None:
    """Keep what the pairs of a pilot chose. Raises EnvironmentProblem."""
    plan = {"rounds": design.rules.rounds, "launches": design.launches}
    declare_design(store, run_id, {**declared, _SEED: design.seed, _PLAN: plan})


def planned_before(design: CompareDesign, declared: Mapping[str, Any]) -> CompareDesign:
    """The design with what the pairs of a pilot chose before the interruption; as it is where they chose nothing."""
    if (plan := declared.get(_PLAN)) is None:
        return design
    rules = replace(design.rules, rounds=int(plan["rounds"]))
    return CompareDesign(rules, int(plan["launches"]), int(declared[_SEED]), first_pair=PAIRS)


def stored_pairs(store: Path, run_id: str) -> StoredPairs:
    """Read the launches of an interrupted comparison that are judged. Raises UsageError where it is still running."""
    from omb_py.results.store.provenance import provenance_of

    run = read_run(store, run_id, "comparison")
    stored = StoredPairs(
        deque(rows for rows in run.by_launch() if round_of(rows[0]) != PILOT_ROUND), next_index=run.next_launch
    )
    look = provenance_of(store)
    for side in SIDES:
        first = next((str(row["launch_id"]) for row in run.rows if dict(row["tags"]).get(COMPARE_SIDE) == side), None)
        if first is not None and (provenance := look(first)):
            stored.provenances[side].append(provenance)
    return stored

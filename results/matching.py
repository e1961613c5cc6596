"""Which rows of two sides measure the same thing, and in what order their launches were made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from omb_py.results.family import MOST_LOOKS
from omb_py.results.keys import COMPARED
from omb_py.results.verdicts import Launched, Look

Row = Mapping[str, Any]
Side = Literal["BASE", "NEW"]
SIDES: tuple[Side, Side] = ("BASE", "NEW")

LOOK_TAG = "compare_look"
"""Of a row that was measured by a comparison: in which look, from 1."""
LOOKS_TAG = "compare_looks"
"""How many looks were declared."""
SIDE_TAG = "compare_side"
PROGRAM = "program or placement"
"""Instead of a column: keys differ where columns do not, so the benchmark has changed or ranks were put elsewhere."""
_COMPARED_SIDES = ("backend", "binding", "thread_level", "parameters")
"""Columns that may be what a comparison is about, or tell two cells of one side from each other."""
_NOT_WHAT = frozenset({"pass"})
"""Parameters that number repetitions."""
COLUMNS = (
    "run_id", "launch_id", "launch_index", "started_at", "benchmark", "family", "library", "library_version", "metric",
    "unit", "value", "median_us", "mean_us", "p99_us", "sync_limited", "validated", "comparability_key",
    "environment_key", "tags", "hosts", "source", *_COMPARED_SIDES, *COMPARED,
)  # fmt: skip
"""What a comparison reads of a store; some twice, which :func:`wanted` puts right."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing that both sides have measured."""

    base: Row
    """One row of BASE, for what the cell is called."""
    new: Row
    looks: tuple[Look, ...]
    by_value: bool = False
    """A side has no samples (imported): the printed numbers are compared."""
    limited: bool = False
    """Some launch measured mostly the synchronisation (``sync_limited``)."""


@dataclass(frozen=True, slots=True)
class Incomparable:
    """The same benchmark and size on both sides, measured in ways that must not be compared."""

    base: Row
    new: Row
    fields: tuple[str, ...]
    """Columns that differ, or :data:`PROGRAM`."""


@dataclass(slots=True)
class Matched:
    """What two sides have in common, and what not."""

    cells: list[Cell] = field(default_factory=list)
    incomparable: list[Incomparable] = field(default_factory=list)
    only: dict[Side, list[Row]] = field(default_factory=lambda: {side: [] for side in SIDES})
    """A row for each cell that only this side has."""


def wanted() -> tuple[str, ...]:
    """The columns that :func:`match` needs."""
    return tuple(dict.fromkeys(COLUMNS))


def match(base: Sequence[Row], new: Sequence[Row]) -> Matched:
    """Cells that both sides have, by benchmark and size.

    Args:
        base: rows with the columns of :func:`wanted`, of any number of launches.
        new: the same of the other side.
    """
    telling = _telling(base, new)
    sides = {"BASE": _grouped(base, telling), "NEW": _grouped(new, telling)}
    found = Matched()
    for identity, rows in sides["BASE"].items():
        if identity in sides["NEW"]:
            found.cells.append(_cell(rows, sides["NEW"][identity]))
    found.cells.sort(key=lambda cell: _place(cell.base))
    left: dict[Side, list[Row]] = {
        side: sorted((rows[0] for identity, rows in sides[side].items() if identity not in sides[other]), key=_place)
        for side, other in zip(SIDES, reversed(SIDES), strict=True)
    }
    for row in left["BASE"]:
        partner = min(
            (r for r in left["NEW"] if _same_place(row, r)), key=lambda r: len(differing(row, r)), default=None
        )
        if partner is None:
            found.only["BASE"].append(row)
            continue
        left["NEW"].remove(partner)
        found.incomparable.append(Incomparable(row, partner, differing(row, partner)))
    found.only["NEW"] = left["NEW"]
    return found


def differing(one: Row, other: Row) -> tuple[str, ...]:
    """Columns of the comparability key in which two rows differ; :data:`PROGRAM` where the keys alone do."""
    fields = tuple(name for name in COMPARED if one.get(name) != other.get(name))
    return fields or (() if one["comparability_key"] == other["comparability_key"] else (PROGRAM,))


def order(rows: Iterable[Row]) -> list[Row]:
    """By time of the launch."""
    return sorted(rows, key=lambda r: (str(r["started_at"]), str(r["run_id"]), int(r["launch_index"])))


def _place(row: Row) -> tuple[Any, ...]:
    """For sorting: comparisons measure in a shuffled order."""
    words = tuple(str(row.get(name) or "") for name in ("benchmark", "backend", "binding", "dtype", "op"))
    return (*words, *(int(row.get(name) or 0) for name in ("ranks", "size_bytes", "window")))


def _same_place(one: Row, other: Row) -> bool:
    return bool(one["benchmark"] == other["benchmark"] and one.get("size_bytes") == other.get("size_bytes"))


def _telling(base: Sequence[Row], new: Sequence[Row]) -> tuple[str, ...]:
    """The columns that tell cells of one side apart. Where each side has one value, the two may differ."""

    def values(rows: Sequence[Row], name: str) -> set[Any]:
        return {_hashable(row.get(name)) for row in rows}

    return tuple(
        name
        for name in _COMPARED_SIDES
        if not len(values(base, name)) == len(values(new, name)) == 1 or values(base, name) == values(new, name)
    )


def _grouped(rows: Sequence[Row], telling: Sequence[str]) -> dict[Any, list[Row]]:
    grouped: dict[Any, list[Row]] = {}
    for row in rows:
        identity = (row["comparability_key"], *(_hashable(row.get(name)) for name in telling))
        grouped.setdefault(identity, []).append(row)
    return grouped


def _hashable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(sorted((k, v) for k, v in value.items() if k not in _NOT_WHAT))
    return value


def _cell(base: Sequence[Row], new: Sequence[Row]) -> Cell:
    by_value = any(row.get("median_us") is None for row in (*base, *new))
    looks = []
    for number in sorted({look_of(row) for row in base} & {look_of(row) for row in new}):
        launches = {
            side: _launches([row for row in rows if look_of(row) == number], by_value)
            for side, rows in zip(SIDES, (base, new), strict=True)
        }
        if all(launches.values()):
            looks.append(_ordered(launches["BASE"], launches["NEW"]))
    limited = any(row.get("sync_limited") for row in (*base, *new))
    return Cell(base[0], new[0], tuple(looks), by_value, limited)


def look_of(row: Row) -> int:
    """In which look of a comparison a row was measured, from 1."""
    return _counted(row, LOOK_TAG)


def looks_of(rows: Iterable[Row]) -> int:
    """How many looks were declared for a comparison that is stored; 1 where none was."""
    return max((_counted(row, LOOKS_TAG) for row in rows), default=1)


def _counted(row: Row, tag: str) -> int:
    text = dict(row.get("tags") or {}).get(tag, "1")
    return min(int(text), MOST_LOOKS) if text.isdecimal() and int(text) > 0 else 1


Dated = dict[tuple[str, str, int], Launched]


def _launches(rows: Sequence[Row], by_value: bool) -> Dated:
    """One number a launch; of a cell that a launch has several times (a soak) the first, which is no average."""
    found: Dated = {}
    for row in order(rows):
        key = (str(row["started_at"]), str(row["run_id"]), int(row["launch_index"]))
        launched = from_row(row, by_value)
        if launched is not None:
            found.setdefault(key, launched)
    return found


def from_row(row: Row, by_value: bool = False) -> Launched | None:
    """What a row says of its cell; None where it says no time.

    Args:
        row: of the store.
        by_value: take the printed number instead of the samples: as a time, so of a bandwidth its inverse.
    """
    if by_value:
        value = row.get("value")
        if not value or value <= 0:
            return None
        time = value if row.get("unit") == "us" else 1.0 / value
        return Launched(time, time)
    median, mean, p99 = row.get("median_us"), row.get("mean_us"), row.get("p99_us")
    if not median or median <= 0:
        return None
    return Launched(median, mean if mean and mean > 0 else median, p99 if p99 and p99 > 0 else None)


def _ordered(base: Dated, new: Dated) -> Look:
    """A look: paired where, in order of time, each two launches are one of either side."""
    in_time = sorted([(key, "BASE") for key in base] + [(key, "NEW") for key in new])
    couples = [{side for _, side in in_time[k : k + 2]} for k in range(0, len(in_time), 2)]
    interleaved = len(base) == len(new) and all(len(couple) == 2 for couple in couples)
    return Look(tuple(base[k] for k in sorted(base)), tuple(new[k] for k in sorted(new)), paired=interleaved)

"""Match the rows of two sides that measure the same thing, and put their launches in order."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, cast

from omb_py.results.compare import tags
from omb_py.results.compare.interleaved import MOST_ROUNDS
from omb_py.results.compare.judge import CompareRound, CompareRules, Launched
from omb_py.results.statistics.launch_time import FIELD, OURS, statistic_of, time_of
from omb_py.results.statistics.nights import days_of
from omb_py.results.store.keys import COMPARED
from omb_py.results.store.row import Row
from omb_py.results.store.schema import value_of

Side = Literal["BASE", "NEW"]
SIDES: tuple[Side, Side] = ("BASE", "NEW")

_RULE_TAGS = {"alpha": tags.COMPARE_ALPHA, "delta": tags.COMPARE_DELTA, "tail_delta": tags.COMPARE_TAIL_DELTA}
"""Field of the rules of a comparison, and the tag of its rows where it is not the usual one."""
SOURCE = "source"
_KEY = "comparability_key"
PROGRAM = "program or placement"
"""Stands for a column where only the keys differ: the benchmark has changed, or ranks were placed differently."""
_WHO = ("backend", "binding")
_HOW = ("thread_level", "parameters")
"""Columns that a comparison may be about, and that may also distinguish cells of one side.

:data:`_WHO` distinguishes cells where a side has several values at all, :data:`_HOW` where a cell has several."""
_SHARE = re.compile(r"0\.\d{1,20}")
_NOT_WHAT = frozenset({"pass"})
"""Parameters that number repetitions."""
COLUMNS = tuple(
    dict.fromkeys(
        (
            *("run_id", "launch_id", "launch_index", "started_at", "benchmark", "family", "library", "library_version"),
            *("metric", "unit", "value", "median_us", "mean_us", "p99_us", "iterations", "sync_limited", "validated"),
            *("comparability_key", "environment_key", "tags", "metrics", "bytes_per_rank", "hosts", "source"),
            *(*_WHO, *_HOW, *COMPARED),
        )
    )
)
"""Columns that a comparison reads from a store, each once: some stand in more than one of these lists."""


@dataclass(frozen=True, slots=True)
class MatchedCell:
    """A cell that both sides have measured."""

    base: Row
    """One row of BASE, which names the cell."""
    new: Row
    rounds: tuple[CompareRound, ...]
    statistic: str = "median"
    """``mean`` for imported rows, which have no samples: their printed numbers are compared."""
    limited: bool = False
    """True if some launch measured mostly the synchronisation (``sync_limited``)."""


@dataclass(frozen=True, slots=True)
class Incomparable:
    """A benchmark and size that the two sides measured in ways that must not be compared."""

    base: Row
    new: Row
    fields: tuple[str, ...]
    """Columns that differ, or :data:`PROGRAM`."""


@dataclass(slots=True)
class Matched:
    """The cells that two sides share, and those that they do not."""

    cells: list[MatchedCell] = field(default_factory=list)
    incomparable: list[Incomparable] = field(default_factory=list)
    only: dict[Side, list[Row]] = field(default_factory=lambda: {side: [] for side in SIDES})
    """One row for each cell that only this side has."""


def match(base: Sequence[Row], new: Sequence[Row]) -> Matched:
    """Match the cells of two sides.

    Cells with the same comparability key are compared. Of the others, rows of the same benchmark and size that differ
    least stand beside each other as incomparable.

    Args:
        base: rows of BASE with :data:`COLUMNS`, of any number of launches.
    """
    base, new = ([_key_by_work(row) for row in rows] for rows in (base, new))
    sides = _group_sides(base, new)
    nights = _nights((*base, *new))
    matched = Matched()
    mixed: set[Identity] = set()
    for identity, rows in sides["BASE"].items():
        others = sides["NEW"].get(identity)
        if others is None:
            continue
        if len({statistic_of(row) for row in (*rows, *others)} - {None}) > 1:
            mixed.add(identity)
        else:
            matched.cells.append(_cell(rows, others, nights))
    matched.cells.sort(key=lambda cell: _sort_key(cell.base))
    matched.incomparable = [_mixed(sides["BASE"][identity], sides["NEW"][identity]) for identity in mixed]
    left: dict[Side, list[Row]] = {
        side: sorted((rows[0] for identity, rows in sides[side].items() if identity not in sides[other]), key=_sort_key)
        for side, other in zip(SIDES, reversed(SIDES), strict=True)
    }
    for row in left["BASE"]:
        partner = min(
            (candidate for candidate in left["NEW"] if _is_same_place(row, candidate)),
            key=lambda candidate: len(differing(row, candidate)),
            default=None,
        )
        if partner is None:
            matched.only["BASE"].append(row)
            continue
        left["NEW"].remove(partner)
        matched.incomparable.append(
            Incomparable(_name_statistic(row), _name_statistic(partner), differing(row, partner))
        )
    matched.incomparable.sort(key=lambda pair: _sort_key(pair.base))
    matched.only["NEW"] = left["NEW"]
    return matched


def work_of(row: Row) -> str:
    """The work that both sides of its comparison did with other workloads; empty where it was no such comparison."""
    return dict(row.get("tags") or {}).get(tags.COMPARE_WORK, "")


def _key_by_work(row: Row) -> Row:
    """The row with a key that other workloads share which did its work in the same comparison, on the same ranks."""
    work = work_of(row)
    return {**row, "comparability_key": f"{row['run_id']}: {work} on {row['ranks']} ranks"} if work else row


def differing(row: Row, other: Row) -> tuple[str, ...]:
    """Say why two rows are not compared.

    Returns:
        The columns that differ: who measured, the statistic, and columns of the comparability key; :data:`PROGRAM`
        where only the keys differ.
    """
    row, other = _name_statistic(row), _name_statistic(other)
    fields = tuple(name for name in (SOURCE, FIELD, *COMPARED) if value_of(row, name) != value_of(other, name))
    if fields or row["comparability_key"] != other["comparability_key"]:
        return fields or (PROGRAM,)
    return tuple(name for name in (*_WHO, *_HOW) if _hashable(value_of(row, name)) != _hashable(value_of(other, name)))


def _name_statistic(row: Row) -> Row:
    """The row with the name of its statistic, which is no column."""
    return cast(Row, {**row, FIELD: statistic_of(row)})


def _mixed(base: Sequence[Row], new: Sequence[Row]) -> Incomparable:
    statistics = [
        " and ".join(sorted({statistic for row in rows if (statistic := statistic_of(row))})) for rows in (base, new)
    ]
    first, second = (cast(Row, {**rows[0], FIELD: text}) for rows, text in zip((base, new), statistics, strict=True))
    return Incomparable(first, second, (FIELD,))


def order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda r: (str(r["started_at"]), str(r["run_id"]), int(r["launch_index"])))


def _sort_key(row: Row) -> tuple[str | int, ...]:
    """Sorting key of a cell: comparisons measure in a shuffled order."""
    texts = tuple(str(value_of(row, name) or "") for name in ("benchmark", "backend", "binding", "dtype", "op"))
    return (*texts, *(int(value_of(row, name) or 0) for name in ("ranks", "size_bytes", "window")))


def _is_same_place(row: Row, other: Row) -> bool:
    return bool(row["benchmark"] == other["benchmark"] and row.get("size_bytes") == other.get("size_bytes"))


def _distinguishing_columns(base: Sequence[Row], new: Sequence[Row], names: Sequence[str]) -> tuple[str, ...]:
    """Select the columns that distinguish cells of one side.

    A column with one value on each side, and not the same one, does not: it is what the comparison is about.
    """

    def values(rows: Sequence[Row], name: str) -> set[object]:
        return {_hashable(value_of(row, name)) for row in rows}

    return tuple(
        name
        for name in names
        if not len(values(base, name)) == len(values(new, name)) == 1 or values(base, name) == values(new, name)
    )


Identity = tuple[object, ...]
"""The values that tell a cell of a comparison from the others."""
Rows = dict[Identity, list[Row]]


def _group_sides(base: Sequence[Row], new: Sequence[Row]) -> dict[Side, Rows]:
    """Group the rows of each side by cell; equal identities are the same cell."""
    who = _distinguishing_columns(base, new, _WHO)
    by_key = {side: _group_by(rows, (_KEY,)) for side, rows in zip(SIDES, (base, new), strict=True)}
    cells: dict[Side, Rows] = {side: {} for side in SIDES}
    for key in {**by_key["BASE"], **by_key["NEW"]}:
        alike = [by_key[side].get(key, []) for side in SIDES]
        telling = _distinguishing_columns(alike[0], alike[1], _HOW)
        for side, rows in zip(SIDES, alike, strict=True):
            cells[side] |= _group_by(rows, (_KEY, *who, *telling))
    return cells


def _group_by(rows: Iterable[Row], names: Sequence[str]) -> Rows:
    grouped: Rows = {}
    for row in rows:
        grouped.setdefault(tuple(_hashable(value_of(row, name)) for name in names), []).append(row)
    return grouped


def _hashable(value: object) -> object:
    if isinstance(value, Mapping):
        return tuple(sorted((k, v) for k, v in value.items() if k not in _NOT_WHAT))
    return value


def _cell(base: Sequence[Row], new: Sequence[Row], nights: Mapping[str, float]) -> MatchedCell:
    statistic = next((known for row in (*base, *new) if (known := statistic_of(row))), "median")
    rounds = []
    for number in sorted({round_of(row) for row in base} & {round_of(row) for row in new} - {PILOT_ROUND}):
        launches = {
            side: _launches([row for row in rows if round_of(row) == number])
            for side, rows in zip(SIDES, (base, new), strict=True)
        }
        if all(launches.values()):
            # the start times of imported launches are those of their files: they show nights, but no turns
            ours = all(row.get(SOURCE) == OURS for row in (*base, *new))
            rounds.append(_make_round(launches["BASE"], launches["NEW"], nights, may_pair=ours))
    limited = any(row.get("sync_limited") for row in (*base, *new))
    return MatchedCell(base[0], new[0], tuple(rounds), statistic, limited)


PILOT_ROUND = 0
"""Number of the round of pairs by which a comparison was planned; they are not judged."""


def round_of(row: Row) -> int:
    """Number of the round of a comparison in which a row was measured, from 1, or :data:`PILOT_ROUND`."""
    return _read_count(row, tags.COMPARE_ROUND, PILOT_ROUND)


def rounds_of(rows: Iterable[Row]) -> int:
    """Number of rounds that were declared for a stored comparison; 1 where none was."""
    return max((_read_count(row, tags.COMPARE_ROUNDS) for row in rows), default=1)


def rule_tags(rules: CompareRules) -> dict[str, str]:
    """The tags by which a stored comparison keeps the rules that are not the usual ones."""
    usual = CompareRules()
    values = {name: (getattr(rules, name), getattr(usual, name)) for name in _RULE_TAGS}
    return {_RULE_TAGS[name]: f"{value:.20f}" for name, (value, other) in values.items() if value != other}


def declared_rules_of(rows: Collection[Row], usual: CompareRules, asked: Collection[str] = ()) -> CompareRules:
    """The rules by which a stored comparison was judged.

    Args:
        rows: those of both its sides.
        usual: rules where it declared none.
        asked: fields of `usual` that stay, whatever was declared.
    """

    def declared(name: str, otherwise: float) -> float:
        texts = {dict(row.get("tags") or {}).get(_RULE_TAGS[name], "") for row in rows}
        values = [value for value in map(float, filter(_SHARE.fullmatch, texts)) if 0 < value < 1]
        return otherwise if name in asked else min(values, default=otherwise)

    return replace(
        usual,
        rounds=rounds_of(rows),
        alpha=declared("alpha", usual.alpha),
        delta=declared("delta", usual.delta),
        tail_delta=declared("tail_delta", usual.tail_delta),
    )


def _read_count(row: Row, tag: str, least: int = 1) -> int:
    text = dict(row.get("tags") or {}).get(tag, "1")
    return min(int(text), MOST_ROUNDS) if text.isdecimal() and int(text) >= least else 1


Place = tuple[str, str, int]
"""Start, run and number of a launch: they are in order of time."""


@dataclass(frozen=True, slots=True)
class _Dated:
    launched: Launched
    pair: str
    """Name of the launch's pair; empty where none was stored."""


def _nights(rows: Iterable[Row]) -> Mapping[str, float]:
    """Night of each run, in days since 1970; nothing if a start is not known."""
    starts = {(str(row["run_id"]), str(row["started_at"])) for row in rows}
    try:
        return days_of((run, datetime.fromisoformat(start)) for run, start in starts)
    except (ValueError, TypeError):  # no time, or some with a time zone and some without
        return {}


def _launches(rows: Sequence[Row]) -> dict[Place, _Dated]:
    """One number a launch; the first one where a launch has the cell several times (a soak)."""
    launches: dict[Place, _Dated] = {}
    for row in order(rows):
        key = (str(row["started_at"]), str(row["run_id"]), int(row["launch_index"]))
        launched = from_row(row)
        if launched is not None:
            pair = dict(row.get("tags") or {}).get(tags.COMPARE_PAIR)
            launches.setdefault(key, _Dated(launched, f"{row['run_id']}:{pair}" if pair else ""))
    return launches


def from_row(row: Row) -> Launched | None:
    """Read the statistics of a row of the store; None where it has no time."""
    time = time_of(row)
    if time is None:
        return None
    if statistic_of(row) == "mean":
        return Launched(None, time)
    mean, p99 = row.get("mean_us"), row.get("p99_us")
    mean_us, p99_us = mean if mean and mean > 0 else time, p99 if p99 and p99 > 0 else None
    return Launched(time, mean_us, p99_us, row.get("iterations"))


def _make_round(
    base: Mapping[Place, _Dated], new: Mapping[Place, _Dated], nights: Mapping[str, float], may_pair: bool
) -> CompareRound:
    """Make a round.

    It is paired where the pairs were stored, or if, in order of time, each two successive launches are one of each
    side. Half a pair tells nothing and is left out.

    Args:
        base: launches of BASE in order of time.
        new: launches of NEW in order of time.
        nights: night of each run; empty where the starts are not known.
        may_pair: the starts are exact enough to show that the sides took turns.
    """
    sides = (base, new)
    named = [{launch.pair: launch.launched for launch in side.values()} for side in sides]
    pairs = tuple(pair for pair in named[0] if pair and pair in named[1])
    if pairs:
        of_pairs = [tuple(side[pair] for pair in pairs) for side in named]
        return CompareRound(of_pairs[0], of_pairs[1], paired=True, pairs=pairs)
    values = [tuple(launch.launched for launch in side.values()) for side in sides]
    in_time = sorted([(place, "BASE") for place in base] + [(place, "NEW") for place in new])
    couples = [{side for _, side in in_time[k : k + 2]} for k in range(0, len(in_time), 2)]
    if may_pair and len(base) == len(new) and all(len(couple) == 2 for couple in couples):
        firsts = tuple("-".join(map(str, place)) for place, _ in in_time[::2])
        return CompareRound(values[0], values[1], paired=True, pairs=firsts)
    known = [tuple(nights[run] for _, run, _ in side) if nights else () for side in sides]
    return CompareRound(values[0], values[1], paired=False, nights=(known[0], known[1]))

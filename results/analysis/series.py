"""Series: one cell over the launches of a store. The launch is the sample and gives one number."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, cast

import numpy as np

from omb_py.errors import UsageError, nearest
from omb_py.results.checks import pair_sweeps
from omb_py.results.compare.tags import COMPARE_SIDE, leave_unusual_phases_out
from omb_py.results.repro_command import storing
from omb_py.results.statistics.launch_time import COLUMNS as STATISTIC_COLUMNS
from omb_py.results.statistics.launch_time import FIELD, statistic_of, time_of
from omb_py.results.statistics.nights import nights_of
from omb_py.results.store.filters import Filter, filters_text
from omb_py.results.store.keys import COMPARED
from omb_py.results.store.paths import OnSkip
from omb_py.results.store.read import distinct_tags, load_table, to_rows
from omb_py.results.store.row import Row
from omb_py.results.store.schema import value_of

WHO = ("backend", "binding", "library")
MEASURED = (*WHO, "source", FIELD)
"""Columns that say who made the numbers, and which statistic they are: medians, or printed means of imported rows."""
SIDE = "side"
COLUMNS = tuple(
    dict.fromkeys(
        (
            *("run_id", "launch_id", "launch_index", "started_at", "library_version", "environment_key"),
            *("comparability_key", "bytes_total", "bw_formula", "family", "parameters", "tags"),
            *(*STATISTIC_COLUMNS, *WHO, *COMPARED),
        )
    )
)
"""Columns of the store that :func:`rows_of` reads."""


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One launch of a series."""

    run_id: str
    launch_id: str
    started_at: str
    library_version: str
    environment_key: str
    log_time: float
    """Log of the median (or the printed mean) in µs."""


@dataclass(frozen=True, slots=True)
class Series:
    """The launches of a cell in order of time, with the facts that they share."""

    facts: Mapping[str, Any]
    """Values of :data:`MEASURED` and :data:`~omb_py.results.store.keys.COMPARED`. And :data:`SIDE`: which side of
    comparisons was measured, ``BASE`` or ``NEW``; None for launches of no comparison."""
    points: tuple[SeriesPoint, ...]


def rows_of(
    store: str | Path, benchmark: str, filters: Mapping[str, object], on_skip: OnSkip | None = None
) -> list[TimedRow]:
    """Read the cells of a benchmark that were timed, each with ``time_us`` and its ``statistic``.

    Raises:
        UsageError: there is no such cell; the text gives the nearest that exists and the command to type.
    """
    place = str(store)
    rows = to_rows(load_table(store, columns=COLUMNS, on_skip=on_skip, benchmark=benchmark, **filters))
    cells = timed(leave_unusual_phases_out(rows))
    if cells:
        return cells
    measure = f"measure with {storing(f'omb-py {benchmark}', store)}"
    check_measured(store, benchmark)
    if rows:
        raise UsageError(
            f"no cell of {benchmark} in {place!r} was timed, but for pairs of nodes by omb-py links: {measure}"
        )
    wanted = filters_text(filters) or "any values"
    raise UsageError(f"no cell of {benchmark} with {wanted} in {place!r}: {_find_near(store, benchmark, filters)}")


def check_measured(store: str | Path, benchmark: str) -> None:
    """Raise UsageError where the store has no cell of a benchmark, with the nearest that it has."""
    place, measure = str(store), f"measure with {storing(f'omb-py {benchmark}', store)}"
    known = load_table(store, columns=("benchmark",), on_skip=lambda path, why: None)["benchmark"].unique().to_pylist()
    if not known:
        raise UsageError(f"the store {place!r} is empty: {measure}")
    if benchmark not in known:
        near = nearest(benchmark, known, otherwise=f"valid: {', '.join(sorted(known))}; or {measure}")
        raise UsageError(f"no cell of {benchmark} in {place!r}: {near}")


class TimedRow(Row, total=False):
    """A row that has a time."""

    time_us: float
    statistic: str
    """What the time is: a median, or a printed mean."""


def timed(rows: Iterable[Row]) -> list[TimedRow]:
    """Select the rows that have a time, and give each ``time_us`` and its ``statistic``.

    Rows of a sweep over pairs of nodes are left out: a pair is no launch of all ranks.
    """
    return [
        cast(TimedRow, {**row, FIELD: statistic_of(row), "time_us": time})
        for row in rows
        if (time := time_of(row)) and not pair_sweeps.is_row(row.get("parameters"))
    ]


def series(rows: Sequence[TimedRow]) -> list[Series]:
    """Make the series of rows from :func:`rows_of`, those with most launches first. Each size is a series of its own,
    and so is each side of a comparison."""
    grouped: dict[tuple[object, ...], list[TimedRow]] = {}
    for row in rows:
        alike = (*(value_of(row, name) for name in (*MEASURED, *COMPARED)), side_of(row), row["comparability_key"])
        grouped.setdefault(alike, []).append(row)
    ordered = [_series(alike) for alike in grouped.values()]
    return sorted(ordered, key=lambda item: (-len(item.points), item.facts["size_bytes"] or 0))


def side_of(row: Row) -> str | None:
    """Return the side of a comparison that a row was measured for; None for a row of no comparison.

    Tags may also be the text that figures group rows by (``K=V, K2=V2``).
    """
    tags = row.get("tags") or {}
    if isinstance(tags, str):
        tags = dict(part.split("=", 1) for part in tags.split(", ") if "=" in part)
    return dict(tags).get(COMPARE_SIDE)


def version_key(version: str) -> tuple[tuple[int, int, str], ...]:
    """Sorting key that orders versions as people do: 5.0.10 is after 5.0.9, and 5.1 after 5.1rc1.

    >>> version_key("5.0.9") < version_key("5.0.10") and version_key("5.1rc1") < version_key("5.1")
    True
    """
    parts = re.findall(r"\d+|[A-Za-z]+", version)
    return (*((2, int(p), "") if p.isdigit() else (0, 0, p.lower()) for p in parts), (1, 0, ""))


def _series(rows: Sequence[TimedRow]) -> Series:
    launches: dict[str, list[TimedRow]] = {}
    # launches of an imported file have one time of start: there the order within the file counts
    for row in sorted(rows, key=lambda row: (row["started_at"], row["run_id"], row["launch_index"])):
        launches.setdefault(row["launch_id"], []).append(row)
    points = [
        SeriesPoint(
            str(own[0]["run_id"]),
            name,
            own[0]["started_at"],
            own[0]["library_version"] or "unknown",
            own[0]["environment_key"] or "",
            float(np.mean(np.log([row["time_us"] for row in own]))),
        )
        for name, own in launches.items()
    ]
    facts = {name: value_of(rows[0], name) for name in (*MEASURED, *COMPARED)} | {SIDE: side_of(rows[0])}
    return Series(facts, tuple(points))


def _find_near(store: str | Path, benchmark: str, filters: Mapping[str, Any]) -> str:
    """Name the nearest value that exists for the first filter that no cell meets."""
    for name, value in filters.items():
        if isinstance(value, Mapping):
            tags = load_table(store, columns=(name,), on_skip=lambda path, why: None, benchmark=benchmark)[name]
            known = [Filter(name, text, key).text() for key, text in distinct_tags(tags)]
            for key, text in value.items():
                asked = Filter(name, text, key).text()
                if asked not in known:
                    return nearest(asked, known) if known else "its cells have no tags"
            continue
        column = load_table(store, columns=(name,), on_skip=lambda path, why: None, benchmark=benchmark)[name]
        values = [known for known in column.unique().to_pylist() if known is not None]
        wanted = value if isinstance(value, (list, tuple)) else [value]
        if any(str(known) == str(sought) for known in values for sought in wanted):
            continue
        if name == "size_bytes" and values and len(wanted) == 1:
            closest = min(values, key=lambda size: abs(math.log1p(size) - math.log1p(float(wanted[0]))))
            return f"the nearest size there is {closest}"
        return f"{name}: {nearest(str(wanted[0]), map(str, values))}" if values else f"{name} is never given"
    return "each of these exists, but not together: leave one out"


Kind = Literal["launch", "run", "night"]
KINDS: Final[tuple[Kind, ...]] = ("launch", "run", "night")
PLURALS: Final[dict[Kind, str]] = {"launch": "launches", "run": "runs", "night": "nights"}


@dataclass(frozen=True, slots=True)
class Unit:
    """Launches of one library version that share their conditions, in order of time."""

    points: tuple[SeriesPoint, ...]

    @property
    def log_time(self) -> float:
        """Mean over the launches of their logs."""
        return sum(point.log_time for point in self.points) / len(self.points)


def _nights(points: Sequence[SeriesPoint]) -> dict[str, int]:
    return nights_of((point.run_id, datetime.fromisoformat(point.started_at)) for point in points)


def kind_of(points: Sequence[SeriesPoint]) -> Kind:
    """Choose the unit: the night where the launches are of several, else the run."""
    return "night" if max(_nights(points).values(), default=0) > 0 else "run"


def units_of(points: Sequence[SeriesPoint], kind: Kind, versions: bool = False) -> list[Unit]:
    """Group launches into units, in order of the first launch of each.

    Args:
        points: launches in order of time.
        kind: the unit. Two versions of the library in one run or night make two units.
        versions: order by version of the library first, older versions before newer ones.
    """
    nights = _nights(points)
    named: dict[Kind, Callable[[int], Hashable]] = {
        "launch": lambda at: at,
        "run": lambda at: points[at].run_id,
        "night": lambda at: nights[points[at].run_id],
    }
    name = named[kind]
    groups: dict[Hashable, list[SeriesPoint]] = {}
    for at, point in enumerate(points):
        groups.setdefault((name(at), point.library_version), []).append(point)
    units = [Unit(tuple(group)) for group in groups.values()]
    return sorted(units, key=lambda unit: version_key(unit.points[0].library_version)) if versions else units

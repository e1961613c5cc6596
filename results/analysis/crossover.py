"""The fastest of several backends or bindings at each size, and the sizes where that changes. Pure functions.

Where each side has several launches, Welch's test over them decides, in tables as in pictures (:func:`fastest_of`).
Where a side has one launch, a table names who has the interval of the median within the launch below all others: that
describes what one run measured and judges nothing, `omb-py compare` decides.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TypeVar

from omb_py.results.statistics.holm import holm
from omb_py.results.statistics.launch_time import statistic_of, time_of
from omb_py.results.store.row import Row
from omb_py.results.units import number_of, size_text

ALPHA = 0.01
"""Chance that any of several things without a difference is called slower or faster."""
FASTEST = "◀"
CROSSOVER = "◀ crossover"
_ALIKE = ("benchmark", "dtype", "op", "ranks", "window", "datatype_layout")
"""Columns that rows must share to be held against each other at each size."""


Side = tuple[str, str, str]
Name = TypeVar("Name", bound=Hashable)
Where = TypeVar("Where", bound=Hashable)


def _side(row: Row) -> Side:
    return str(row.get("backend")), str(row.get("binding")), str(row.get("device"))


def _group(row: Row) -> tuple[str, ...]:
    return tuple(str(row.get(name)) for name in _ALIKE)


def _sort_key(row: Row) -> tuple[tuple[str, ...], int]:
    size = number_of(row.get("size_bytes"))
    return _group(row), 0 if math.isnan(size) else int(size)


def fastest_of(
    launches: Mapping[Where, Mapping[Name, Sequence[float]]], *, rate: bool = False
) -> dict[Where, Name | None]:
    """Find the fastest of the sides at each place where two or more were measured.

    Whose median over launches is best is held against each other side by Welch's t, with Holm's method over all places.
    A side with one launch has no known spread and is never faster.

    Args:
        launches: place -> side -> what each launch measured; values that are not above 0 are left out.
        rate: more is better.

    Returns:
        None where the launches do not tell.
    """
    if not launches:
        return {}
    from omb_py.results.statistics.change_points import DELTA  # with NumPy and SciPy, which a table of one side spares
    from omb_py.results.statistics.t_test import welch_of_rounded

    best: dict[Where, Name | None] = {}
    tested: list[tuple[Where, float]] = []
    for where, sides in launches.items():
        # nccl-tests prints 0.00 GB/s for small messages, of which no ratio can be made
        logs = {side: [math.log(value) for value in values if value > 0] for side, values in sides.items()}
        middles = {side: statistics.median(values) for side, values in logs.items() if values}
        if len(middles) < 2:
            continue
        first = (max if rate else min)(middles, key=lambda side: middles[side])
        best[where] = first
        for side in middles.keys() - {first}:
            small = abs(middles[side] - middles[first]) < math.log1p(DELTA)
            tested.append((where, 1.0 if small else welch_of_rounded(logs[first], logs[side]).p))
    for (where, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        if not p <= ALPHA:
            best[where] = None
    return best


def fastest(rows: Sequence[Row]) -> dict[tuple[tuple[str, ...], int], Side | None]:
    """Find the fastest side at each size where two or more were measured.

    Returns:
        (values of the shared columns, size in bytes) -> (backend, binding, device); None where no side is, or where
        one side has medians and another only printed means.
    """
    places: dict[tuple[tuple[str, ...], int], dict[Side, list[Row]]] = {}
    for row in rows:
        if time_of(row) is not None:
            places.setdefault(_sort_key(row), {}).setdefault(_side(row), []).append(row)
    best: dict[tuple[tuple[str, ...], int], Side | None] = {}
    launches: dict[tuple[tuple[str, ...], int], dict[Side, list[float]]] = {}
    for place, sides in sorted(places.items()):
        if len(sides) < 2:
            continue
        best[place] = None
        counts = {len(several) for several in sides.values()}
        if len({statistic_of(row) for several in sides.values() for row in several}) > 1:
            continue
        if counts == {1}:
            best[place] = _find_lowest({side: several[0] for side, several in sides.items()})
        elif 1 not in counts:
            launches[place] = {side: [time_of(row) or 0.0 for row in several] for side, several in sides.items()}
    return best | fastest_of(launches)


def _find_lowest(launches: Mapping[Side, Row]) -> Side | None:
    """Find whose interval of the median within its one launch lies below all others."""
    ranges = {side: _range(row) for side, row in launches.items()}
    first, second, *_ = sorted(ranges, key=lambda side: ranges[side][1])
    apart = all(ranges[first][2] < low for side, (low, *_) in ranges.items() if side != first)
    return first if apart and ranges[first][1] < ranges[second][1] else None


def _range(row: Row) -> tuple[float, float, float]:
    """Interval of the median of one launch, with its time in the middle, in µs; the time alone where none is known."""
    time = time_of(row) or math.nan
    low, high = (number_of(row.get(name)) for name in ("ci_low_us", "ci_high_us"))
    known = statistic_of(row) == "median" and not math.isnan(low + high)
    return (low, time, high) if known else (time, time, time)


def marks(rows: Sequence[Row]) -> list[str]:
    """Mark each row: :data:`FASTEST`, :data:`CROSSOVER` where the previous size had another fastest side, or ``""``."""
    best = fastest(rows)
    changed = set()
    for _, places in groupby(best, key=lambda place: place[0]):
        several = [place for place in places if best[place] is not None]
        changed |= {place for last, place in pairwise(several) if best[last] != best[place]}
    texts = []
    for row in rows:
        place = _sort_key(row)
        is_best = best.get(place) == _side(row)  # None where nobody is
        texts.append("" if not is_best else CROSSOVER if place in changed else FASTEST)
    return texts


def sentences(rows: Sequence[Row]) -> list[str]:
    """Write one line for each benchmark: ``allreduce: mpi is fastest up to 64 KiB, gloo from 128 KiB``."""
    best = fastest(rows)
    sides = {_side(row) for row in rows}
    lines = []
    for group, several in groupby(best, key=lambda place: place[0]):
        places = list(several)
        decided = [place for place in places if best[place] is not None]
        subject = group[0] if len({common for common, _ in best}) == 1 else " ".join(group[:2])
        open_ = len(places) - len(decided)
        if not decided:
            lines.append(f"{subject}: at no size is a side faster beyond the spread")
            continue
        left = f"; at {open_} of {len(places)} sizes no side is faster beyond the spread" if open_ else ""
        named = [
            (size_text(place[1]), None if (side := best[place]) is None else _name(side, sides)) for place in places
        ]
        lines.append(f"{subject}: {stretches(named)}{left}")
    return lines


def stretches(places: Sequence[tuple[str, str | None]], every: str = "at every size") -> str:
    """Say who is fastest where: ``mpi is fastest up to 64 KiB, gloo from 128 KiB``.

    Args:
        places: each place in order, as ``64 KiB`` or ``8 GPUs``, and who is fastest there; None where nobody is, which
            is not everywhere.
        every: what to say of all places.

    >>> stretches([("1 B", None), ("2 B", "mpi"), ("4 B", "mpi"), ("8 B", "gloo")])
    'mpi is fastest from 2 B to 4 B, gloo from 8 B'
    """
    decided = [(place, name) for place, name in places if name is not None]
    parts = []
    for name, run in groupby(decided, key=lambda pair: pair[1]):
        own = [place for place, _ in run]
        parts.append((name, own[0], own[-1]))
    if len(parts) == 1 and len(decided) == len(places):
        return f"{parts[0][0]} is fastest {every}"
    texts = []
    for number, (name, start, until) in enumerate(parts):
        where = _span(start, until)
        if number + 1 == len(parts) > 1 and until == places[-1][0]:
            where = f"from {start}"
        elif number == 0 and len(parts) > 1 and start == places[0][0]:
            where = f"up to {until}"
        texts.append(f"{name}{'' if number else ' is fastest'} {where}")
    return ", ".join(texts)


def _span(first: str, last: str) -> str:
    return f"at {first}" if first == last else f"from {first} to {last}"


def _name(side: Side, sides: set[Side]) -> str:
    """Name a side by its backend, with binding and device only where sides share the backend."""
    backend, binding, device = side
    same_backend = [other for other in sides if other[0] == backend]
    if len(same_backend) == 1:
        return backend
    return " ".join((backend, binding, *((device,) if len({other[2] for other in same_backend}) > 1 else ())))

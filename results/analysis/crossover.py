"""The fastest of several backends or bindings at each size, and the sizes where that changes. Pure functions.

They describe what one run measured and judge nothing: sides whose numbers differ by less than their spread change
places by chance. `omb-py compare` decides that.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from omb_py.results.formats.units import number_of, size_text

Row = Mapping[str, Any]
FASTEST = "◀"
CROSSOVER = "◀ crossover"
_ALIKE = ("benchmark", "dtype", "op", "ranks", "window", "datatype_layout")
"""Columns that rows must share to be held against each other at each size."""


def _side(row: Row) -> tuple[str, str, str]:
    return str(row.get("backend")), str(row.get("binding")), str(row.get("device"))


def _group(row: Row) -> tuple[str, ...]:
    return tuple(str(row.get(name)) for name in _ALIKE)


def _place(row: Row) -> tuple[tuple[str, ...], int]:
    size = number_of(row.get("size_bytes"))
    return _group(row), 0 if math.isnan(size) else int(size)


def fastest(rows: Sequence[Row]) -> dict[tuple[tuple[str, ...], int], tuple[str, str, str]]:
    """Find the fastest side at each size where two or more were measured, by its median over the launches.

    The least value is fastest if all rows are in `us`, the most if they are in another unit (MB/s).

    Returns:
        (values of the shared columns, size in bytes) -> (backend, binding, device).
    """
    values: dict[tuple[tuple[str, ...], int], dict[tuple[str, str, str], list[float]]] = {}
    for row in rows:
        value = number_of(row.get("value"))
        if not math.isnan(value):
            values.setdefault(_place(row), {}).setdefault(_side(row), []).append(value)
    least = all(row.get("unit") == "us" for row in rows)
    best = {}
    for place, sides in sorted(values.items()):
        if len(sides) > 1:
            medians = {side: statistics.median(of_side) for side, of_side in sides.items()}
            best[place] = (min if least else max)(medians, key=lambda side: medians[side])
    return best


def marks(rows: Sequence[Row]) -> list[str]:
    """Mark each row: :data:`FASTEST`, :data:`CROSSOVER` where the previous size had another fastest side, or ``""``."""
    best = fastest(rows)
    changed = set()
    for _, places in groupby(best, key=lambda place: place[0]):
        several = list(places)
        changed |= {place for last, place in pairwise(several) if best[last] != best[place]}
    texts = []
    for row in rows:
        place = _place(row)
        is_best = best.get(place) == _side(row)
        texts.append("" if not is_best else CROSSOVER if place in changed else FASTEST)
    return texts


def sentences(rows: Sequence[Row]) -> list[str]:
    """Write one line for each benchmark: ``allreduce: mpi is fastest up to 64 KiB, gloo from 128 KiB``."""
    best = fastest(rows)
    sides = {_side(row) for row in rows}
    lines = []
    for group, places in groupby(best, key=lambda place: place[0]):
        parts = []
        for side, run in groupby(places, key=lambda place: best[place]):
            sizes = [size_text(size) for _, size in run]
            parts.append((_name(side, sides), sizes[0], sizes[-1]))
        subject = group[0] if len({common for common, _ in best}) == 1 else " ".join(group[:2])
        (first, _, until), *others = parts
        if not others:
            lines.append(f"{subject}: {first} is fastest at every size")
            continue
        rest = [f"{name} from {start} to {end}" for name, start, end in others[:-1]]
        rest.append(f"{others[-1][0]} from {others[-1][1]}")
        lines.append(f"{subject}: {first} is fastest up to {until}, {', '.join(rest)}")
    return lines


def _name(side: tuple[str, str, str], sides: set[tuple[str, str, str]]) -> str:
    """Name a side by its backend, with binding and device only where sides share the backend."""
    backend, binding, device = side
    same_backend = [other for other in sides if other[0] == backend]
    if len(same_backend) == 1:
        return backend
    return " ".join((backend, binding, *((device,) if len({other[2] for other in same_backend}) > 1 else ())))

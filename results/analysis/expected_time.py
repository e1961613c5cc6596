"""The time that planned launches will take, by what launches of the same cells took before."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.results.store.provenance import provenance_of
from omb_py.results.store.read import load_table, to_rows
from omb_py.results.store.row import Row

Key = tuple[str, str, str, str, int, int]
"""(benchmark, backend, binding, element type, ranks, bytes of a message)."""
COLUMNS = ("benchmark", "backend", "binding", "dtype", "ranks", "size_bytes")
_TIMES = ("iterations", "warmup", "batch", "mean_us", "launch_id", "started_at")
_LAUNCHES = 5
"""Newest launches by which the time of a start is known."""

_LEAST_SHARE = 0.5
"""Share of the cells that must be known: a time for others by a few small ones would mislead."""


@dataclass(frozen=True, slots=True)
class Expected:
    """An expectation."""

    seconds: float
    known: int
    """Cells that were measured before; the others are taken to last as long as these on average."""
    cells: int


def expected_time(store: Path, launches: Sequence[Sequence[Key]]) -> Expected | None:
    """Expect the time of launches.

    Returns:
        None where the store has less than half of these cells, or no launch that says how long it took.
    """
    if not store.is_dir():
        return None
    wanted = {key for launch in launches for key in launch}
    names = sorted({str(key[0]) for key in wanted})
    rows = to_rows(load_table(store, columns=[*COLUMNS, *_TIMES], benchmark=names, on_skip=lambda path, why: None))
    rows.sort(key=lambda row: str(row["started_at"]))
    cells = {key_of(row): seconds_of(row) for row in rows}  # the newest of each counts
    look = provenance_of(store)
    overheads = []
    for launch_id in list(dict.fromkeys(str(row["launch_id"]) for row in reversed(rows)))[:_LAUNCHES]:
        elapsed = (look(launch_id).get("launch") or {}).get("elapsed_s")
        if elapsed is not None:
            measured = sum(seconds_of(row) for row in rows if row["launch_id"] == launch_id)
            overheads.append(max(0.0, float(elapsed) - measured))
    return combined(launches, cells, overheads)


def combined(
    launches: Sequence[Sequence[Key]], cells: Mapping[Key, float], overheads: Sequence[float]
) -> Expected | None:
    """Add the times of cells and starts.

    Args:
        cells: seconds that a cell took when it was last measured.
        overheads: seconds of some launches beside those of their cells.
    """
    known = [cells[key] for launch in launches for key in launch if key in cells]
    count = sum(map(len, launches))
    if not overheads or len(known) < _LEAST_SHARE * count:
        return None
    seconds = sum(known) * count / len(known) + statistics.median(overheads) * len(launches)
    return Expected(seconds, len(known), count)


def key_of(row: Row) -> Key:
    """The key of a row's cell."""
    where = row["benchmark"], row["backend"], row["binding"], row["dtype"]
    return *where, row["ranks"], row["size_bytes"] or 0


def seconds_of(row: Row) -> float:
    rounds = int(row["iterations"] or 0) + int(row["warmup"] or 0)
    return rounds * int(row["batch"] or 1) * float(row["mean_us"] or 0.0) * 1e-6

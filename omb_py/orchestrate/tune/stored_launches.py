"""Resuming a tuning: its declared design, the candidates that failed, and its launches in the store.

What a search asks for depends on its seed and its results alone. A resumed one asks for the same launches again and
takes the results from the store where it has them. ``STORE/.reports/RUN.tuning`` holds the design until the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omb_py.errors import UsageError
from omb_py.orchestrate.compare.resume import declare
from omb_py.results.compare.tags import TUNE_BLOCK, TUNE_SETTING
from omb_py.results.tune.points import Point

ENDING = ".tuning"
Row = dict[str, Any]
Key = tuple[Point, int, str]
"""Point, block and name of the setting of a launch."""


@dataclass(slots=True)
class Stored:
    """The launches of a tuning that are in the store, and the candidates that failed in it."""

    design: dict[str, Any]
    """What it was declared with; ``failed`` has what was excluded so far."""
    launches: dict[Key, list[list[Row]]] = field(default_factory=dict)
    """Rows of each launch; a launch that was cut off may have been made again."""
    next_index: int = 0

    @property
    def failed(self) -> dict[str, str]:
        """``POINT:BLOCK:SETTING`` of the launch at which a candidate was excluded -> why."""
        known: dict[str, str] = self.design.setdefault("failed", {})
        return known

    def take(self, key: Key, sizes: Sequence[int]) -> list[Row] | None:
        """The rows of a launch, in the order of `sizes`; None where no launch in the store has them all."""
        for rows in reversed(self.launches.get(key, [])):
            by_size = {int(row["size_bytes"] or 0): row for row in rows}
            if set(sizes) <= set(by_size):
                return [by_size[size] for size in sizes]
        return None

    def fail(self, key: Key, why: str, store: Path, run_id: str) -> None:
        """Keep why a candidate was excluded. Raises EnvironmentProblem where it cannot be written."""
        self.failed[text_of(key)] = why
        declare(store, run_id, self.design, ENDING)


def text_of(key: Key) -> str:
    """A launch as one word."""
    return ":".join(map(str, key))


def stored_rows(store: Path, run_id: str, design: Mapping[str, Any]) -> Stored:
    """Read the launches of a tuning, after recovering the journals of processes that died.

    Raises:
        UsageError: the tuning is still running.
    """
    from omb_py.results.store import schema
    from omb_py.results.store.read import load_table, to_rows
    from omb_py.results.store.recovery import recover

    if any(journal.state == "running" and journal.launch_id.startswith(f"{run_id}-") for journal in recover(store)):
        raise UsageError(f"run {run_id} is still running: end it, or begin another tuning without --resume")
    stored = Stored(dict(design))
    columns = [name for name in schema.NAMES if name not in ("samples_us", "samples_avg_us")]
    by_launch: dict[int, list[Row]] = {}
    for row in to_rows(load_table(store, columns=columns, run_id=run_id)):
        by_launch.setdefault(int(row["launch_index"]), []).append(row)
    for index in sorted(by_launch):
        rows = by_launch[index]
        tags = dict(rows[0]["tags"] or {})
        if TUNE_BLOCK in tags:
            key = (Point.of_row(rows[0]), int(tags[TUNE_BLOCK]), tags[TUNE_SETTING])
            stored.launches.setdefault(key, []).append(rows)
    stored.next_index = max(by_launch, default=-1) + 1
    return stored

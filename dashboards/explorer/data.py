"""The cells in memory: read once without samples, filtered in milliseconds, read again when files land."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.figures import roofline, stored_fits, stored_links
from omb_py.results.store.read import files, load

if TYPE_CHECKING:
    import pandas as pd

FILTERS = (
    "benchmark",
    "backend",
    "library",
    "library_version",
    "binding",
    "device",
    "ranks",
    "devices",
    "tags",
    "date",
)
"""Columns with a control of their own."""
MOST_DRAWN = 200_000
"""Cells that are drawn at once; a table is never cut."""


class Data:
    """The prepared cells of a store, with text columns as categories."""

    def __init__(self, store: Path) -> None:
        """Read the store. Raises UsageError when there is no such folder."""
        self.store = store
        self.skipped: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self._stamp: tuple[int, float] = (-1, 0.0)
        self._bounds: dict[tuple[str, ...], pd.DataFrame] = {}
        self.frame: pd.DataFrame
        self.refresh()

    def refresh(self) -> bool:
        """Read the store again if its files have changed; True where they had."""
        with self._lock:
            stamp = self._look()
            if stamp == self._stamp:
                return False
            skipped: list[tuple[str, str]] = []
            frame = load(
                self.store,
                columns=[*series.NEEDED, *stored_fits.ALSO],
                on_skip=lambda p, why: skipped.append((str(p), why)),
            )
            self.frame = series.compact(series.prepared(frame))
            self.skipped, self._stamp, self._bounds = skipped, stamp, {}
            return True

    @property
    def version(self) -> str:
        """Changes when the files do."""
        return f"{self._stamp[0]}-{self._stamp[1]:.6f}"

    def choices(self) -> dict[str, list[str]]:
        """What each filter can be set to, as text."""
        made: dict[str, list[str]] = {}
        for name in FILTERS:
            known = [v for v in self.frame[name].unique() if not theme.absent(v)]
            made[name] = [str(v) for v in sorted(known)]
        return made

    def select(self, wanted: Mapping[str, Sequence[str]]) -> pd.DataFrame:
        """The rows that have one of the wanted values in each column that is named; unknown columns are ignored."""
        frame = self.frame
        for name in FILTERS:
            values = [v for v in wanted.get(name, ()) if v]
            if not values:
                continue
            column = frame[name]
            if column.dtype.name == "category":
                frame = frame[column.isin(values)]
            else:
                frame = frame[column.isin([int(v) for v in values if v.lstrip("-").isdigit()])]
        return frame

    def bounds(self, benchmarks: Collection[str]) -> pd.DataFrame:
        """As :func:`omb_py.dashboards.figures.roofline.bounds`, of some benchmarks; made once until files change."""
        named = tuple(sorted(benchmarks))
        known = self._bounds
        if named not in known:
            chosen = self.frame[self.frame["benchmark"].isin([stored_fits.MESSAGES, *named])]
            known[named] = roofline.bounds(stored_links.split(chosen)[1])
        return known[named]

    def empty(self) -> str:
        """Why there is no cell at all."""
        if self.skipped:
            path, why = self.skipped[0]
            return f"None of the files of {self.store} can be read ({path}: {why}). To measure something"
        return f"The store {self.store} is empty; new launches are shown as they land. To measure something"

    def _look(self) -> tuple[int, float]:
        known = files(self.store) if self.store.is_dir() else []
        return len(known), max((path.stat().st_mtime for path in known if path.exists()), default=0.0)


def used(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows to draw, with only the categories that occur among them, at most :data:`MOST_DRAWN`."""
    frame = frame.head(MOST_DRAWN).copy(deep=False)
    for name in frame.columns:
        if frame[name].dtype.name == "category":
            frame[name] = frame[name].cat.remove_unused_categories()
    return frame

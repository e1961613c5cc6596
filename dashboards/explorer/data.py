"""The cells in memory: read once without samples, filtered in milliseconds, read again when files land."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import plural
from omb_py.dashboards.views import lower_bounds
from omb_py.dashboards.views.cells import COLUMNS, Cells, Panel, ignore, split_guidelines, split_links
from omb_py.dashboards.views.fits import MESSAGES
from omb_py.errors import UsageError
from omb_py.results.checks.guidelines import FAMILY
from omb_py.results.store.paths import no_store
from omb_py.results.store.provenance import provenance_of
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
        self.gone = False
        """True while the folder of the store is not there; what was read last is kept."""
        self._lock = threading.Lock()
        self._stamp: tuple[int, float] = (-1, 0.0)
        self._bounds: dict[tuple[str, ...], pd.DataFrame] = {}
        self.frame: pd.DataFrame
        if not store.is_dir():
            raise UsageError(no_store(store))
        self.refresh()

    def refresh(self) -> bool:
        """Read the store again if its files have changed; True where they had."""
        with self._lock:
            gone, self.gone = self.gone, not self.store.is_dir()
            if self.gone:
                return not gone
            stamp = self._look()
            if stamp == self._stamp:
                return gone
            skipped: list[tuple[str, str]] = []
            frame = load(
                self.store,
                columns=COLUMNS,
                on_skip=lambda p, why: skipped.append((str(p), why)),
            )
            self.frame = series.compact(series.prepared(frame))
            self.skipped, self._stamp, self._bounds = skipped, stamp, {}
            return True

    @property
    def version(self) -> str:
        """Changes when the files do."""
        return f"{self._stamp[0]}-{self._stamp[1]:.6f}{'-gone' if self.gone else ''}"

    def choices(self) -> dict[str, list[str]]:
        """The values that each filter can be set to, as text."""
        values: dict[str, list[str]] = {}
        for name in FILTERS:
            known = [v for v in self.frame[name].unique() if not theme.absent(v)]
            values[name] = [str(v) for v in sorted(known)]
        return values

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

    def cells(self, chosen: pd.DataFrame) -> Cells:
        """Some of the rows, as the views of the registry take them."""
        guidelines, others = split_guidelines(chosen)
        links, rows = split_links(others)
        # categories that are left only among what was split off would show as empty groups
        rows = used(rows) if len(rows) < len(chosen) else rows
        return _Chosen(self.store, rows, guidelines, links, provenance_of(self.store), data=self)

    def bounds(self, benchmarks: Collection[str]) -> pd.DataFrame:
        """Lower bounds of some benchmarks from all cells of the store; computed once until files change."""
        names = tuple(sorted(benchmarks))
        if names not in self._bounds:
            rows = self.frame[self.frame["benchmark"].isin([MESSAGES, *names])]
            self._bounds[names] = lower_bounds.bounds(split_links(rows)[1])
        return self._bounds[names]

    def empty(self) -> str:
        """Why there is no cell at all."""
        if self.skipped:
            path, why = self.skipped[0]
            return f"None of the files of {self.store} can be read ({path}: {why}). To measure something"
        return f"The store {self.store} is empty; new launches are shown as they land. To measure something"

    def _look(self) -> tuple[int, float]:
        known = files(self.store)
        return len(known), max((path.stat().st_mtime for path in known if path.exists()), default=0.0)


@dataclass
class _Chosen(Cells):
    """Cells of which only the first few views are drawn: nothing is computed or read before one needs it."""

    data: Data | None = None

    def panels(self) -> Iterator[Panel]:
        return (Panel(name, rows) for name, rows in series.panels(self.timed))

    @cached_property
    def bounds(self) -> pd.DataFrame:
        assert self.data is not None
        return self.data.bounds(list(self.rows["benchmark"].unique()))

    def guideline_rows(self) -> pd.DataFrame:
        launches = list(dict.fromkeys(self.guidelines["launch_id"]))
        return load(self.store, columns=COLUMNS, on_skip=ignore, family=FAMILY, launch_id=launches)


def _newest(frame: pd.DataFrame) -> pd.DataFrame:
    """Whole launches, the newest of them, in the order of the rows; of one launch that is too long its first rows."""
    each = frame.groupby("launch_id", observed=True, sort=False)["started_at"].agg(["max", "size"])
    each = each.sort_values("max", ascending=False, kind="stable")
    kept = each.index[each["size"].cumsum() <= MOST_DRAWN]
    kept = kept if len(kept) else each.index[:1]
    return frame[frame["launch_id"].isin(kept)].head(MOST_DRAWN)


def left_out(chosen: pd.DataFrame, drawn: pd.DataFrame) -> str:
    """A sentence on what :func:`used` left out; empty where it left out nothing."""
    if len(drawn) == len(chosen):
        return ""
    launches = [frame["launch_id"].nunique() for frame in (drawn, chosen)]
    return (
        f"Figures show {plural(len(drawn), 'cell')} of {plural(len(chosen), 'cell')} that are chosen: the newest "
        f"{launches[0]:,} of {plural(launches[1], 'launch')}. Choose fewer to see the others; the table below has all."
    ).replace(f"{launches[0]:,}", f"{launches[0]:,}".replace(",", " "))


def used(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows to draw, with only the categories that occur among them: those of the newest launches, at most
    :data:`MOST_DRAWN` rows."""
    frame = _newest(frame) if len(frame) > MOST_DRAWN else frame.copy(deep=False)
    for name in frame.columns:
        if frame[name].dtype.name == "category":
            frame[name] = frame[name].cat.remove_unused_categories()
    return frame

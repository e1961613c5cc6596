"""The cells in memory: read once without samples, filtered in milliseconds, read again when files land."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.reading import Codes, read_prepared
from omb_py.dashboards.base.series import Panel
from omb_py.dashboards.base.view import plural
from omb_py.dashboards.views.cells import COLUMNS, Cells, lower_bounds, split, split_links
from omb_py.dashboards.views.fits import MESSAGES
from omb_py.results.analysis.series import WHO
from omb_py.results.store.paths import check_store
from omb_py.results.store.provenance import Provenance, provenance_of
from omb_py.results.store.read import files

Mask = NDArray[np.bool]

FILTERS = tuple("benchmark backend library library_version binding device ranks devices tags date".split())
"""Columns with a control of their own."""
SIZE = "size_bytes"
MOST_MESSAGES = 4000
"""Cells of messages, the newest, that lower bounds are computed from."""
_OF_LAUNCH = ("backend", "library", "library_version", "ranks")
_BOUND_BY = ("metric", "device", "buffer", "ranks", SIZE, "bytes_total", "bw_formula")
MOST_WHOLE = 100_000
"""Up to so many chosen cells all are drawn; a table is never cut."""
MOST_DRAWN = 8_000
"""Cells that are drawn of more than that: every view then takes less than about half a second."""


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
        self._codes: dict[str, tuple[Codes, list[str]]] = {}
        self._drawn: tuple[tuple[str, dict[str, list[str]]] | None, pd.DataFrame, str]
        self._provenance: Callable[[str], Provenance]
        self.frame: pd.DataFrame
        check_store(store)
        self.refresh()

    def refresh(self) -> bool:
        """Read the store again if its files have changed; True where they had."""
        with self._lock:
            gone, self.gone = self.gone, not self.store.is_dir()
            if self.gone:
                return not gone
            paths = files(self.store)
            stamp = len(paths), max((path.stat().st_mtime for path in paths if path.exists()), default=0.0)
            if stamp == self._stamp:
                return gone
            skipped: list[tuple[str, str]] = []
            self.frame = read_prepared(self.store, COLUMNS, lambda p, why: skipped.append((str(p), why)))
            self.skipped, self._stamp, self._bounds, self._codes = skipped, stamp, {}, {}
            self._provenance = provenance_of(self.store)
            self._drawn = (None, self.frame[:0], "")
            return True

    @property
    def version(self) -> str:
        """Changes when the files do."""
        return f"{self._stamp[0]}-{self._stamp[1]:.6f}{'-gone' if self.gone else ''}"

    def choices(self, wanted: Mapping[str, Sequence[str]] | None = None) -> dict[str, list[str]]:
        """The values that each filter can be set to, as text: those that occur among what the *other* filters leave."""
        fits = self._fits(wanted or {})
        return {name: self._list_left(name, [mask for own, mask in fits.items() if own != name]) for name in FILTERS}

    def sizes(self, wanted: Mapping[str, Sequence[str]]) -> list[int]:
        """The message sizes in bytes among what the filters leave."""
        return [int(size) for size in self._list_left(SIZE, [*self._fits(wanted).values()])]

    def select(self, wanted: Mapping[str, Sequence[str]]) -> pd.DataFrame:
        """The rows that have one of the wanted values in each column that is named; unknown columns are ignored."""
        fits = [*self._fits(wanted).values()]
        return self.frame[reduce(and_, fits)] if fits else self.frame

    def _fits(self, wanted: Mapping[str, Sequence[str]]) -> dict[str, Mask]:
        fits = {}
        for name in FILTERS:
            if values := {value for value in wanted.get(name, ()) if value}:
                codes, texts = self._encode(name)
                fits[name] = np.isin(codes, [code for code, text in enumerate(texts) if text in values])
        return fits

    def _list_left(self, name: str, fits: Sequence[Mask]) -> list[str]:
        codes, texts = self._encode(name)
        codes = codes[reduce(and_, fits)] if fits else codes
        counts = np.bincount(codes[codes >= 0], minlength=len(texts))
        return [text for text, count in zip(texts, counts, strict=True) if count]

    def _encode(self, name: str) -> tuple[Codes, list[str]]:
        """The column as numbers, -1 for null, and the texts of the numbers, sorted; made once until files change."""
        if name not in self._codes:
            codes, values = pd.factorize(self.frame[name], sort=True)
            texts = ["" if theme.absent(value) else str(value) for value in values]
            # the empty text is no value; few columns have more values than fit into two bytes
            codes = np.where(codes == texts.index(""), -1, codes) if "" in texts else codes
            small: Codes = codes.astype(np.int16 if len(texts) < 2**15 else np.int32)
            self._codes[name] = (small, texts)
        return self._codes[name]

    def drawn(self, wanted: Mapping[str, Sequence[str]]) -> tuple[pd.DataFrame, str]:
        """The rows to draw (:func:`used`) of what the filters leave, and what they leave out. The last ones are kept: a
        reader changes the view more often than the filters."""
        asked = (self.version, {name: list(values) for name, values in wanted.items() if values})
        last, rows, left = self._drawn
        if last != asked:
            selected = self.select(wanted)
            rows = used(selected)
            left = left_out(selected, rows)
            self._drawn = (asked, rows, left)
        return rows, left

    def cells(self, chosen: pd.DataFrame) -> Cells:
        """Some of the rows, as the views of the registry take them."""
        rows, guidelines, links, trials = split(chosen)
        # categories that are left only among what was split off would show as empty groups
        rows = used(rows) if len(rows) < len(chosen) else rows
        return _Chosen(self.store, rows, guidelines, links, trials, self._provenance, data=self)

    def bounds(self, benchmarks: Collection[str]) -> pd.DataFrame:
        """Lower bounds of some benchmarks from all cells of the store; computed once until files change."""
        names = tuple(sorted(benchmarks))
        if names not in self._bounds:
            frame = split_links(self.frame[self.frame["benchmark"].isin([MESSAGES, *names])])[1]
            messages = frame["benchmark"] == MESSAGES
            others = frame[~messages].drop_duplicates(["benchmark", *WHO, *_BOUND_BY])
            self._bounds[names] = lower_bounds(series.concat([_newest(frame[messages], MOST_MESSAGES), others]))
        return self._bounds[names]


@dataclass
class _Chosen(Cells):
    """Cells of which only the first few views are drawn: nothing is computed or read before one needs it."""

    data: Data | None = None

    @property
    def panels(self) -> Iterable[Panel]:
        return series.panels(self.timed)

    @cached_property
    def bounds(self) -> pd.DataFrame:
        assert self.data is not None
        return self.data.bounds(list(self.rows["benchmark"].unique()))


def _newest(frame: pd.DataFrame, most: int) -> pd.DataFrame:
    """Whole launches, the newest of each library, version and number of ranks, in the order of the rows; of one launch
    that is too long its first rows."""
    if len(frame) <= most:
        return frame
    each = frame.drop_duplicates("launch_id").set_index("launch_id")[["started_at", *_OF_LAUNCH]]
    each = each.assign(size=frame["launch_id"].value_counts(sort=False)).sort_values("started_at", ascending=False)
    turn = each.groupby(list(_OF_LAUNCH), observed=True, dropna=False, sort=False).cumcount()
    each = each.assign(turn=turn).sort_values("turn", kind="stable")
    kept = each.index[each["size"].cumsum() <= most]
    kept = kept if len(kept) else each.index[:1]
    return frame[frame["launch_id"].isin(kept)].head(most)


def left_out(chosen: pd.DataFrame, drawn: pd.DataFrame) -> str:
    """A sentence on what :func:`used` left out; empty where it left out nothing."""
    if len(drawn) == len(chosen):
        return ""
    some, every = (frame["launch_id"].nunique() for frame in (drawn, chosen))
    few = f"{some:,}".replace(",", " ")
    return (
        f"Figures show {plural(len(drawn), 'row')} of {plural(len(chosen), 'row')} that are chosen: the newest of "
        f"each version, {few} of {plural(every, 'launch')}. Choose fewer to see the others; the table below has all."
    )


def used(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows to draw, with only the categories that occur among them: of more than :data:`MOST_WHOLE` the newest
    :data:`MOST_DRAWN`."""
    return series.occurring(_newest(frame, MOST_DRAWN) if len(frame) > MOST_WHOLE else frame)

"""The cells of a store that views are drawn from: one object, given to every function of the registry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from omb_py.dashboards.base import series
from omb_py.dashboards.base.series import Panel
from omb_py.dashboards.figures.stragglers import LateNode, late_nodes
from omb_py.dashboards.views import fits
from omb_py.dashboards.views.fits import MESSAGES, rows_of
from omb_py.results.analysis.cost_model import lower_bound_us, message_of
from omb_py.results.analysis.series import WHO
from omb_py.results.checks.guidelines import FAMILY as GUIDELINES
from omb_py.results.checks.pair_sweeps import MARKS
from omb_py.results.compare.tags import TUNE_SETTING
from omb_py.results.store.paths import OnSkip, pass_over
from omb_py.results.store.provenance import Provenance
from omb_py.results.store.read import load, load_launches
from omb_py.results.store.schema import value_of

COLUMNS = (*series.NEEDED, *fits.ALSO)
"""Columns of the store that the views of a whole store need."""
RANK_LISTS = ("rank_mean_us", "slowest_rank_share", "hosts")
"""Columns that late ranks are found in."""
MOST_RANKED = 64
"""Launches in which late ranks are looked for: their lists are in no index, so each is a file that is opened."""
_ROW = ("launch_id", "benchmark", "size_bytes", "comparability_key", "binding")
"""Columns that name a row."""
_TRIED = [series.key_in_text(TUNE_SETTING)]
_SWEEP_MARKS = [series.key_in_text(mark) for mark in MARKS]


@dataclass
class Cells:
    """The cells of a store that a reader has selected."""

    store: Path
    rows: pd.DataFrame
    """Prepared cells (:func:`omb_py.dashboards.base.series.prepared`) with :data:`COLUMNS`, without the three below."""
    guidelines: pd.DataFrame
    """Cells that ``omb-py guidelines`` measured; prepared."""
    links: pd.DataFrame
    """Cells that ``omb-py links`` measured; prepared."""
    trials: pd.DataFrame
    """Cells that ``omb-py tune`` measured in its search, of other settings than the library's own; prepared."""
    provenance: Callable[[str], Provenance]
    """Launch → its provenance record."""
    whole: bool = False
    """True where nothing of the store is left out."""
    on_skip: OnSkip | None = None
    """Called with the path and the reason for each file that cannot be read."""
    against: Path | None = None
    """A second store, which is compared with the first: the rows of both are told apart by
    :data:`omb_py.dashboards.base.series.OF_STORE` among their tags."""

    @property
    def stores(self) -> tuple[Path, ...]:
        """The store, or both."""
        return (self.store,) if self.against is None else (self.store, self.against)

    @property
    def store_names(self) -> tuple[str, ...]:
        """What tells the stores apart."""
        return names_of(self.stores)

    def load(self, columns: Sequence[str], **filters: object) -> pd.DataFrame:
        """Rows as the stores have them, with other columns."""
        return self._read(columns, lambda store: load(store, columns=columns, on_skip=pass_over, **filters))

    def _read(self, columns: Sequence[str], read: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
        """What is read of the stores; no row of one whose folder went while a reader looks at its cells."""
        every = [read(store) for store in self.stores if store.is_dir()]
        if len(every) < 2:
            return every[0] if every else pd.DataFrame(columns=list(dict.fromkeys(columns)), dtype=object)
        return series.concat(every)

    @cached_property
    def timed(self) -> pd.DataFrame:
        """The rows that measured a time (:func:`omb_py.dashboards.base.series.timed`)."""
        return series.timed(self.rows)

    @cached_property
    def ranked(self) -> pd.DataFrame:
        """The cells of the newest launches of each benchmark and library, with the lists of their ranks."""
        keys = ["benchmark", "library", "library_version", "binding", "ranks"]
        launches = self.rows.drop_duplicates([*keys, "launch_id"])
        launches = launches.sort_values("started_at", ascending=False, kind="stable")
        turn = launches.groupby(keys, observed=True, dropna=False, sort=False).cumcount()
        newest = launches.assign(_turn=turn).sort_values("_turn", kind="stable")["launch_id"]
        chosen = list(dict.fromkeys(newest))[:MOST_RANKED]
        return self.read_again(self.rows[self.rows["launch_id"].isin(chosen)], *RANK_LISTS)

    @cached_property
    def late(self) -> list[LateNode]:
        """The nodes that are late, the latest first."""
        return late_nodes(self.ranked)

    @cached_property
    def panels(self) -> Iterable[Panel]:
        """The timed rows split into panels."""
        panels = [*series.panels(self.timed)]
        series.compute_medians([line for panel in panels for line in panel.lines])
        return panels

    def sized(self, size: int | None = None) -> Iterator[pd.DataFrame]:
        """The rows of each series at a message size in bytes; at its smallest size when None."""
        for panel in self.panels:
            for line in panel.lines:
                rows = line.cells
                if rows["size_bytes"].notna().any():
                    rows = rows[rows["size_bytes"] == (rows["size_bytes"].min() if size is None else size)]
                if len(rows):
                    yield rows

    @cached_property
    def bounds(self) -> pd.DataFrame:
        """Lower bounds of the collectives among the rows (:func:`omb_py.dashboards.views.cells.lower_bounds`)."""
        return lower_bounds(self.timed)

    def bound_of(self, rows: pd.DataFrame) -> pd.DataFrame | None:
        """The lower bounds of the rows of a panel; None where they have several numbers of ranks, or none is known."""
        if not len(self.bounds) or rows["ranks"].nunique() != 1:
            return None
        benchmark, ranks = rows["benchmark"].iloc[0], rows["ranks"].iloc[0]
        own = self.bounds[(self.bounds["benchmark"] == benchmark) & (self.bounds["ranks"] == ranks)]
        return own if len(own) else None

    def guideline_rows(self) -> pd.DataFrame:
        """The cells of guidelines as the store has them, with maps as dicts."""
        launches = list(dict.fromkeys(self.guidelines["launch_id"]))
        rows = self.load(COLUMNS, family=GUIDELINES, launch_id=launches)
        return rows[rows["comparability_key"].isin(set(self.guidelines["comparability_key"]))]

    def read_again(self, cell: pd.DataFrame, *columns: str) -> pd.DataFrame:
        """Some of the rows with more columns, from the files of their launches: lists are not kept in memory."""
        days = {str(launch): str(day) for launch, day in zip(cell["launch_id"], cell["date"], strict=True)}
        names = [*_ROW, *columns]
        benchmarks = [str(name) for name in cell["benchmark"].unique()]
        read = self._read(names, lambda store: load_launches(store, days, columns=names, benchmark=benchmarks))
        left = cell[list(_ROW)].astype({name: object for name in _ROW if name != "size_bytes"})
        both = left.merge(read.drop_duplicates(list(_ROW)), how="left", on=list(_ROW))
        # a launch whose file went has no list and no map
        lists = {name: both[name].where(both[name].notna(), None) for name in columns if both[name].dtype == object}
        return series.occurring(cell).assign(**{name: lists.get(name, both[name]).to_numpy() for name in columns})


def names_of(stores: Sequence[Path]) -> tuple[str, ...]:
    """The names of some stores: their folders, or their whole paths where those are alike."""
    names = tuple(store.resolve().name for store in stores)
    return names if len({*names}) == len(names) else tuple(map(str, stores))


Parts = tuple["pd.DataFrame", "pd.DataFrame", "pd.DataFrame", "pd.DataFrame"]


def split(frame: pd.DataFrame) -> Parts:
    """Prepared cells as the fields of :class:`Cells` with rows: ordinary ones, guidelines, links, trials."""
    chosen = frame["family"].eq(GUIDELINES).fillna(False).astype(bool)
    guidelines, rest = (frame[chosen], frame[~chosen]) if chosen.any() else (frame[:0], frame)
    links, rest = split_links(rest)
    trials, rest = _split_by_marks(rest, "tags", _TRIED)
    return rest, guidelines, links, trials


def split_links(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of sweeps over pairs of nodes, and the others; of prepared cells."""
    return _split_by_marks(frame, "parameters", _SWEEP_MARKS)


def _split_by_marks(
    frame: pd.DataFrame, column: str, marks: Sequence[re.Pattern[str]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    texts = [text for text in frame[column].unique() if all(mark.search(str(text)) for mark in marks)]
    if not texts:
        return frame[:0], frame
    chosen = frame[column].isin(texts)
    return frame[chosen], frame[~chosen]


def lower_bounds(frame: pd.DataFrame) -> pd.DataFrame:
    """Lower bounds of the collectives among prepared cells, which no algorithm of messages can beat: ``benchmark``,
    ``ranks``, ``size_bytes``, ``lower_us``. Messages between two ranks are those of `latency` among the cells.

    Of several libraries that of the fastest messages counts, so that all of them can be held against one line.
    """
    messages = rows_of(frame[frame["benchmark"] == MESSAGES])
    places = ["device", "buffer"]
    names = ["benchmark", *WHO, *places, "ranks", "size_bytes", "bytes_total", "bw_formula"]
    rows = rows_of(frame[frame["metric"] == "latency"].drop_duplicates(names)) if messages else []
    of_side: dict[tuple[Any, ...], Any] = {}
    for row in rows:
        who = tuple(value_of(row, name) for name in (*places, *WHO))
        if who not in of_side:
            of_side[who] = message_of(row, messages)
    lowest: dict[tuple[str, int, int], float] = {}
    for row in rows:
        if row["benchmark"] != MESSAGES and row["ranks"] is not None:  # imported tables may not say how many
            at = (row["benchmark"], int(row["ranks"]), int(row["size_bytes"] or 0))
            call = (row["bw_formula"], row["benchmark"], row["bytes_total"] or 0, row["ranks"] or 1)
            for (device, buffer, *_), message in of_side.items():
                # at every size of all of them, whoever measured it: the line would leap where one library stops
                if message is not None and (device, buffer) == (row["device"], row["buffer"]):
                    lower = lower_bound_us(*call, message.alpha_us, message.beta_us)
                    if lower is not None:
                        lowest[at] = min(lower, lowest.get(at, lower))
    lines = [(*at, lower) for at, lower in lowest.items()]
    return pd.DataFrame(lines, columns=["benchmark", "ranks", "size_bytes", "lower_us"])

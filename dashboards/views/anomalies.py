"""Samples and ranks of single cells, and the odd cells: a line for each, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import Shown, View, plural, records
from omb_py.dashboards.changes.sides import KEY, VERSION
from omb_py.dashboards.figures import launches, stragglers
from omb_py.dashboards.figures.launches import cell_name
from omb_py.dashboards.views.cells import RANK_LISTS, Cells
from omb_py.results.units import listed, size_text

MOST_LAUNCHES = 8
"""Launches of a cell whose samples are drawn, the newest: the boxes and lines of more cannot be told apart."""


def distribution_of(cells: Cells, cell: pd.DataFrame) -> View | None:
    """The distribution of a cell; None where the store no longer has it."""
    # an imported cell has no samples: its box is drawn from its quartiles and its extremes
    newest = cell.sort_values("started_at", kind="stable").tail(MOST_LAUNCHES)
    rows = cells.read_again(newest, "samples_us", "max_us")
    if not len(rows):
        return None
    left = len(cell) - len(newest)
    note = f"The newest {MOST_LAUNCHES} of {plural(len(cell), 'launch')}; the history has all."
    return launches.distribution(rows).noted([note] if left else [])


def trace_of(cells: Cells, cell: pd.DataFrame) -> View | None:
    """The calls of a launch; None where it has no samples."""
    rows = cells.read_again(cell, "samples_us")
    return launches.trace(rows) if len(rows) else None


def distribution(cells: Cells, size: int | None = None) -> Iterator[Shown]:
    """The distribution of each series at one size."""
    for cell in cells.sized(size):
        if view := distribution_of(cells, cell):
            yield Shown(view, cell)


def trace(cells: Cells, size: int | None = None) -> Iterator[Shown]:
    """The calls of the newest launch of each series at one size."""
    for cell in cells.sized(size):
        if view := trace_of(cells, cell.sort_values("started_at").tail(1)):
            yield Shown(view, cell)


def late_ranks(cells: Cells) -> Iterator[Shown]:
    """Late ranks in the newest launch of each series."""
    for panel in cells.panels:
        for line in panel.lines:
            newest = line.cells[line.cells["launch_id"] == line.cells.sort_values("started_at")["launch_id"].iloc[-1]]
            view = stragglers.stragglers(cells.read_again(newest, *RANK_LISTS))
            if view is not None:
                yield Shown(view, newest)


APART = 0.25
"""Launch medians of one cell further apart than this are named."""
TAIL = 5.0
"""A p99 of so many medians is named."""
SMALLER_SLOWER = 1.25
"""A message that takes so many times as long as a larger one is named."""
MOST_OF_A_LOOK = 2
"""Findings of one kind that get a view."""
MOST_LISTED = 4
"""Findings of one kind that are listed."""

Look = Literal["", "distribution", "trace", "stragglers"]


@dataclass(frozen=True, slots=True)
class OddCell:
    """Something odd about some cells."""

    rank: float
    """The lower, the earlier it is read."""
    text: str
    look: Look
    """The view that shows it."""
    cells: pd.DataFrame
    """The rows it is about."""
    over_launches: bool = False
    """Whether launches differ, as those of a drift do."""

    def is_among(self, named: Collection[tuple[str, str]]) -> bool:
        """Whether all its cells are among those of (comparability key, version)."""
        own = zip(self.cells[KEY].astype(str), self.cells[VERSION].astype(str), strict=True)
        return len(self.cells) > 0 and all(cell in named for cell in own)


def kinds(cells: Cells, most: int) -> Iterator[list[OddCell]]:
    """Odd things among the cells of a store, by kind, the worst first; `most` of each kind have a text and cells."""
    wrong, late, frame = _wrong(cells.rows), _find_late(cells.ranked, {node.host for node in cells.late}), cells.timed
    for kind in (wrong, _tails(frame), _find_apart(frame, most), late, _find_not_monotone(frame), _find_limited(frame)):
        yield sorted(kind, key=lambda odd: odd.rank)


def _where(cell: pd.DataFrame) -> str:
    return f"{cell_name(cell)} ({series.short(cell)})"


def _wrong(frame: pd.DataFrame) -> Iterator[OddCell]:
    bad = frame[frame["validated"].eq(False).fillna(False).astype(bool)]
    whose = (name for name in ("backend", "library", VERSION, "binding", "device") if name in bad)
    for (name, *_), part in bad.groupby(["benchmark", *whose], dropna=False, observed=True):
        sizes = listed(size_text(s) for s in sorted(set(part["size_bytes"].dropna())) if s)
        where = f" at {sizes}" if sizes else ""
        who = series.short(part)
        text = f"Wrong bytes: {name}{f' ({who})' if who else ''} failed its validation{where}."
        yield OddCell(0.0, text, "", part)


def _tails(frame: pd.DataFrame) -> Iterator[OddCell]:
    tailed = frame[frame["p99_us"].notna() & (frame["median_us"] > 0)]
    tail = tailed["p99_us"] / tailed["median_us"]
    far = tailed[tail > TAIL].assign(_tail=tail[tail > TAIL]).sort_values("_tail", ascending=False)
    names = [n for n in ("benchmark", "comparability_key") if n in far]
    for _, cell in far.groupby(names, sort=False, dropna=False, observed=True):
        row = cell.iloc[:1]
        factor = float(row["_tail"].iloc[0])
        text = f"Long tail: one call in a hundred of {_where(row)} took {factor:.0f} times the median or more."
        yield OddCell(1 - factor * 1e-6, text, "trace", row.drop(columns="_tail"))


def _find_apart(frame: pd.DataFrame, most: int) -> Iterator[OddCell]:
    """The farthest apart first; beyond `most`, no text."""
    keys = series.varying(frame, (*series.PANEL, *series.IDENTITY, "size_bytes")) or ["benchmark"]
    grouped = frame.groupby(keys, dropna=False, observed=True, sort=False)["median_us"]
    ratio = grouped.transform("max") / grouped.transform("min") - 1
    wide = frame.assign(_apart=ratio)[ratio > APART].sort_values("_apart", ascending=False, kind="stable")
    part_of = wide.groupby(keys, dropna=False, observed=True, sort=False).ngroup()
    for number, apart in enumerate(wide["_apart"][~part_of.duplicated()]):
        if number >= most:
            yield OddCell(2 - apart * 1e-6, "", "distribution", wide[:0], over_launches=True)
            continue
        cell = wide[part_of == number]
        ends = f"{theme.duration(cell['median_us'].min())} to {theme.duration(cell['median_us'].max())}"
        launches_of = f"{plural(len(cell), 'launch')} of {_where(cell)}"
        text = f"Launches disagree: {launches_of} have medians from {ends}, {100 * apart:.0f} % apart."
        yield OddCell(2 - apart * 1e-6, text, "distribution", cell.drop(columns="_apart"), over_launches=True)


def _find_late(frame: pd.DataFrame, late_hosts: Collection[str]) -> Iterator[OddCell]:
    """Late ranks, but those of nodes that are late as a whole."""
    if not len(frame):
        return
    rows = frame[[hasattr(v, "__len__") and len(v) > 2 for v in frame["slowest_rank_share"]]]
    keys = [n for n in (*series.PANEL, "library", "library_version", "binding", "ranks") if n in rows]
    part_of = rows.groupby(keys, dropna=False, observed=True).ngroup().to_numpy()
    shares = rows["slowest_rank_share"].to_numpy()
    for number in range(part_of.max() + 1 if part_of.size else 0):
        places = np.flatnonzero(part_of == number)
        lists = [np.asarray(v, dtype=np.float64) for v in shares[places]]
        lists = [v for v in lists if v.size == lists[0].size]
        share = np.mean(np.stack(lists), axis=0)
        late = int(share.argmax())
        # ties count for every rank in them, so the others must be under an even share
        if share[late] > 3 / share.size and np.delete(share, late).max() < 1 / share.size:
            part = rows.iloc[places]
            host = next((str(h[late]) for h in part.get("hosts", ()) if h is not None and len(h) == share.size), "")
            if host in late_hosts:
                continue
            text = (
                f"A late rank: rank {late}{f' on {host}' if host else ''} is the slowest in "
                f"{100 * share[late]:.0f} % of the calls of "
                f"{part['benchmark'].iloc[0]} ({series.short(part)}); an even share is {100 / share.size:.0f} %."
            )
            yield OddCell(3 - share[late] * 1e-3, text, "stragglers", part)


def _find_not_monotone(frame: pd.DataFrame) -> Iterator[OddCell]:
    timed = frame[(frame["unit"] == "us") & (frame["size_bytes"].fillna(0) > 0)]
    keys = series.varying(timed, (*series.PANEL, *series.IDENTITY)) or ["benchmark"]
    timed = timed.assign(_series=timed.groupby(keys, dropna=False, observed=True, sort=False).ngroup())
    over = timed.groupby(["_series", "size_bytes"])["median_us"].median().reset_index()
    after = over.groupby("_series")[["size_bytes", "median_us"]].shift(-1)
    far = over.assign(_next=after["size_bytes"], _ratio=over["median_us"] / after["median_us"])
    for row in records(far[far["_ratio"] > SMALLER_SLOWER].rename(columns=lambda name: name.strip("_"))):
        cell = timed[(timed["_series"] == row.series) & (timed["size_bytes"] == row.size_bytes)].drop(columns="_series")
        longer = f"{theme.amount(row.ratio)} times as long as {size_text(row.next)}"
        text = f"A smaller message is slower: {_where(cell)} takes {longer}."
        yield OddCell(4 - row.ratio * 1e-6, text, "distribution", cell)


def _find_limited(frame: pd.DataFrame) -> Iterator[OddCell]:
    limited = frame[frame["sync_limited"].fillna(False).astype(bool)]
    for name, part in limited.groupby("benchmark", observed=True):
        text = (
            f"Mostly skew: {plural(len(part), 'cell')} of {name} took less than three times the skew with which "
            "the ranks left the barrier; --process-sync roundtime measures on a common clock."
        )
        yield OddCell(5.0, text, "", part)


def odd_cells(cells: Cells) -> Iterator[Shown]:
    """A line for each finding, with a view of the cell for the first few of each kind; late nodes first."""
    drawn: set[tuple[str, str]] = set()
    looks: Counter[str] = Counter()
    for node in cells.late:
        yield Shown(stragglers.stragglers(node.parts[0]), node.parts[0], f"{node.sentence}.")
    for kind in kinds(cells, MOST_LISTED):
        for odd in kind[:MOST_LISTED]:
            view = None
            if odd.look and looks[odd.look] < MOST_OF_A_LOOK:
                looks[odd.look] += 1
                view = _DRAW[odd.look](cells, odd.cells)
            view = None if view is None or view.key in drawn else view
            drawn |= {view.key} if view is not None else set()
            yield Shown(view, odd.cells, odd.text)
        if (left := len(kind) - MOST_LISTED) > 0:
            yield Shown(None, cells.rows[:0], f"… and {left} more of this kind", odd_count=left)


_DRAW: Mapping[str, Callable[[Cells, Any], View | None]] = {
    "distribution": distribution_of,
    "trace": trace_of,
    "stragglers": lambda cells, cell: stragglers.stragglers(cell),
}

"""The report: which views a store deserves, in the order in which they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omb_py.dashboards import board, cells, commands, curves, findings, others, promises, ranks, spread, style
from omb_py.dashboards.findings import Finding
from omb_py.dashboards.selection import Selection
from omb_py.dashboards.view import View, listed, plural, records, table
from omb_py.results.keys import environment_facts
from omb_py.results.lookup import provenance_of
from omb_py.results.reading import load
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd

MOST_BESIDE, MOST_OF_A_LOOK, MOST_SCALING, MOST_HISTORIES = 6, 2, 12, 6
"""Views of a kind in a report: what is left out is counted in it."""
MOST_SERIES_OF_PAIRS = 60
MANY_RANKS = ("rank_mean_us", "slowest_rank_share", "hosts")
SMALL, LARGE = 4 * 1024, 64 * 1024
"""Bus bandwidth is drawn from the one size on, where there are messages of the other or larger."""


@dataclass(slots=True)
class Report:
    """Everything on the page. All texts are plain."""

    store: str
    selection: str
    skipped: list[tuple[str, str]]
    """Files that could not be read, and why."""
    summary: str
    slower: list[View] = field(default_factory=list)
    slower_text: str = ""
    odd: list[str] = field(default_factory=list)
    odd_views: list[View] = field(default_factory=list)
    measured: list[View] = field(default_factory=list)
    problem: str = ""
    """Why there is nothing to show, and what to type next; empty where there is."""

    @property
    def views(self) -> list[View]:
        """All views, in order."""
        return [*self.slower, *self.odd_views, *self.measured]


def report(
    store: Path, selection: Selection, judged: pd.DataFrame | None = None, bounds: pd.DataFrame | None = None
) -> Report:
    """Read a store and choose what to show.

    Args:
        store: its folder.
        selection: what part of it.
        judged: a verdict table (:mod:`omb_py.dashboards.board`); without one, what may be compared is shown side by
            side, without a verdict.
        bounds: lower bounds, ``benchmark``, ``ranks``, ``size_bytes``, ``lower_us``.

    Raises UsageError when there is no such folder or a filter's value cannot be.
    """
    skipped: list[tuple[str, str]] = []
    columns = [*cells.NEEDED, *MANY_RANKS]
    frame = load(
        store, columns=columns, on_skip=lambda path, why: skipped.append((str(path), why)), **selection.columns
    )
    guidelines, frame = promises.split(selection.apply(frame))
    checked, frame = promises.views(guidelines), cells.prepared(frame)
    made = Report(str(store), selection.words(), skipped, _summary(frame if len(frame) else guidelines))
    if not len(frame) and checked:
        made.measured = checked
        return made
    if not len(frame):
        made.problem = _nothing(store, selection, skipped)
        return made
    again = commands.Commands(store)
    panels = list(cells.panels(frame))
    _add_slower(made, panels, judged, again)
    _add_odd(made, store, frame, again)
    made.measured.append(_overview(frame))
    for name, rows in panels:
        made.measured += [v.with_commands(again.of(rows)) for v in _of_panel(name, rows, bounds)]
    made.measured += checked
    made.measured += _scalings(frame, again) + _histories(frame, again) + _environments(store, frame)
    return made


def _summary(frame: pd.DataFrame) -> str:
    if not len(frame):
        return "nothing"
    what = listed(sorted(frame["benchmark"].unique()))
    libraries = listed(
        sorted(
            {
                " ".join(w for w in pair if isinstance(w, str))
                for pair in zip(frame["library"], frame["library_version"], strict=True)
            }
        )
    )
    counts = f"{plural(len(frame), 'cell')} from {plural(frame['launch_id'].nunique(), 'launch')}"
    return f"{counts}: {what} over {libraries}, {cells.days(frame)}"


def _nothing(store: Path, selection: Selection, skipped: Sequence[tuple[str, str]]) -> str:
    if selection:
        return f"No cell of {store} fits {selection.words()}. What there is: omb-py results list --store {store}"
    if skipped:
        return f"None of the {plural(len(skipped), 'file')} of {store} can be read by this omb-py; why stands below."
    return f"The store {store} is empty. To measure something: omb-py allreduce -n 2 --store {store}"


def _add_slower(
    made: Report, panels: Sequence[tuple[str, pd.DataFrame]], judged: pd.DataFrame | None, again: commands.Commands
) -> None:
    if judged is not None and len(judged):
        made.slower_text = board.headline(judged)
        made.slower.append(board.board(judged))
        if "size_bytes" in judged:
            made.slower.append(board.ratio(judged, "New over base"))
        return
    found: list[tuple[float, View]] = []
    left = 0
    for name, rows in panels:
        sides = board.pairs_of_sides(rows)
        left += max(0, len(sides) - MOST_SERIES_OF_PAIRS)
        for a, base, b, new in sides[:MOST_SERIES_OF_PAIRS]:
            what = ", ".join(dict.fromkeys([name, *_ranks_word(base)]))
            view = board.beside(base, new, (a, b), what)
            if view is not None:
                factor = max((max(r[3], 1 / r[3]) for r in view.rows), default=1.0)
                found.append((factor, replace(view, commands=again.of(_both(base, new)))))
    found.sort(key=lambda one: -one[0])
    made.slower = [view for _, view in found[:MOST_BESIDE]]
    if not found:
        made.slower_text = (
            "Nothing here can be compared: no two series measured the same thing. A verdict: omb-py compare BASE NEW."
        )
        return
    more = (
        f"; the {plural(len(found) - MOST_BESIDE, 'pair')} that differ less are left out"
        if len(found) > MOST_BESIDE
        else ""
    )
    made.slower_text = (
        f"Side by side, the widest apart first{more}. These are measurements, not verdicts: omb-py "
        f"compare BASE NEW gives those."
    )


def _ranks_word(rows: pd.DataFrame) -> list[str]:
    known = rows["ranks"].dropna().unique()
    return [f"{int(known[0])} ranks"] if len(known) == 1 else []


def _both(*sides: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(sides)


def _add_odd(made: Report, store: Path, frame: pd.DataFrame, again: commands.Commands) -> None:
    found = findings.findings(frame)
    made.odd = [one.text for one in found]
    drawn: dict[tuple[str, str], View] = {}
    kinds: Counter[str] = Counter()
    for one in found:
        if kinds[one.look] == MOST_OF_A_LOOK:
            continue
        kinds[one.look] += bool(one.look)
        view = _look(one, store)
        if view is not None:
            drawn.setdefault((view.kind, view.title), view.with_commands(again.of(one.cells)))
    made.odd_views = list(drawn.values())


def _look(one: Finding, store: Path) -> View | None:
    if not one.look:
        return None
    if one.look == "stragglers":
        return ranks.stragglers(one.cells)
    read = load(
        store, columns=[*cells.NEEDED, "samples_us"], on_skip=lambda path, why: None, **findings.rows_of(one.cells)
    )
    if not len(read):
        return None
    rows = cells.prepared(read)
    return spread.trace(rows) if one.look == "trace" else spread.distribution(rows)


def _overview(frame: pd.DataFrame) -> View:
    """What was measured, a line a benchmark and library."""
    keys = ["benchmark", "backend", "library", "library_version", "binding", "ranks"]
    rows = []
    for values, part in frame.groupby(keys, dropna=False, sort=True):
        known = ["" if style.absent(v) else v for v in values]
        sizes = part["size_bytes"].dropna()
        reach = f"{size_text(sizes.min())} to {size_text(sizes.max())}" if len(sizes) and sizes.max() > 0 else "-"
        failed = int(part["validated"].eq(False).fillna(False).sum())
        rows.append((*known, reach, int(part["launch_id"].nunique()), len(part), failed or "", str(part["date"].max())))
    heads = (
        "benchmark",
        "backend",
        "library",
        "version",
        "binding",
        "ranks",
        "sizes",
        "launches",
        "cells",
        "failed",
        "last day",
    )
    return View("overview", _summary(frame), "", None, **table(heads, rows))


def _of_panel(name: str, rows: pd.DataFrame, bounds: pd.DataFrame | None) -> list[View]:
    bound = None
    if bounds is not None and rows["ranks"].nunique() == 1:
        bound = bounds[(bounds["benchmark"] == rows["benchmark"].iloc[0]) & (bounds["ranks"] == rows["ranks"].iloc[0])]
    made = [curves.curves(rows, name, bound=bound)]
    large = rows[(rows["size_bytes"].fillna(0) >= SMALL) & rows["busbw_gbps"].notna()]
    if len(large) and large["size_bytes"].max() >= LARGE and rows["unit"].iloc[0] == "us":
        made.append(curves.curves(large, f"{name}, bus bandwidth", "busbw"))
    return made


def _scalings(frame: pd.DataFrame, again: commands.Commands) -> list[View]:
    made = []
    for benchmark, rows in frame[frame["unit"] == "us"].groupby("benchmark", sort=True):
        for one in cells.lines(rows, ignore=("ranks", "nodes", "devices")):
            view = curves.scaling(one.cells, f"{benchmark}, {one.label}" if one.label else str(benchmark))
            if view is not None:
                made.append(view.with_commands(again.of(one.cells)))
    return made[:MOST_SCALING]


def _histories(frame: pd.DataFrame, again: commands.Commands) -> list[View]:
    """Cells with most launches on at least two days."""
    made: list[tuple[int, View]] = []
    for _, rows in frame.groupby("benchmark", sort=True):
        if rows["date"].nunique() < 2:
            continue
        for one in cells.lines(rows, ignore=("library_version", "tags")):
            sizes = one.cells.groupby("size_bytes", dropna=False)["launch_id"].nunique()
            size = sizes.idxmax()
            cell = one.cells if style.absent(size) else one.cells[one.cells["size_bytes"] == size]
            if len(cell) > 2 and cell["date"].nunique() > 1:
                name = ", ".join(w for w in (spread.cell_name(cell), one.label) if w)
                made.append((len(cell), others.history(cell, name).with_commands(again.of(cell))))
    made.sort(key=lambda one: -one[0])
    return [view for _, view in made[:MOST_HISTORIES]]


def _environments(store: Path, frame: pd.DataFrame) -> list[View]:
    """The newest launch of each of the newest environments; None of it where all are alike."""
    newest = frame.sort_values("started_at").drop_duplicates("environment_key", keep="last").tail(4)
    if len(newest) < 2:
        return []
    sides: dict[str, dict[str, Any]] = {}
    provenance = provenance_of(store)
    for row in records(newest):
        facts = environment_facts(provenance(row.launch_id))
        if facts:
            name = f"{row.library or row.backend} {row.library_version or ''}, {row.launch_id}"
            sides[name] = facts
    return [others.environment(sides)] if len(sides) > 1 else []

"""The report: which views a store deserves, in the order in which they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.selection import Selection
from omb_py.dashboards.base.series import Line
from omb_py.dashboards.base.view import Shown, View, listed, plural, table
from omb_py.dashboards.figures import (
    anomalies,
    comparison,
    curves,
    distributions,
    environment,
    history,
    repro_commands,
    roofline,
    steps,
    stored_comparisons,
    stored_fits,
    stored_guidelines,
    stored_links,
    stragglers,
)
from omb_py.dashboards.figures.anomalies import Finding
from omb_py.dashboards.figures.stored_comparisons import Comparison
from omb_py.results.formats.units import size_text
from omb_py.results.store.lookup import provenance_of
from omb_py.results.store.read import load

if TYPE_CHECKING:
    import pandas as pd

    Side = tuple[str, pd.DataFrame]

MOST_COMPARISONS, MOST_BESIDE, MOST_OF_A_LOOK, MOST_SCALING, MOST_HISTORIES, MOST_MODELS = 3, 6, 2, 12, 6, 2
MOST_SWEEPS, MOST_STEPS = 4, 8
"""Views of a kind in a report: what is left out is counted in it."""
MOST_SERIES_OF_PAIRS = 60
MOST_RANKED = 64
"""Launches in which late ranks are looked for: their lists are in no index, so each is a file that is opened."""
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


def report(store: Path, selection: Selection) -> Report:
    """Read a store and choose what to show.

    Args:
        store: its folder.
        selection: what part of it.

    Raises UsageError when there is no such folder or a filter's value cannot be.
    """
    skipped: list[tuple[str, str]] = []

    def skip(path: Path, why: str) -> None:
        skipped.append((str(path), why))

    columns = [*series.NEEDED, *stored_fits.ALSO]
    frame = load(store, columns=columns, on_skip=skip, **selection.columns)
    guidelines, frame = stored_guidelines.split(selection.apply(frame))
    swept, rest = stored_links.split(series.prepared(frame))
    frame = series.compact(rest)
    shown = [frame, swept.assign(benchmark="links"), guidelines.assign(benchmark="guidelines")]
    made = Report(str(store), selection.words(), skipped, _summary(shown))
    provenance = provenance_of(store)
    again = repro_commands.Commands(provenance)
    own = [*stored_guidelines.views(guidelines), *islice(stored_links.stored(store, swept), MOST_SWEEPS)]
    calm = _add_own(made, own, again)
    if not len(frame) and own:
        made.measured += calm
        return made
    if not len(frame):
        made.problem = _nothing(store, selection, skipped)
        return made
    panels = [(name, rows, series.lines(rows)) for name, rows in series.panels(frame)]
    series.take_together([line for _, _, found in panels for line in found])
    wanted = set(frame["comparability_key"].dropna().unique()) if selection else None
    _add_slower(made, panels, stored_comparisons.comparisons(store, wanted, skip), store, again)
    _add_odd(made, store, frame, again)
    made.measured.append(_overview(frame))
    bound = roofline.bounds(frame)
    made.measured += _steps(store, frame, again)
    for panel in panels:
        if panel[1]["family"].iloc[0] == steps.FAMILY:
            continue
        repeat = again.of(panel[1])
        made.measured += [view.with_commands(repeat) for view in _of_panel(*panel, bound)]
    made.measured += calm
    made.measured += _scalings(frame, again)
    made.measured += [view.with_commands(again.of(rows)) for view, rows in stored_fits.fits(frame, MOST_MODELS)]
    made.measured += _histories(frame, again, provenance)
    environments = environment.environments(frame, provenance)
    made.measured += [environments] if environments is not None else []
    return made


def _add_own(made: Report, own: Sequence[Shown], again: repro_commands.Commands) -> list[View]:
    """Views of commands that judge by themselves: odd ones are added, the others given back."""
    calm: list[View] = []
    for one in own:
        view = one.view.with_commands(again.of(one.rows))
        made.odd += [one.odd] if one.odd else []
        (made.odd_views if one.odd else calm).append(view)
    return calm


def _summary(parts: Sequence[pd.DataFrame]) -> str:
    """Of all that is shown: what the curves have first, then what has views of its own."""
    import pandas as pd

    columns = ["benchmark", "library", "library_version", "launch_id", "date"]
    known = [part[columns].astype(object) for part in parts if len(part)]
    if not known:
        return "nothing"
    frame = pd.concat(known)
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
    return f"{counts}: {what} over {libraries}, {series.days(frame)}"


def _nothing(store: Path, selection: Selection, skipped: Sequence[tuple[str, str]]) -> str:
    if selection:
        return f"No cell of {store} fits {selection.words()}. What there is: omb-py results list --store {store}"
    if skipped:
        return f"None of the {plural(len(skipped), 'file')} of {store} can be read by this omb-py; why stands below."
    return f"The store {store} is empty. To measure something: omb-py allreduce -n 2 --store {store}"


def _add_slower(
    made: Report,
    panels: Sequence[tuple[str, pd.DataFrame, Sequence[Line]]],
    compared: Sequence[Comparison],
    store: Path,
    again: repro_commands.Commands,
) -> None:
    """The verdicts that are stored; then, without a verdict, what else measured the same thing."""
    for one in compared[:MOST_COMPARISONS]:
        made.slower += stored_comparisons.views(one, store)
    known = {key for one in compared for key in one.verdicts["comparability_key"]}
    found: list[tuple[float, str, Side, Side]] = []
    for name, _, lines in panels:
        for a, base, b, new in comparison.pairs_of_sides(lines)[:MOST_SERIES_OF_PAIRS]:
            if not set(base["comparability_key"].dropna().unique()) <= known and (far := comparison.factor(base, new)):
                found.append((far, name, (a, base), (b, new)))
    found.sort(key=lambda one: -one[0])
    for _, name, (a, base), (b, new) in found[:MOST_BESIDE]:
        what = ", ".join(dict.fromkeys([*name.split(", "), *_ranks_word(base)]))
        view = comparison.beside(base, new, (a, b), what)
        if view is not None:
            made.slower.append(view.with_commands(again.of(_both(base, new))))
    made.slower_text = _slower_text(compared, len(found))


def _slower_text(compared: Sequence[Comparison], pairs: int) -> str:
    said = []
    if compared:
        headlines = "; ".join(f"{one.name}: {comparison.headline(one.verdicts)}" for one in compared[:MOST_COMPARISONS])
        left = len(compared) - MOST_COMPARISONS
        more = f"; {plural(left, 'comparison')} more left out" if left > 0 else ""
        said.append(f"{headlines}{more}.")
    if pairs:
        left = pairs - MOST_BESIDE
        more = f"; the {plural(left, 'pair')} that differ less are left out" if left > 0 else ""
        said.append(
            f"{'What no comparison has judged stands side' if compared else 'Side'} by side, the widest apart "
            f"first{more}. These are measurements, not verdicts: omb-py compare BASE NEW gives those."
        )
    if not said:
        said.append(
            "Nothing here can be compared: no two series measured the same thing. A verdict: omb-py compare BASE NEW."
        )
    return " ".join(said)


def _ranks_word(rows: pd.DataFrame) -> list[str]:
    known = rows["ranks"].dropna().unique()
    return [f"{int(known[0])} ranks"] if len(known) == 1 else []


def _both(*sides: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(sides)


def _add_odd(made: Report, store: Path, frame: pd.DataFrame, again: repro_commands.Commands) -> None:
    found = anomalies.findings(frame, _ranked(store, frame))
    made.odd += [one.text for one in found]
    drawn: dict[tuple[str, str], View] = {}
    kinds: Counter[str] = Counter()
    for one in found:
        if kinds[one.look] == MOST_OF_A_LOOK:
            continue
        kinds[one.look] += bool(one.look)
        view = _look(one, store)
        if view is not None:
            drawn.setdefault((view.kind, view.title), view.with_commands(again.of(one.cells)))
    made.odd_views += drawn.values()


def _ranked(store: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """The cells of the newest launches of each benchmark and library, with what is known of their ranks."""
    keys = ["benchmark", "library", "library_version", "binding", "ranks"]
    launches = frame.drop_duplicates([*keys, "launch_id"]).sort_values("started_at", ascending=False, kind="stable")
    turn = launches.groupby(keys, observed=True, dropna=False, sort=False).cumcount()
    newest = launches.assign(_turn=turn).sort_values("_turn", kind="stable")["launch_id"]
    chosen = list(dict.fromkeys(newest))[:MOST_RANKED]
    columns = [*series.NEEDED, *MANY_RANKS]
    rows = series.prepared(load(store, columns=columns, on_skip=lambda path, why: None, launch_id=chosen))
    return rows[rows["comparability_key"].isin(frame["comparability_key"].unique())]


def _look(one: Finding, store: Path) -> View | None:
    if not one.look:
        return None
    if one.look == "stragglers":
        return stragglers.stragglers(one.cells)
    read = load(
        store, columns=[*series.NEEDED, "samples_us"], on_skip=lambda path, why: None, **anomalies.rows_of(one.cells)
    )
    if not len(read):
        return None
    rows = series.prepared(read)
    return distributions.trace(rows) if one.look == "trace" else distributions.distribution(rows)


def _overview(frame: pd.DataFrame) -> View:
    """What was measured, a line a benchmark and library."""
    keys = ["benchmark", "backend", "library", "library_version", "binding", "ranks"]
    rows = []
    for values, part in frame.groupby(keys, dropna=False, sort=True, observed=True):
        known = ["" if theme.absent(v) else v for v in values]
        sizes = part["size_bytes"].dropna()
        reach = f"{size_text(sizes.min())} to {size_text(sizes.max())}" if len(sizes) and sizes.max() > 0 else "-"
        failed = int(part["validated"].eq(False).fillna(False).sum())
        rows.append(
            (
                *known,
                reach,
                int(part["launch_id"].nunique()),
                len(part),
                failed or "",
                max(map(str, part["date"].unique())),
            )
        )
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
    return View("overview", _summary([frame]), "", None, **table(heads, rows))


def _steps(store: Path, frame: pd.DataFrame, again: repro_commands.Commands) -> list[View]:
    """What steps of workloads take; their parts are in no column of a whole store's frame."""
    mine = frame[frame["family"] == steps.FAMILY]
    if not len(mine):
        return []
    columns, wanted = [*series.NEEDED, "metrics"], steps.rows_of(mine)
    read = load(store, columns=columns, on_skip=lambda path, why: None, **wanted)
    return [view.with_commands(again.of(rows)) for view, rows in steps.layouts(read)][:MOST_STEPS]


def _of_panel(name: str, rows: pd.DataFrame, lines: Sequence[Line], bounds: pd.DataFrame) -> Iterator[View]:
    bound = roofline.of_panel(bounds, rows)
    yield curves.curves(rows, name, bound=bound, found=lines)
    if rows["unit"].iloc[0] != "us":
        return
    if bound is not None and (view := roofline.roofline(rows, bound, name, lines)):
        yield view
    large = rows[(rows["size_bytes"].fillna(0) >= SMALL) & rows["busbw_gbps"].notna()]
    if len(large) and large["size_bytes"].max() >= LARGE:
        parts = [one for line in lines if len((one := line.from_size(SMALL)).cells)]
        yield curves.curves(large, f"{name}, bus bandwidth", "busbw", found=parts)


def _scalings(frame: pd.DataFrame, again: repro_commands.Commands) -> list[View]:
    made: list[View] = []
    for benchmark, rows in frame[frame["unit"] == "us"].groupby("benchmark", sort=True, observed=True):
        if rows["ranks"].nunique() < 2:
            continue
        for one in series.lines(rows, ignore=series.COUNTS):
            if len(made) == MOST_SCALING:
                return made
            view = curves.scaling(one.cells, f"{benchmark}, {one.label}" if one.label else str(benchmark))
            if view is not None:
                made.append(view.with_commands(again.of(one.cells)))
    return made


def _histories(frame: pd.DataFrame, again: repro_commands.Commands, provenance: stored_fits.Provenance) -> list[View]:
    """Those with launches enough for change points; then, as points alone, cells with most launches on several days."""
    judged_ones = stored_fits.histories(frame, provenance, MOST_HISTORIES)
    made = [view.with_commands(again.of(rows)) for view, rows in judged_ones]
    if made:
        return made
    found: list[tuple[int, str, pd.DataFrame]] = []
    for _, rows in frame.groupby("benchmark", sort=True, observed=True):
        if rows["date"].nunique() < 2:
            continue
        for one in series.lines(rows, ignore=("library_version", "tags")):
            size = one.cells.groupby("size_bytes", dropna=False)["launch_id"].nunique().idxmax()
            cell = one.cells if theme.absent(size) else one.cells[one.cells["size_bytes"] == size]
            if len(cell) > 2 and cell["date"].nunique() > 1:
                found.append((len(cell), ", ".join(w for w in (distributions.cell_name(cell), one.label) if w), cell))
    found.sort(key=lambda one: -one[0])
    return [history.history(cell, name).with_commands(again.of(cell)) for _, name, cell in found[:MOST_HISTORIES]]

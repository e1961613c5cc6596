"""Choose the views of a store's report, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pandas as pd

from omb_py.dashboards.base import series
from omb_py.dashboards.base.reading import StoreSelection, read_prepared, why_nothing
from omb_py.dashboards.base.view import TABS, Item, Shown, Tab, View
from omb_py.dashboards.figures.size_by_count import KIND
from omb_py.dashboards.views import registry
from omb_py.dashboards.views.cells import COLUMNS, Cells, names_of, split
from omb_py.dashboards.views.overview import summary
from omb_py.dashboards.views.repro_commands import Commands
from omb_py.errors import UsageError
from omb_py.results.statistics.launch_time import OURS
from omb_py.results.store.paths import OnSkip
from omb_py.results.store.provenance import Provenance, provenance_of

MOST_FIGURES = 30
"""Figures of a report; the table of all measurements leads to what would be the others."""

PRINTED = (
    "Nothing odd was found among numbers that other tools printed. They hold no samples, no ranks and seldom a check "
    "of the bytes, so no tail, no late rank and no wrong byte can be seen in them."
)
"""What the tab Health says of a store of imported rows."""


@dataclass(slots=True)
class TabContent:
    """One tab of the page."""

    texts: list[str] = field(default_factory=list)
    """Sentences above its views."""
    odd: list[str] = field(default_factory=list)
    """A line for each odd thing, or for several."""
    views: list[View] = field(default_factory=list)
    odd_count: int = 0
    """Odd things of all lines."""

    def add(self, shown: Shown) -> None:
        """Add what a view says beside its figure."""
        self.texts += [shown.text] if shown.text else []
        if shown.odd:
            self.odd.append(shown.odd)
            self.odd_count += shown.odd_count


@dataclass(slots=True)
class StoreReport:
    """The contents of the page. All texts are plain, not HTML."""

    store: str
    selection: str
    skipped: list[tuple[str, str]]
    """Files that could not be read, each with the reason."""
    summary: str
    first: list[View] = field(default_factory=list)
    """What stands above the tabs: status, and the list of changes."""
    tabs: dict[Tab, TabContent] = field(default_factory=lambda: {tab: TabContent() for tab in TABS})
    problem: str = ""
    """Reason why there is nothing to show, and what to type next; empty otherwise."""

    @property
    def views(self) -> list[View]:
        """All views, in order."""
        return [*self.first, *(view for tab in self.tabs.values() for view in tab.views)]

    @property
    def changes(self) -> list[Item]:
        """The lines of the first screen."""
        return [item for view in self.first for item in view.items]

    @property
    def opens(self) -> Tab | None:
        """The tab that the page opens with: History where nights of one side show a change; None: any with a figure."""
        compared = any(view.kind == "map" for view in self.tabs["Compare"].views)
        first = next((item.link for item in self.changes), "")
        return "History" if first and not compared and registry.tab_of(first) == "History" else None

    @property
    def odd(self) -> list[str]:
        """The lines of all tabs."""
        return [line for tab in self.tabs.values() for line in tab.odd]


def report(store: Path, selection: StoreSelection, against: Path | None = None) -> StoreReport:
    """Read a store and choose what to show.

    Args:
        store: folder of the store.
        selection: part of the store to show.
        against: a second store, which is compared with the first.

    Raises:
        UsageError: there is no such folder, a filter has an impossible value, or there is nothing to compare.
    """
    skipped: list[tuple[str, str]] = []
    cells = read_cells(store, selection, skipped, against)
    others = [cells.links.assign(benchmark="links"), cells.guidelines.assign(benchmark="guidelines")]
    of = " against ".join(map(str, reversed(cells.stores)))
    page = StoreReport(of, selection.text(), skipped, summary([cells.rows, cells.trials, *others]))
    evidence = _add_views(page, cells)
    health = page.tabs["Health"]
    if len(cells.rows) and not (cells.rows["source"] == OURS).any() and not health.views and not health.odd:
        health.texts.append(PRINTED)
    for name, view in reversed(evidence.values()):
        views = page.tabs[name].views
        views.insert(sum(other.kind in ("map", KIND) for other in views), view)
    if not page.views:
        page.problem = _nothing(store, selection, skipped)
    return page


Evidence = dict[tuple[str, str], tuple[Tab, View]]
"""Key of a view that a line of the first screen leads to, and no entry draws -> its tab and the view."""


def _add_views(page: StoreReport, cells: Cells) -> Evidence:
    commands = Commands(cells.provenance)
    evidence: Evidence = {}

    def room() -> bool:
        return sum(view.spec is not None for view in page.views) + len(evidence) < MOST_FIGURES

    for entry, part in registry.in_report():
        draw = part.views or entry.views
        if draw is None or registry.lacks(entry, cells):
            continue
        tab = page.tabs[entry.tab]
        for shown in islice(draw(cells), part.most):
            tab.add(shown)
            view = shown.view
            if view is None:
                continue
            for item in view.items:
                if item.evidence is not None and room():
                    evidence[item.evidence.key] = (registry.tab_of(item.link), item.evidence)
            evidence.pop(view.key, None)
            if view.spec is None or room():
                views = page.first if part.above and view.spec is None else tab.views
                views.append(commands.on(view, shown.rows) if part.commands else view)
    return evidence


def read_cells(
    store: Path, selection: StoreSelection, skipped: list[tuple[str, str]], against: Path | None = None
) -> Cells:
    """Read the cells of a store, or of two; files that cannot be read are added to `skipped`, with the reason."""

    def skip(path: Path, why: str) -> None:
        skipped.append((str(path), why))

    frame = read_prepared(store, COLUMNS, skip, selection)
    look = provenance_of(store)
    if against is not None:
        frame, look = _join_second(frame, store, against, selection, skip)
    count = len(frame)
    rows, guidelines, links, trials = split(frame)
    del frame
    return Cells(
        store,
        series.occurring(rows) if len(rows) < count else rows,
        guidelines,
        links,
        trials,
        look,
        whole=not selection,
        on_skip=skip,
        against=against,
    )


def _join_second(
    frame: pd.DataFrame, store: Path, against: Path, selection: StoreSelection, skip: OnSkip
) -> tuple[pd.DataFrame, Callable[[str], Provenance]]:
    """The cells of both stores, told apart, and the provenance of their launches."""
    if store.resolve() == against.resolve():
        raise UsageError(f"{store} and {against} are the same store: give two, or one")
    second = read_prepared(against, COLUMNS, skip, selection)
    for place, rows in ((store, frame), (against, second)):
        if not len(rows):
            fits = f" fits {selection.text()}" if selection else ""
            raise UsageError(f"no cell of {place}{fits}: nothing to compare; omb-py results list --store {place}")
    both = (series.of_store(rows, name) for rows, name in zip((frame, second), names_of((store, against)), strict=True))
    first_of, second_of = provenance_of(store), provenance_of(against)
    return series.compact(series.concat(both)), lambda launch: first_of(launch) or second_of(launch)


def _nothing(store: Path, selection: StoreSelection, skipped: Sequence[tuple[str, str]]) -> str:
    if selection:
        return f"No cell of {store} fits {selection.text()}. What there is: omb-py results list --store {store}"
    return why_nothing(store, skipped)

"""Choose the views of a store's report, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from omb_py.dashboards.base import series
from omb_py.dashboards.base.selection import Selection
from omb_py.dashboards.base.view import Item, View, plural
from omb_py.dashboards.views import registry
from omb_py.dashboards.views.cells import COLUMNS, Cells, split_guidelines, split_links
from omb_py.dashboards.views.overview import summary
from omb_py.dashboards.views.repro_commands import Commands
from omb_py.results.store.provenance import provenance_of
from omb_py.results.store.read import load


@dataclass(slots=True)
class Report:
    """The contents of the page. All texts are plain, not HTML."""

    store: str
    selection: str
    skipped: list[tuple[str, str]]
    """Files that could not be read, each with the reason."""
    summary: str
    first: list[View] = field(default_factory=list)
    """The first screen."""
    evidence: list[View] = field(default_factory=list)
    """The views that its lines lead to."""
    slower: list[View] = field(default_factory=list)
    slower_text: str = ""
    odd: list[str] = field(default_factory=list)
    odd_views: list[View] = field(default_factory=list)
    measured: list[View] = field(default_factory=list)
    problem: str = ""
    """Reason why there is nothing to show, and what to type next; empty otherwise."""

    @property
    def views(self) -> list[View]:
        """All views, in order."""
        return [*self.first, *self.evidence, *self.slower, *self.odd_views, *self.measured]

    @property
    def changes(self) -> list[Item]:
        """The lines of the first screen."""
        return [item for view in self.first for item in view.items]


def report(store: Path, selection: Selection) -> Report:
    """Read a store and choose what to show.

    Args:
        store: folder of the store.
        selection: part of the store to show.

    Raises:
        UsageError: there is no such folder, or a filter has an impossible value.
    """
    skipped: list[tuple[str, str]] = []
    cells = read_cells(store, selection, skipped)
    parts = [cells.rows, cells.links.assign(benchmark="links"), cells.guidelines.assign(benchmark="guidelines")]
    page = Report(str(store), selection.words(), skipped, summary(parts))
    commands = Commands(cells.provenance)
    views_of = {"first": page.first, "slower": page.slower, "measured": page.measured}
    for entry, part in registry.in_report():
        draw = part.views or entry.views
        if draw is None or not entry.needs.met(cells):
            continue
        for shown in islice(draw(cells), part.most):
            page.slower_text = " ".join(text for text in (page.slower_text, shown.text) if text)
            page.odd += [shown.odd] if shown.odd else []
            if shown.view is not None:
                views = page.odd_views if shown.odd else views_of[part.section]
                views.append(commands.on(shown.view, shown.rows) if part.commands else shown.view)
    known = {view.key for view in page.views}
    evidence = {item.evidence.key: item.evidence for item in page.changes if item.evidence is not None}
    page.evidence = [view for key, view in evidence.items() if key not in known]
    if not page.views:
        page.problem = _nothing(store, selection, skipped)
    return page


def read_cells(store: Path, selection: Selection, skipped: list[tuple[str, str]]) -> Cells:
    """Read the cells of a store; files that cannot be read are added to `skipped`, with the reason."""

    def skip(path: Path, why: str) -> None:
        skipped.append((str(path), why))

    frame = load(store, columns=COLUMNS, on_skip=skip, **selection.columns)
    guidelines, frame = split_guidelines(selection.apply(frame))
    links, rows = split_links(series.prepared(frame))
    return Cells(
        store,
        series.compact(rows),
        guidelines,
        links,
        provenance_of(store),
        whole=not selection,
        on_skip=skip,
    )


def _nothing(store: Path, selection: Selection, skipped: Sequence[tuple[str, str]]) -> str:
    if selection:
        return f"No cell of {store} fits {selection.words()}. What there is: omb-py results list --store {store}"
    if skipped:
        return f"None of the {plural(len(skipped), 'file')} of {store} can be read by this omb-py; why stands below."
    return f"The store {store} is empty. To measure something: omb-py allreduce -n 2 --store {store}"

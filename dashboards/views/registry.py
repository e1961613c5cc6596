"""Every view, once: the report's order and sections and the explorer's menu come from :data:`ENTRIES`.

To add a view, write a function from :class:`omb_py.dashboards.views.cells.Cells` to
:class:`omb_py.dashboards.base.view.Shown` and give it an entry here. Other packages add views by entry points of the
group ``omb_py.views`` (:class:`omb_py.dashboards.base.view.ViewEntry`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from urllib.parse import parse_qs

from omb_py.dashboards.base.view import TABS, InReport, Tab, ViewEntry
from omb_py.dashboards.views import anomalies, checks, comparisons, fits, over_size, overview
from omb_py.dashboards.views.cells import Cells
from omb_py.dashboards.views.first_screen import first_screen, first_screen_in_report
from omb_py.plug_ins import PlugIns, load_plug_ins

ENTRY_POINTS = "omb_py.views"
NOTHING: Mapping[Tab, str] = {
    "Compare": "No benchmark was measured at two message sizes here; the other parts have what there is.",
    "Health": "Nothing odd was found: no wrong bytes, no long tails, launches agree, no rank is late.",
    "History": "No history: a cell needs launches on several days. The same command on another day adds them; "
    "omb-py history judges them.",
    "Cell": "No cell is among what is chosen.",
    "Workloads": "No step of a workload was measured: omb-py step.",
}
"""What the report says in a tab without a view."""
_NO_ROWS = "What fits these filters was measured by omb-py guidelines, links or tune, which have views of their own."
_NO_CELL = "No cell of that size is among what is chosen."
_NO_QUANTITY = "Nothing that is chosen has that quantity, and a ratio needs two series: choose another one."
_NO_GPU = "No launch of these cells stored its GPUs: they are stored with -d cuda, by nvidia-ml-py."
_NOT_TUNED = "Nothing among what is chosen was tuned: omb-py tune."
ENTRIES: list[ViewEntry] = [
    ViewEntry(
        "first",
        "Compare",
        "what changed",
        first_screen,
        _NO_CELL,
        inputs=("quantity",),
        needs=("rows", "links", "guidelines"),
        report=InReport(1, above=True, views=first_screen_in_report),
    ),
    ViewEntry(
        "curves",
        "Compare",
        "over message size",
        over_size.over_size,
        _NO_QUANTITY,
        inputs=("quantity",),
        report=InReport(5, views=over_size.over_size_in_report, most=12),
    ),
    ViewEntry(
        "scaling",
        "Compare",
        "over ranks or GPUs",
        over_size.over_count,
        "Nothing here was measured on more than one such number, or it has not that quantity.",
        inputs=("quantity", "count"),
        report=InReport(90, views=over_size.over_count_in_report, most=3),
    ),
    ViewEntry("distribution", "Cell", "spread of a cell", anomalies.distribution, _NO_CELL, inputs=("size",)),
    ViewEntry("trace", "Cell", "calls of a launch", anomalies.trace, _NO_CELL, inputs=("size",)),
    ViewEntry(
        "stragglers", "Health", "late ranks", anomalies.late_ranks, "Nothing here was timed on two ranks or more."
    ),
    ViewEntry(
        "steps",
        "Workloads",
        "step time by layout",
        over_size.step_times,
        "No step of a workload is among what is chosen: omb-py step.",
        report=InReport(40, most=6),
    ),
    ViewEntry(
        "model",
        "Cell",
        "fit and lower bound",
        fits.fits,
        "A fit needs four message sizes.",
        report=InReport(100),
    ),
    ViewEntry(
        "history",
        "History",
        "over time",
        fits.over_time,
        NOTHING["History"],
        inputs=("size",),
        report=InReport(30),
    ),
    ViewEntry(
        "verdicts",
        "Compare",
        "stored verdicts",
        comparisons.verdicts,
        "No comparison of these cells is stored: omb-py compare.",
        report=InReport(10, views=comparisons.verdicts_in_report),
    ),
    ViewEntry(
        "guidelines",
        "Health",
        "guidelines",
        checks.guidelines,
        "No guideline among what is chosen was measured: omb-py guidelines.",
        needs=("guidelines",),
        report=InReport(70),
    ),
    ViewEntry(
        "tuned",
        "Compare",
        "default against tuned",
        over_size.default_and_tuned,
        _NOT_TUNED,
        needs=("trials", "rows"),
        report=InReport(4, most=6, commands=False),
    ),
    ViewEntry(
        "winners",
        "Compare",
        "which setting wins where",
        over_size.winners,
        _NOT_TUNED,
        needs=("trials", "rows"),
        report=InReport(75, commands=False),
    ),
    ViewEntry(
        "pairs",
        "Health",
        "pairs of nodes",
        checks.sweeps,
        "No sweep over all pairs of nodes is among what is chosen: omb-py links.",
        needs=("links",),
        report=InReport(80, most=4),
    ),
    ViewEntry(
        "environment",
        "History",
        "what differs in environment",
        overview.environments,
        "All of this was measured in one environment.",
        report=InReport(120, commands=False),
    ),
    ViewEntry(
        "gpus", "Health", "paths between GPUs", checks.gpu_paths_of, _NO_GPU, report=InReport(118, commands=False)
    ),
    ViewEntry("odd", "Health", report=InReport(20, views=anomalies.odd_cells)),
    ViewEntry("overview", "Cell", report=InReport(50, views=overview.overview)),
]
"""The views of omb-py. The explorer's menu is in this order; its first view is the default."""


@cache
def installed() -> PlugIns[ViewEntry]:
    """The views of installed packages; what cannot be loaded is kept with its reason, so that commands can say it."""
    return load_plug_ins(ENTRY_POINTS, ViewEntry, ours={entry.name: entry for entry in ENTRIES}.get)


def every_entry() -> list[ViewEntry]:
    """The views of omb-py, then those of other packages."""
    return [*ENTRIES, *installed().loaded.values()]


def offered() -> Mapping[str, ViewEntry]:
    """The views of the explorer by name, in the order of its menu."""
    return {entry.name: entry for entry in every_entry() if entry.views is not None}


def offered_in(tab: Tab) -> Mapping[str, ViewEntry]:
    """The views of one tab of the explorer."""
    return {name: entry for name, entry in offered().items() if entry.tab == tab}


def tab_of(link: str) -> Tab:
    """The tab of the view that a query of the explorer opens; the first for a query of another kind."""
    view = parse_qs(link.removeprefix("?")).get("view", [""])[0]
    return next((entry.tab for entry in every_entry() if entry.name == view), TABS[0])


def in_report() -> list[tuple[ViewEntry, InReport]]:
    """The views of the report in its order."""
    placed = [(entry, entry.report) for entry in every_entry() if entry.report is not None]
    return sorted(placed, key=lambda pair: pair[1].place)


def lacks(entry: ViewEntry, cells: Cells) -> str:
    """Why a view can draw nothing of these cells; empty where it can."""
    if any(len(getattr(cells, name)) for name in entry.needs):
        return ""
    return _NO_ROWS if entry.needs == ("rows",) else entry.empty

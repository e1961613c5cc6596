"""Every view, once: the report's order and sections and the explorer's menu come from :data:`ENTRIES`.

To add a view, write a function from :class:`omb_py.dashboards.views.cells.Cells` to
:class:`omb_py.dashboards.base.view.Shown` and give it an entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args
from urllib.parse import parse_qs

from omb_py.dashboards.base.view import Shown
from omb_py.dashboards.views import anomalies, checks, comparisons, fits, over_size, overview
from omb_py.dashboards.views.cells import Cells
from omb_py.dashboards.views.first_screen import first_screen, first_screen_in_report
from omb_py.dashboards.views.over_size import default_and_tuned, winners

Views = Callable[..., Iterable[Shown]]
"""Called with the cells, and by keyword with the inputs of its entry."""
Input = Literal["quantity", "count", "size", "second"]
"""A control of the explorer whose value a view takes: what curves show, over what it is counted, the message size in
bytes, a second selection of cells."""
Tab = Literal["Compare", "Health", "Time", "Cell", "Workloads"]
"""The question that a view answers: who is faster; who is ill; since when; how one cell looks from near; what a
program's step takes."""
TABS: tuple[Tab, ...] = get_args(Tab)
"""All tabs in the order of report and explorer. The view of the first screen stands in the first."""
NOTHING: Mapping[Tab, str] = {
    "Compare": "Nothing here was measured at two message sizes.",
    "Health": "Nothing odd was found: no wrong bytes, no long tails, launches agree, no rank is late.",
    "Time": "No history: a cell needs launches on several days. The same command on another day adds them; "
    "omb-py history judges them.",
    "Cell": "No cell is among what is chosen.",
    "Workloads": "No step of a workload was measured: omb-py step.",
}
"""What the report says in a tab without a view."""


class Need(NamedTuple):
    """A condition on the selected cells."""

    met: Callable[[Cells], bool]
    otherwise: str
    """A sentence for the explorer where there is none of it."""


CELLS = Need(
    lambda cells: len(cells.rows) > 0,
    "What fits these filters was measured by omb-py guidelines, links or tune, which have views of their own.",
)
GUIDELINES = Need(
    lambda cells: len(cells.guidelines) > 0,
    "No guideline among what is chosen was measured: omb-py guidelines.",
)
LINKS = Need(
    lambda cells: len(cells.links) > 0,
    "No sweep over all pairs of nodes is among what is chosen: omb-py links.",
)

TUNED = Need(
    lambda cells: len(cells.trials) + len(cells.rows) > 0,
    "Nothing among what is chosen was tuned: omb-py tune.",
)


@dataclass(frozen=True, slots=True)
class InReport:
    """The place of a view in the report."""

    place: int
    """Its place among the others: the lower, the earlier on the page."""
    above: bool = False
    """True where its tables stand above the tabs."""
    views: Views | None = None
    """The report's function, called with the cells only; the explorer's function when None."""
    most: int | None = None
    """Views that are drawn at most."""
    commands: bool = True
    """False where its cells are not what a reader would measure again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A view of the report, of the explorer, or of both."""

    name: str
    """In the explorer's URL."""
    tab: Tab
    title: str = ""
    """In the explorer's menu."""
    views: Views | None = None
    """The explorer's function; a generator computes no more views than fit on a screen. None: not in the explorer."""
    empty: str = ""
    """The explorer's sentence where the function gives nothing."""
    inputs: tuple[Input, ...] = ()
    needs: Need = CELLS
    report: InReport | None = None


_NO_CELL = "No cell of that size is among what is chosen."
ENTRIES: list[Entry] = [
    Entry(
        "first",
        "Compare",
        "what changed",
        first_screen,
        _NO_CELL,
        inputs=("quantity",),
        report=InReport(1, above=True, views=first_screen_in_report),
    ),
    Entry(
        "curves",
        "Compare",
        "over message size",
        over_size.over_size,
        "Nothing that is chosen has that quantity, and a ratio needs two series: choose another one.",
        inputs=("quantity",),
        report=InReport(5, views=over_size.over_size_in_report, most=12),
    ),
    Entry(
        "beside",
        "Compare",
        "side by side over size",
        comparisons.beside,
        "Nothing here measured the same thing twice: choose more than one library or binding, or a second selection.",
        inputs=("second",),
    ),
    Entry(
        "scaling",
        "Compare",
        "over ranks or GPUs",
        over_size.over_count,
        "Nothing here was measured on more than one such number.",
        inputs=("count",),
        report=InReport(90, most=3),
    ),
    Entry(
        "beside_counts",
        "Compare",
        "side by side over ranks or GPUs",
        comparisons.beside_counts,
        "Nothing here measured the same thing twice on more than one such number.",
        inputs=("count", "second"),
    ),
    Entry("distribution", "Cell", "spread of a cell", anomalies.distribution, _NO_CELL, inputs=("size",)),
    Entry("trace", "Cell", "calls of a launch", anomalies.trace, _NO_CELL, inputs=("size",)),
    Entry("stragglers", "Health", "late ranks", anomalies.late_ranks, "Nothing here was timed on two ranks or more."),
    Entry(
        "steps",
        "Workloads",
        "step time by layout",
        over_size.step_times,
        "No step of a workload is among what is chosen: omb-py step.",
        report=InReport(40, most=6),
    ),
    Entry(
        "model",
        "Cell",
        "fit and lower bound",
        over_size.fits_and_bounds,
        "A fit needs four message sizes, a lower bound latency in the same store.",
        report=InReport(100, views=over_size.fits_and_bounds_in_report, most=4),
    ),
    Entry(
        "history",
        "Time",
        "over time",
        fits.over_time,
        _NO_CELL,
        inputs=("size",),
        report=InReport(30, views=fits.over_time_in_report),
    ),
    Entry(
        "verdicts",
        "Compare",
        "stored verdicts",
        comparisons.verdicts,
        "No comparison of these cells is stored: omb-py compare.",
        report=InReport(10, views=comparisons.verdicts_and_pairs),
    ),
    Entry(
        "guidelines",
        "Health",
        "guidelines",
        checks.guidelines,
        GUIDELINES.otherwise,
        needs=GUIDELINES,
        report=InReport(70),
    ),
    Entry(
        "tuned",
        "Compare",
        "default against tuned",
        default_and_tuned,
        TUNED.otherwise,
        needs=TUNED,
        report=InReport(4, most=6, commands=False),
    ),
    Entry(
        "winners",
        "Compare",
        "which setting wins where",
        winners,
        TUNED.otherwise,
        needs=TUNED,
        report=InReport(75, commands=False),
    ),
    Entry(
        "pairs", "Health", "pairs of nodes", checks.sweeps, LINKS.otherwise, needs=LINKS, report=InReport(80, most=4)
    ),
    Entry(
        "environment",
        "Time",
        "what differs in environment",
        overview.environments,
        "All of this was measured in one environment.",
        report=InReport(120, commands=False),
    ),
    Entry(
        "gpus",
        "Health",
        "paths between GPUs",
        checks.gpu_paths_of,
        "No launch of these cells stored its GPUs: they are stored with -d cuda, by nvidia-ml-py.",
        report=InReport(118, commands=False),
    ),
    Entry("odd", "Health", report=InReport(20, views=anomalies.odd_cells)),
    Entry("overview", "Cell", report=InReport(50, views=overview.overview)),
]
"""The explorer's menu is in this order; its first view is the default."""


def offered() -> Mapping[str, Entry]:
    """The views of the explorer by name, in the order of its menu."""
    return {entry.name: entry for entry in ENTRIES if entry.views is not None}


def offered_in(tab: Tab) -> Mapping[str, Entry]:
    """The views of one tab of the explorer."""
    return {name: entry for name, entry in offered().items() if entry.tab == tab}


def tab_of(link: str) -> Tab:
    """The tab of the view that a query of the explorer opens; the first for a query of another kind."""
    view = parse_qs(link.removeprefix("?")).get("view", [""])[0]
    return next((entry.tab for entry in ENTRIES if entry.name == view), TABS[0])


def in_report() -> list[tuple[Entry, InReport]]:
    """The views of the report in its order."""
    placed = [(entry, entry.report) for entry in ENTRIES if entry.report is not None]
    return sorted(placed, key=lambda pair: pair[1].place)

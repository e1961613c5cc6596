"""A view: a figure, the sentence above it, the table beside it, and the command that measures it again."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, get_args

from omb_py.dashboards.base.theme import Facts, Record, Values, absent, finite

if TYPE_CHECKING:
    import pandas as pd

SEPARATOR = " · "
"""Between the parts of a caption."""


@dataclass(frozen=True, slots=True)
class Item:
    """A line of a list of changes, with its evidence. Texts are plain."""

    kind: str
    """``slower``, ``odd``, ``faster`` or ``changed``."""
    text: str
    evidence: View | None = None
    """The view that shows it in the report."""
    link: str = ""
    """The explorer's query for the view that shows it."""
    about: tuple[str, str, str] = ("", "", "")
    """Of a change with a version: its direction, NEW and BASE."""
    count: int = 1
    """Findings that the line stands for: more than one where it says how many others there are."""


MOST_ITEMS = 12
"""Lines of a list that stand open; the others are one click away."""


@dataclass(frozen=True, slots=True)
class View:
    """One view. All texts but those inside `spec` are plain: whoever puts them into a page escapes them."""

    kind: str
    """``curves``, ``distribution``, …: which of the views it is."""
    title: str
    """The finding, as a sentence."""
    caption: str
    """Launches, samples, synchronisation and days of the cells."""
    spec: Facts | None
    """Plotly's ``{"data": […], "layout": {…}}`` without title and template; None where the table says all."""
    columns: tuple[str, ...]
    """Heads of the table, with units."""
    rows: tuple[tuple[object, ...], ...]
    commands: tuple[str, ...] = ()
    """Command lines that measure this again."""
    notes: tuple[str, ...] = field(default=())
    items: tuple[Item, ...] = field(default=())
    """Lines of a list, for a view that is one."""
    cells: Mapping[int, Values] = field(default_factory=dict)
    """Number of a trace -> what cell each of its points is (:func:`omb_py.dashboards.base.series.cell_ids`): where a
    click on it leads to. Empty text: to none. In rows, where the trace is a map."""
    choice: str = ""
    """The benchmark by which a reader chooses it among the curves of all; empty where it is always shown."""

    @property
    def key(self) -> tuple[str, str]:
        """Kind and title: views with equal keys say the same."""
        return self.kind, self.title

    def with_commands(self, commands: Sequence[str]) -> View:
        """The same view with the commands that repeat it."""
        return replace(self, commands=tuple(commands))

    def noted(self, notes: Iterable[str]) -> View:
        """The same view with more notes."""
        return replace(self, notes=(*self.notes, *notes))


class Shown(NamedTuple):
    """A view of a registry entry with the cells behind it, or a line of text, or both."""

    view: View | None
    rows: pd.DataFrame | None = None
    """The cells that the view shows; None where no command measures them again."""
    odd: str = ""
    """A line for the report's list of what is odd; the view then stands there too."""
    text: str = ""
    """A sentence that opens the view's section of the report."""
    odd_count: int = 1
    """Findings that the line `odd` stands for."""


Views = Callable[..., Iterable[Shown]]
"""Called with the cells (:class:`omb_py.dashboards.views.cells.Cells`), and by keyword with the inputs of its entry."""
Input = Literal["quantity", "count", "size"]
"""A control of the explorer whose value a view takes: what curves show, over what it is counted, the message size in
bytes."""
Rows = Literal["rows", "guidelines", "links", "trials"]
"""A field of :class:`omb_py.dashboards.views.cells.Cells` with cells."""
Tab = Literal["Compare", "Health", "History", "Cell", "Workloads"]
"""The question that a view answers: who is faster; who is ill; since when; how one cell looks from near; what a
program's step takes."""
TABS: tuple[Tab, ...] = get_args(Tab)
"""All tabs in the order of report and explorer. The view of the first screen stands in the first."""


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
class ViewEntry:
    """A view of the report, of the explorer, or of both.

    A package adds one by an entry point of the group ``omb_py.views`` that has the name of the view::

        # my_views.py; in pyproject.toml: [project.entry-points."omb_py.views"] counts = "my_views:COUNTS"
        from omb_py.plugin import InReport, Shown, View, ViewEntry, table

        def counts(cells):
            for benchmark, rows in cells.rows.groupby("benchmark", observed=True):
                samples = rows.groupby("size_bytes")["iterations"].sum()
                numbers = table(("size, B", "samples"), samples.items())
                yield Shown(View("counts", f"{benchmark}: {samples.sum()} samples", "", None, **numbers), rows)

        COUNTS = ViewEntry("counts", "Cell", "number of samples", counts, "No cell.", report=InReport(61))
    """

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
    needs: tuple[Rows, ...] = ("rows",)
    """It is drawn where one of these has a cell."""
    report: InReport | None = None


class TableFields(TypedDict):
    """The fields of a :class:`View` that are its table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def table(columns: Sequence[str], rows: Iterable[Values]) -> TableFields:
    """The two fields of a :class:`View` that are its table."""
    return {"columns": tuple(columns), "rows": tuple(tuple(row) for row in rows)}


def frame_table(frame: pd.DataFrame, heads: Facts, texts: Collection[str]) -> TableFields:
    """The columns of `heads` that a frame has, under these heads; those in `texts` are no numbers."""
    names = [name for name in heads if name in frame]

    def shown(name: str, value: object) -> object:
        return finite(value) if name not in texts else "" if absent(value) else str(value)

    rows = frame[names].itertuples(index=False)
    return table([heads[n] for n in names], [[shown(n, v) for n, v in zip(names, row, strict=True)] for row in rows])


def plural(count: int, what: str) -> str:
    """``1 launch``, ``3 launches``."""
    ending = "es" if what.endswith(("ch", "s", "x")) else "s"
    return f"{count:,} {what if count == 1 else what + ending}".replace(",", " ")


def records(frame: pd.DataFrame) -> Iterable[Record]:
    """The rows, columns as attributes."""
    # pandas makes a new class for each frame, which takes longer than the twenty rows of a figure
    return map(_record(tuple(frame.columns))._make, zip(*(frame[name].tolist() for name in frame.columns), strict=True))


@cache
def _record(names: tuple[str, ...]) -> Any:
    return namedtuple("_record", names, rename=True)

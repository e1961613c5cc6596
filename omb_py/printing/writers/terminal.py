"""Write a document as text for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderResult
from rich.table import Table
from rich.text import Text

from omb_py.results.document import Document, TextTable, Tone, printable, tone

_STYLES: Mapping[Tone | None, str] = {
    "bad": "bold red",
    "good": "bold green",
    "open": "yellow",
    "lost": "magenta",
    "dim": "dim",
    None: "",
}
_PIPE_WIDTH = 1000
_FOLDED = 28
"""Width of a folded column."""
_SHORT = 10
"""Width that one has at least."""


def to_text(document: Document, console: Console | None = None) -> str:
    """The text of a document for a terminal.

    Args:
        document: the document.
        console: sets width and colours; by default :func:`stdout_console`.
    """
    console = console or stdout_console()
    with console.capture() as tables:
        for table in document.tables:
            if table.in_terminal:
                console.print(_fit_table(table, console), crop=False)
    picture = _lines([document.picture] if document.picture else [])
    first, last = ([document.headline], []) if document.opening else ([], [document.headline])
    end = _lines([*document.problems, *last, *document.notes])
    return _lines([*first, *document.facts]) + tables.get() + picture + end


@dataclass(frozen=True, slots=True)
class _Uncut:
    """A table of its whole width: a terminal that is narrower breaks its lines, and no value loses its end."""

    table: Table
    width: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self.table, options.update(width=self.width))


def _fit_table(table: TextTable, console: Console) -> Group:
    """The table without the spare columns for which the terminal is too narrow; a line below names them."""
    spare = [head for head in table.spare if head in table.heads]
    folding = table.folding if console.width < _PIPE_WIDTH else ()
    return fitted(lambda without: rich_table(table, True, without, folding), spare, console, "markdown")


def fitted(
    draw: Callable[[Collection[str]], Table],
    spare: Sequence[str],
    console: Console,
    form: str,
    folded: Collection[str] = (),
) -> Group:
    """A table that fits into the console, if leaving out spare columns makes it fit. Print it with ``crop=False``.

    Args:
        draw: makes the table without some columns, by their heads.
        spare: heads of the columns that may go, the first one first.
        console: where it is to be printed.
        form: the value of ``--format`` that has all columns, for the line that names what was left out.
        folded: those of the spare columns that stay while the table fits with its texts folded.
    """

    def width_of(table: Table, folds: bool) -> int:
        for column in table.columns:
            column.max_width = _SHORT if folds and not column.no_wrap else column.max_width
        return console.measure(table, options=console.options.update(width=_PIPE_WIDTH)).maximum

    left_out: list[str] = []
    drawn = draw(left_out)
    for head in spare:
        narrower = draw([*left_out, head])
        if width_of(draw(left_out), head in folded) > console.width and len(narrower.columns) < len(drawn.columns):
            left_out.append(head)
            drawn = narrower
    folds, width = not all(column.no_wrap for column in drawn.columns), width_of(drawn, False)
    shown = drawn if folds or width <= console.width else _Uncut(drawn, width)
    if not left_out:
        return Group(shown)
    return Group(shown, Text(f"left out of {console.width} columns: {', '.join(left_out)} (--format {form} has all)"))


def stdout_console() -> Console:
    """A console with the width of the terminal. In a pipe no line is folded, so that grep and awk see whole rows."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def rich_table(
    table: TextTable, drop_empty: bool = False, without: Collection[str] = (), folding: Collection[str] = ()
) -> Table:
    """A table as rich draws it.

    Args:
        table: the texts.
        drop_empty: whether to leave out columns that are empty in every row.
        without: heads of columns to leave out.
        folding: heads of columns whose texts are folded.
    """
    filled = [k for k in range(len(table.heads)) if not drop_empty or any(row[k] for row in table.rows)]
    shown = [k for k in filled if table.heads[k] not in without]
    drawn = Table(box=box.SIMPLE_HEAD)
    for k in shown:
        head = table.heads[k]
        side: JustifyMethod = "left" if head in table.left else "right"
        width = _FOLDED if head in folding else None
        drawn.add_column(printable(head), justify=side, no_wrap=width is None, max_width=width)
    for number, row in enumerate(table.rows):
        if number and table.groups and table.groups[number] != table.groups[number - 1]:
            drawn.add_section()
        drawn.add_row(*(Text(printable(row[k]), style=_STYLES[tone(row[k])]) for k in shown))
    return drawn


def _lines(texts: Sequence[str]) -> str:
    return "".join(f"{printable(text)}\n" for text in texts)

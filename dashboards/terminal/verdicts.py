"""Verdicts for a terminal: pure functions from a report to a :class:`rich.table.Table`."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from omb_py.results.accept.report import Verdicts
from omb_py.results.compare.report import Report
from omb_py.results.formats import accept_forms, guideline_forms
from omb_py.results.formats.compare_forms import HEADS, grouped

_STYLES = {
    "SLOWER": "bold red",
    "FASTER": "bold green",
    "UNCLEAR": "yellow",
    "NOT COMPARABLE": "magenta",
    "VIOLATED": "bold red",
    "WRONG": "bold red",
    "FAIL": "bold red",
    "ERROR": "magenta",
    "MARGINAL": "yellow",
}
_LEFT = ("cell", "of", "verdict", "tail", "tail verdict", "guideline", "criterion", "source", "bound", "note")


def verdict_table(report: Report) -> Table:
    """A line a cell, a group a benchmark; columns that are empty everywhere are left out."""
    return _table(HEADS, grouped(report))


def accepted_table(found: Verdicts) -> Table:
    """A line a verdict of an acceptance, in the suite's order."""
    return _table(accept_forms.HEADS, [("", row) for row in accept_forms.table(found)])


def guideline_table(report: guideline_forms.Report) -> Table:
    """A line a cell."""
    return _table(guideline_forms.HEADS, [("", row) for row in guideline_forms.table(report)])


def _table(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> Table:
    """A table of (group, row), columns that are empty everywhere left out."""
    shown = [k for k, head in enumerate(heads) if any(row[k] for _, row in rows)]
    made = Table(box=box.SIMPLE_HEAD)
    for k in shown:
        made.add_column(heads[k], justify="left" if heads[k] in _LEFT else "right", no_wrap=True)
    for number, (group, row) in enumerate(rows):
        if number and group != rows[number - 1][0]:
            made.add_section()
        made.add_row(*(Text(row[k], style=_STYLES.get(row[k].split(",")[0], "")) for k in shown))
    return made

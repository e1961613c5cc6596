"""Verdicts for a terminal: pure functions from a report to a :class:`rich.table.Table`."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from omb_py.results import accepted_forms
from omb_py.results.accepted import Verdicts
from omb_py.results.report import Report
from omb_py.results.report_forms import HEADS, table

_STYLES = {
    "SLOWER": "bold red", "FASTER": "bold green", "UNCLEAR": "yellow", "NOT COMPARABLE": "magenta",
    "FAIL": "bold red", "ERROR": "magenta", "MARGINAL": "yellow",
}  # fmt: skip
_LEFT = ("cell", "verdict", "tail", "tail verdict", "criterion", "source", "bound", "note")


def verdict_table(report: Report) -> Table:
    """A line a cell; columns that are empty everywhere are left out."""
    return _table(HEADS, table(report))


def accepted_table(found: Verdicts) -> Table:
    """A line a verdict of an acceptance, in the suite's order."""
    return _table(accepted_forms.HEADS, accepted_forms.table(found))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    shown = [k for k in range(len(heads)) if any(row[k] for row in rows)]
    made = Table(box=box.SIMPLE_HEAD)
    for k in shown:
        made.add_column(heads[k], justify="left" if heads[k] in _LEFT else "right", no_wrap=True)
    for row in rows:
        made.add_row(*(Text(row[k], style=_STYLES.get(row[k].split(",")[0], "")) for k in shown))
    return made

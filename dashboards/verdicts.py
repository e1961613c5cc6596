"""The verdicts of a comparison for a terminal: a pure function from a report to a :class:`rich.table.Table`."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from omb_py.results.report import Report
from omb_py.results.report_forms import HEADS, table

_STYLES = {"SLOWER": "bold red", "FASTER": "bold green", "UNCLEAR": "yellow", "NOT COMPARABLE": "magenta"}
_LEFT = ("cell", "verdict", "tail", "tail verdict")


def verdict_table(report: Report) -> Table:
    """A line a cell; columns that are empty everywhere are left out."""
    rows = table(report)
    shown = [k for k, head in enumerate(HEADS) if any(row[k] for row in rows)]
    made = Table(box=box.SIMPLE_HEAD)
    for k in shown:
        made.add_column(HEADS[k], justify="left" if HEADS[k] in _LEFT else "right", no_wrap=True)
    for row in rows:
        made.add_row(*(Text(row[k], style=_STYLES.get(row[k].split(",")[0], "")) for k in shown))
    return made

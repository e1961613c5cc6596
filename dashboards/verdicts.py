"""The verdicts of a comparison for a terminal: a pure function from a report to a :class:`rich.table.Table`."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from omb_py.results.report import Report
from omb_py.results.report_forms import HEADS, grouped

_STYLES = {"SLOWER": "bold red", "FASTER": "bold green", "UNCLEAR": "yellow", "NOT COMPARABLE": "magenta"}
_LEFT = ("cell", "of", "verdict", "tail", "tail verdict")


def verdict_table(report: Report) -> Table:
    """A line a cell, a group a benchmark; columns that are empty everywhere are left out."""
    rows = grouped(report)
    shown = [k for k, head in enumerate(HEADS) if any(row[k] for _, row in rows)]
    made = Table(box=box.SIMPLE_HEAD)
    for k in shown:
        made.add_column(HEADS[k], justify="left" if HEADS[k] in _LEFT else "right", no_wrap=True)
    for number, (benchmark, row) in enumerate(rows):
        if number and benchmark != rows[number - 1][0]:
            made.add_section()
        made.add_row(*(Text(row[k], style=_STYLES.get(row[k].split(",")[0], "")) for k in shown))
    return made

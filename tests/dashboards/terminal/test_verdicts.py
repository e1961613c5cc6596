from __future__ import annotations

import io

from rich.console import Console

from omb_py.dashboards.terminal.verdicts import verdict_table
from omb_py.results.compare.judge import Launched, Round, Rules, judge
from omb_py.results.compare.match import Cell, Incomparable, Matched
from omb_py.results.compare.report import Report
from omb_py.results.compare.select_launches import Launches

ROW = {"benchmark": "bcast", "size_bytes": 2048, "backend": "mpi"}


def measured(ratio: float) -> Round:
    times = (10.0, 10.01, 10.02, 9.99)
    return Round(
        tuple(Launched(t, t, t) for t in times), tuple(Launched(t * ratio, t, t) for t in reversed(times)), paired=True
    )


def text(report: Report) -> list[list[str]]:
    console = Console(width=300, record=True, file=io.StringIO())
    console.print(verdict_table(report))
    return [line.split("  ") for line in console.export_text().splitlines() if line.strip()]


def report(matched: Matched) -> Report:
    side = Launches("x", [], [])
    return Report("compare", side, side, matched, judge([cell.rounds for cell in matched.cells], Rules()), Rules())


def test_a_line_a_cell_with_both_verdicts() -> None:
    cells = [Cell(ROW, ROW, (measured(1.1),)), Cell(ROW, ROW, (measured(1.0),), limited=True)]
    lines = ["".join(line) for line in text(report(Matched(cells)))]
    assert "bcast 2 KiB" in lines[2] and "SLOWER" in lines[2] and "1.100" in lines[2]
    assert "bcast 2 KiB*" in lines[3] and lines[3].count("SAME") == 2


def test_what_is_not_comparable_is_a_line_too() -> None:
    lines = ["".join(line) for line in text(report(Matched(incomparable=[Incomparable(ROW, ROW, ("ranks",))])))]
    assert "NOT COMPARABLE" in lines[-1]
    assert "ratio" not in lines[0], "columns that are empty everywhere are left out"

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd
import pytest

from omb_py.dashboards.base.reading import StoreSelection, parse
from omb_py.dashboards.figures import comparison
from omb_py.dashboards.report.build import read_cells, report
from omb_py.dashboards.report.html_page import page
from omb_py.dashboards.views import comparisons
from omb_py.results.compare.false_alarm_rate import keep
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.report import AA, CompareReport, headline, report_of
from omb_py.results.compare.select_launches import read_side
from tests.dashboards.stores import write


def compared(store: Path, kind: str = "compare", run: str = "r1") -> CompareReport:
    sides = [read_side(f"library={name}", store) for name in ("MPICH", "Open MPI")]
    made = report_of(sides[0], sides[1], CompareRules(), kind)
    made.run_id = run
    keep(made, store)
    return made


@pytest.fixture
def store(tmp_path: Path, frame, cell) -> Path:
    """Two libraries in turn, eight launches each; Open MPI takes twice as long at 64 KiB and as long elsewhere."""
    rows = []
    for library, size, launch in itertools.product(("MPICH", "Open MPI"), sorted(set(frame["size_bytes"])), range(8)):
        factor = 2.0 if (library, size) == ("Open MPI", 65536) else 1.0
        number = 2 * launch + (library == "Open MPI")
        rows.append(cell((1 + size / 1000) * factor, number, library=library, size_bytes=int(size)))
    return write(tmp_path / "s", pd.DataFrame(rows).astype(frame.dtypes.to_dict()))


@pytest.mark.slow
def test_the_board_holds_what_compare_said(store: Path) -> None:
    said = compared(store)
    (one,) = comparisons.read_stored(read_cells(store, StoreSelection(), []))
    assert comparison.headline(one.verdicts) == headline(said)
    by_cell = one.verdicts.set_index("cell")
    for cell, answers in zip(said.matched.cells, said.judged, strict=True):
        row = by_cell[by_cell["comparability_key"] == cell.base["comparability_key"]].iloc[0]
        median = answers.answers["median"]
        assert row["verdict"] == median.verdict
        assert (row["ratio"], row["low"], row["high"]) == pytest.approx((median.ratio, median.low, median.high))
        assert (row["base_us"], row["launches_new"]) == (pytest.approx(median.base_us), 8)
    assert list(one.verdicts["verdict"]).count("SLOWER") == 1


@pytest.mark.slow
def test_a_report_opens_on_the_verdicts(store: Path) -> None:
    compared(store)
    compared(store, AA, "r0")
    made = report(store, StoreSelection())
    compare = made.tabs["Compare"]
    verdicts = [view for view in compare.views if view.kind in ("board", "environment")]
    assert [view.kind for view in verdicts] == ["board", "environment"]
    assert not compare.texts and verdicts[0].title.startswith("Open MPI 5.0.2 against MPICH 5.0.2: 1 slower")
    assert "false alarms on this machine: 1 of 3 cells, in 1 of 1 reports" in verdicts[0].caption
    assert verdicts[0].commands == ("omb-py compare r1  # the same launches, judged again",)
    assert verdicts[1].columns == ("fact", "MPICH 5.0.2", "Open MPI 5.0.2")
    assert ("library", "MPICH 5.0.2", "Open MPI 5.0.2") in verdicts[1].rows
    assert "Open MPI 5.0.2 against MPICH 5.0.2" in page(made)


@pytest.mark.slow
def test_cells_that_the_filters_leave_out_are_no_verdicts(store: Path) -> None:
    compared(store)
    made = report(store, parse(["size_bytes=8"]))
    assert [len(view.rows) for view in made.views if view.kind == "board"] == [1]


def test_a_tail_that_decides_is_shown_as_such() -> None:
    median = {"verdict": "SAME", "ratio": 1.0, "low": 0.99, "high": 1.01, "statistic": "median", "launches": [5, 5]}
    tail = {**median, "verdict": "SLOWER", "ratio": 8.0, "statistic": "p99", "detectable": 1.2}
    cell = {"benchmark": "bw", "size_bytes": 8, "verdict": "SLOWER", "median": median, "tail": tail}
    other = {"benchmark": "bw", "size_bytes": 16, "verdict": "NOT COMPARABLE", "differing": ["ranks"]}
    made = comparisons.verdict_table({"cells": [cell, other]})
    assert list(made["cell"]) == ["bw 8 B, p99", "bw 16 B"]
    assert made["ratio"].iloc[0] == 8.0 and made["detectable"].iloc[0] == pytest.approx(0.2)
    assert len(comparison.board(made).spec["data"]) == 1


@pytest.mark.slow
def test_a_file_that_is_no_report_is_named(store: Path) -> None:
    compared(store)
    (store / ".reports" / "x.report").write_text('{"kind": "compare"}')
    made = report(store, StoreSelection())
    assert [Path(path).name for path, _ in made.skipped] == ["x.report"]
    assert made.skipped[0][1].startswith("not a report of omb-py compare") and "board" in {
        view.kind for view in made.views
    }

"""Launches of a tuning in report and explorer: which setting wins where."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from omb_py.cli import main
from omb_py.dashboards.base.selection import parse
from omb_py.dashboards.figures.winners import winners
from omb_py.dashboards.report.build import report
from omb_py.dashboards.views.tuning import best_of

LINE = (
    "tune allreduce --backend mock -n 2,4 -m 64,64K -i 4 -x 0 --quiet --seed 1 --budget 1m --delta 90% "
    "--mock algorithm=tree:2us:1ns,algorithm=ring:10us:0.1ns --candidate ring=MOCK_COLL_ALGORITHM=ring"
)


def test_a_tuned_store_has_a_map_of_winners(tmp_path: Path) -> None:
    assert main([*LINE.split(), "--store", str(tmp_path), "--folder", str(tmp_path / "tuned")]) == 0
    (view,) = [v for v in report(tmp_path, parse([])).views if v.kind == "winners"]
    assert view.title == "allreduce, mock 1.0: another setting is the fastest at 2 of 4 sizes"
    assert [row[:3] for row in view.rows] == [
        (2, "64 B", "default"),
        (2, "64 KiB", "ring"),
        (4, "64 B", "default"),
        (4, "64 KiB", "ring"),
    ]
    assert view.spec is not None
    assert [trace["name"] for trace in view.spec["data"]] == ["default", "ring"]


def test_the_median_of_launches_decides_and_a_missing_default_has_no_ratio() -> None:
    rows = pd.DataFrame(
        {
            "ranks": [2] * 6,
            "size_bytes": [8] * 5 + [64],
            "setting": ["default", "default", "default", "ring", "ring", "ring"],
            "median_us": [4.0, 1.0, 4.0, 2.0, 3.0, 5.0],
        }
    )
    best = best_of(rows)
    assert list(best["setting"]) == ["ring", "ring"]
    assert best["ratio"].iloc[0] == 2.5 / 4
    assert best["ratio"].isna().iloc[1]
    view = winners(best, "bcast")
    assert view.rows[1][4] is None
    assert view.title == "bcast: another setting is the fastest at 2 of 2 sizes"

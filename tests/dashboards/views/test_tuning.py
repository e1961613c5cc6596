"""Launches of a tuning in report and explorer: default against tuned, which setting wins, no lines of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.cli import main
from omb_py.dashboards.base.reading import parse, read_prepared
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import State, views
from omb_py.dashboards.figures.maps import winners
from omb_py.dashboards.report.build import read_cells, report
from omb_py.dashboards.views import over_size
from omb_py.dashboards.views.cells import COLUMNS
from tests.dashboards.stores import write

LINE = (
    "tune allreduce --backend mock -n 2,4 -m 64,64K -i 4 -x 0 --quiet --seed 1 --budget 1m --delta 90% "
    "--mock algorithm=tree:2us:1ns,algorithm=ring:10us:0.1ns --candidate ring=MOCK_COLL_ALGORITHM=ring"
)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    assert main([*LINE.split(), "--store", str(folder / "s"), "--folder", str(folder / "tuned")]) == 0
    return folder / "s"


def shown(store: Path, kind: str) -> Any:
    (view,) = [v for v in report(store, parse([])).views if v.kind == kind]
    return view


@pytest.mark.slow
def test_a_tuned_store_has_a_map_of_winners(tuned: Path) -> None:
    view = shown(tuned, "winners")
    assert view.title == "allreduce, mock 1.0: another setting is the fastest at 2 of 4 sizes"
    assert [row[:3] for row in view.rows] == [
        (2, "64 B", "default"),
        (2, "64 KiB", "ring"),
        (4, "64 B", "default"),
        (4, "64 KiB", "ring"),
    ]
    assert view.spec is not None
    assert [trace["name"] for trace in view.spec["data"]] == ["default", "ring"]
    assert [trace["z"] for trace in view.spec["data"]] == [[[1, None], [1, None]], [[None, 1], [None, 1]]]


@pytest.mark.slow
def test_default_and_tuned_are_two_lines_from_the_proof(tuned: Path) -> None:
    view = shown(tuned, "tuned")
    assert view.title.startswith("allreduce, mock 1.0, 4 ranks: tuned (ring) is fastest at every size that several")
    assert view.columns == ("ranks", "size", "default µs", "tuned (ring) µs")
    table = {row[:2]: row[2:] for row in view.rows}
    assert table["4 ranks", "64 B"][1] is None, "nothing was found there, so nothing was proved"
    default, fastest = table["4 ranks", "64 KiB"]
    assert fastest < 0.5 * default
    (line,) = [t for t in view.spec["data"] if t["name"] == "tuned (ring)" and t.get("xaxis", "x") == "x"]
    assert line["x"] == [64, 65536] and line["y"][0] is None, "no line leads to a size where the default stays"
    assert all(line.startswith("omb-py compare ") for line in view.commands) and view.commands
    (explored,), _ = views(Data(tuned), State("tuned"))
    assert (explored.title, explored.rows) == (view.title, view.rows)


@pytest.mark.slow
def test_what_a_tuning_tried_is_no_line_among_the_others(tuned: Path) -> None:
    cells = read_cells(tuned, parse([]), [])
    assert set(cells.rows["tags"]) == {"", "tune_proof=ring"}
    assert set(cells.trials["tags"]) == {"tune_setting=ring"}
    found, _ = views(Data(tuned), State("curves"))
    for view in found:
        names = [trace["name"] for trace in view.spec["data"] if trace["mode"] == "lines+markers"]
        assert names == ["mock 1.0", "tuned (ring)"], view.title
    words = " ".join(f"{view.title} {view.caption}" for view in report(tuned, parse([])).views)
    assert "tune_" not in words and "compare_side" not in words


@pytest.mark.slow
def test_a_search_alone_says_that_nothing_proves_it(cell, tmp_path: Path) -> None:
    at = {"default": 4.0, "ring": 2.0, "tree": 3.0}
    rows = [
        cell(time, 10 * number + launch, tags={"tune_setting": name, "tune_block": str(launch)}, size_bytes=size)
        for number, (name, time) in enumerate(at.items())
        for launch in range(2)
        for size in (8, 64)
    ]
    (view,) = [v for v in report(write(tmp_path, pd.DataFrame(rows)), parse([])).views if v.kind == "tuned"]
    assert view.columns[2:] == ("default µs", "fastest in the search (ring) µs")
    assert "only the proof of omb-py tune" in view.notes[0] and not view.commands


def test_launches_of_the_default_are_the_library_as_it_is(cell, tmp_path: Path) -> None:
    tags = [{}, {"tune_setting": "default", "tune_block": "1"}, {"tune_proof": "default", "compare_side": "BASE"}]
    rows = [cell(2.0, launch, tags=own) for launch, own in enumerate(tags)]
    frame = read_prepared(write(tmp_path, pd.DataFrame(rows)), COLUMNS)
    assert list(frame["tags"].unique()) == [""]


def test_the_median_of_launches_decides_and_a_missing_default_has_no_ratio() -> None:
    rows = pd.DataFrame(
        {
            "ranks": [2] * 6,
            "size_bytes": [8] * 5 + [64],
            "setting": ["default", "default", "default", "ring", "ring", "ring"],
            "median_us": [4.0, 1.0, 4.0, 2.0, 3.0, 5.0],
        }
    )
    best = over_size.best_of(rows)
    assert list(best["setting"]) == ["ring", "ring"]
    assert best["ratio"].iloc[0] == 2.5 / 4
    assert best["ratio"].isna().iloc[1]
    view = winners(best, "bcast")
    assert view.rows[1][4] is None
    assert view.title == "bcast: another setting is the fastest at 2 of 2 sizes"

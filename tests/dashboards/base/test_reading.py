"""A store read at once is what its rows are one by one; medians of series."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.dashboards.base import series
from omb_py.dashboards.base.reading import parse, read_prepared
from omb_py.dashboards.views.cells import COLUMNS
from omb_py.results.store.read import load
from tests.dashboards.stores import write

TAGS: list[dict[str, str] | None] = [
    {},
    None,
    {"rack": "a"},
    {"compare_side": "BASE", "rack": "b=c, d"},
    {"compare_side": "NEW", "rack": ""},
    {"suite_cell": "7", "user": "ü"},
]


@pytest.fixture
def tagged(tmp_path: Path, frame: pd.DataFrame) -> Path:
    """Launches with tags of every kind; in one run the sides differ in their tag alone."""
    rows = frame.assign(
        tags=[TAGS[number % len(TAGS)] for number in range(len(frame))],
        parameters=[{"root": "0", "a": "b"} if number % 2 else {} for number in range(len(frame))],
        run_id=[("r", "q")[number % 4 > 1] for number in range(len(frame))],
    )
    other = rows.head(2).assign(source="OSU", median_us=None, launch_id="other")
    return write(tmp_path / "s", pd.concat([rows, other]))


def plain(rows: pd.DataFrame) -> list[dict[str, Any]]:
    texts = rows.astype({name: object for name in rows if rows[name].dtype.name == "category"})
    return [{k: None if pd.isna(v) else v for k, v in row.items()} for row in texts.to_dict("records")]


@pytest.mark.slow
def test_it_is_what_the_rows_are_one_by_one(tagged: Path) -> None:
    one_by_one = series.prepared(load(tagged, columns=COLUMNS))
    at_once = read_prepared(tagged, COLUMNS)
    assert plain(at_once[[*one_by_one.columns]]) == plain(one_by_one)
    assert {"compare_side=BASE, rack=b=c, d", "rack=a", "", "user=ü"} <= {*at_once["tags"]}
    texts = [name for name in at_once if at_once[name].dtype in ("object", "str")]
    assert texts == [], "every text is a category"
    for name in [name for name in at_once if at_once[name].dtype.name == "category"]:
        known = list(at_once[name].cat.categories)
        assert known == sorted(known), "groups come in order of their names"


@pytest.mark.slow
def test_filters_and_an_empty_store(tagged: Path, tmp_path: Path) -> None:
    assert set(read_prepared(tagged, COLUMNS, selection=parse(["library=MPICH"]))["library"]) == {"MPICH"}
    whole = load(tagged, columns=COLUMNS)
    chosen = read_prepared(tagged, COLUMNS, selection=parse(["tags.suite_cell=7", "tags.user=ü"]))
    assert len(chosen) == sum(tags == TAGS[-1] for tags in whole["tags"]) > 0, "also by tags that the text leaves out"
    (day,) = whole["date"].unique()
    for words, count in ((f"{day}..", len(whole)), (f"..{day}", len(whole)), ("..2001-01-01", 0), ("2999-01-01..", 0)):
        assert len(read_prepared(tagged, COLUMNS, selection=parse([f"date={words}"]))) == count
    (tmp_path / "empty").mkdir()
    none = read_prepared(tmp_path / "empty", COLUMNS)
    assert len(none) == 0 and {*COLUMNS} <= {*none.columns}


def test_medians_taken_together_are_those_of_each_series(cell: Callable[..., dict[str, Any]]) -> None:
    rows = [
        cell(at * size, launch, library=library, size_bytes=size)
        for library, at in (("MPICH", 2.0), ("Open MPI", 3.0), ("Intel MPI", 1.0))
        for size in (8, 64, 512)
        for launch in range(3)
        if (library, size) != ("Open MPI", 64)
    ]
    frame = series.compact(series.prepared(pd.DataFrame(rows)))
    alone, together = series.lines(frame), series.lines(frame)
    series.compute_medians(together)
    assert [len(one.over) for one in together] == [3, 3, 2]
    for one, other in zip(alone, together, strict=True):
        assert "over" not in one.__dict__ and "over" in other.__dict__
        pd.testing.assert_frame_equal(one.over, other.over, check_dtype=False)
    series.compute_medians([])

from __future__ import annotations

import pandas as pd

from omb_py.dashboards.figures.launches import history


def test_history_has_a_line_where_the_environment_changed() -> None:
    points = pd.DataFrame(
        {
            "started_at": pd.to_datetime(["2026-01-02", "2026-01-01", "2026-01-03"]),
            "median_us": [2.0, 1.0, 3.0],
            "environment_key": ["a", "a", "b"],
            "level_us": [1.5, 1.5, 3.0],
        }
    )
    view = history(points, "bw 8 B")
    assert view.title == "bw 8 B: 1 step"
    assert view.spec["data"][0]["y"] == [1.0, 2.0, 3.0] and view.spec["data"][1]["y"] == [1.5, 1.5, 3.0]
    (line,) = view.spec["layout"]["shapes"]
    assert line["x0"].startswith("2026-01-03")
    view.figure  # noqa: B018


def test_imported_launches_have_no_environment_that_could_change() -> None:
    points = pd.DataFrame(
        {
            "started_at": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"]),
            "median_us": [2.0, 1.0, 3.0],
            "environment_key": [None, float("nan"), "b"],
        }
    )
    view = history(points, "bw 8 B")
    assert "0 changes of the environment" in view.caption
    assert not view.spec["layout"]["shapes"] and not view.notes
    assert [row[-1] for row in view.rows] == ["", "", "b"]

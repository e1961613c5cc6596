from __future__ import annotations

import pytest

from omb_py.dashboards.figures import comparison


def test_the_board_is_sorted_by_severity_and_counts(verdict_table) -> None:
    view = comparison.board(verdict_table)
    assert view.title == "1 slower, 1 faster, 1 same, 1 unclear"
    assert [row[0] for row in view.rows] == ["allreduce 1 KiB", "bw <b>1 MiB</b>", "bcast 8 B", "allreduce 8 B"]
    slower = next(t for t in view.spec["data"] if t["name"] == "slower")
    assert slower["x"] == [1.25]
    assert (slower["error_x"]["array"], slower["error_x"]["arrayminus"]) == (
        [pytest.approx(0.05)],
        [pytest.approx(0.05)],
    )
    unclear = next(t for t in view.spec["data"] if t["name"] == "unclear")
    assert unclear["y"] == ["bw &lt;b&gt;1 MiB&lt;/b&gt;"]


def test_the_line_of_ratios_joins_medians_only(verdict_table) -> None:
    """The third cell was decided by its p99, eight times the other's; its median is as it was."""
    rows = verdict_table.assign(ratio=[1.0, 1.25, 8.0, 0.8], median_ratio=[1.0, 1.25, 1.04, 0.8], series="x")
    line = next(t for t in comparison.ratio(rows, "new against old").spec["data"] if t["mode"] == "lines")
    assert sorted(line["y"]) == [0.8, 1.0, 1.04, 1.25]

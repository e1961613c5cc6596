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

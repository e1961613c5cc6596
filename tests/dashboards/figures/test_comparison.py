from __future__ import annotations

import pandas as pd
import pytest

from omb_py.dashboards.base import series
from omb_py.dashboards.changes import sides
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


def test_two_selections_beside_each_other(frame) -> None:
    rows = series.prepared(frame)
    (pair,) = sides.pairs(sides.sides(rows))
    (base, new), (a, b) = sides.rows_of(pair, rows), (pair.base.name, pair.new.name)
    assert (a, b) == ("MPICH 5.0.2", "Open MPI 5.0.2")
    view = comparison.beside(base, new, (a, b), "allreduce")
    assert view is not None
    assert view.title == "allreduce: Open MPI 5.0.2 took up to 2× the time of MPICH 5.0.2, at 64 KiB"
    assert view.spec["data"][0]["y"] == pytest.approx([1, 1, 2], rel=1e-2)
    assert view.spec["data"][0]["marker"]["symbol"][-1] == "circle"
    turned = comparison.beside(new, base, (b, a), "allreduce")
    assert turned is not None and turned.title == view.title and turned.rows == view.rows


def test_what_measured_other_things_is_not_put_side_by_side(frame) -> None:
    other = frame.assign(comparability_key="other")
    assert comparison.beside(frame, other, ("a", "b"), "x") is None
    mixed = pd.concat([frame[frame["library"] == "MPICH"], other[other["library"] == "Open MPI"]])
    assert sides.pairs(sides.sides(series.prepared(mixed))) == []


def times(rows: pd.DataFrame) -> dict[str, float]:
    medians = rows.groupby("comparability_key")["median_us"].median().reset_index()
    several = medians.assign(library=rows["library"].iloc[0], library_version="5")
    (known,) = sides.times_of(sides.sides(several), several)
    return known


def test_how_far_apart_two_sides_are_is_what_their_figure_says(frame) -> None:
    base, new = (frame[frame["library"] == name] for name in ("MPICH", "Open MPI"))
    assert comparison.factor(times(base), times(new)) == pytest.approx(2.0, rel=1e-3)
    other = new.assign(comparability_key="another")
    assert comparison.factor(times(base), times(other)) is None


@pytest.mark.parametrize(("first", "second"), [(1.02, 1.04), (1.01, 1.03), (2.0, 3.0)])
def test_ratios_that_mirror_each_other_are_drawn(frame, first: float, second: float) -> None:
    rows = frame[(frame["library"] == "MPICH") & frame["size_bytes"].isin(sorted(frame["size_bytes"].unique())[:2])]
    sizes = sorted(rows["size_bytes"].unique())
    one = rows.assign(median_us=rows["size_bytes"].map(dict(zip(sizes, (first, second), strict=True))))
    other = rows.assign(median_us=rows["size_bytes"].map(dict(zip(sizes, (second, first), strict=True))))
    view = comparison.beside(one, other, ("a", "b"), "x")
    assert view is not None and max(view.spec["data"][0]["y"]) == pytest.approx(second / first)
    assert f"b took up to {second / first:.3g}".rstrip("0")[:16] in view.title
    twice = [pd.concat([side, side.assign(ranks=8)]) for side in (one, other)]
    assert comparison.beside_counts(*twice, ("a", "b"), "x") is not None

"""One cell over its launches, its calls, its ranks and over days; late nodes."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.dashboards.base import series
from omb_py.dashboards.figures import launches
from omb_py.dashboards.figures.launches import history
from omb_py.dashboards.figures.stragglers import LateNode, late_nodes, stragglers


def test_a_box_a_launch(frame) -> None:
    cell = series.prepared(frame[(frame["library"] == "MPICH") & (frame["size_bytes"] == 8)])
    view = launches.distribution(cell)
    boxes = [t for t in view.spec["data"] if t["type"] == "box"]
    assert [b["median"][0] for b in boxes] == pytest.approx(list(cell["median_us"]), rel=1e-5)
    assert "3 launches lie" in view.title


def test_every_call_is_in_the_trace(frame) -> None:
    launch = series.prepared(frame.iloc[:1])
    view = launches.trace(launch)
    assert view is not None
    points = view.spec["data"][0]
    assert points["x"] == list(range(1200))
    assert points["y"] == pytest.approx(list(frame["samples_us"].iloc[0]))
    assert view.title.startswith("allreduce 8 B: 0 calls of 1200 took over twice the median of ")
    assert "stopped by count" in view.caption
    assert launches.trace(launch.assign(samples_us=[None])) is None


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=400), st.integers(4, 60))
def test_thinning_loses_no_outlier(values: list[float], most: int) -> None:
    x, y = launches.thinned(values, most)
    assert len(x) <= max(most, 1) or len(values) <= most
    assert x == sorted(set(x)) and y == [values[i] for i in x]
    assert max(y) == max(values) and min(y) == min(values)


def test_the_late_rank_is_named_with_its_host(frame) -> None:
    view = stragglers(series.prepared(frame[frame["library"] == "MPICH"]))
    assert view is not None
    assert view.title == "allreduce, 4 ranks: rank 3 (n1) is the slowest in 85 % of calls, an even share is 25 %"
    bars, even, excess = view.spec["data"]
    assert bars["y"] == pytest.approx([5, 5, 5, 85]) and even["y"] == [25, 25]
    assert excess["z"][0] == pytest.approx([0, 0, 0, 10])


def test_one_rank_is_no_straggler(frame) -> None:
    assert stragglers(frame.assign(slowest_rank_share=[[1.0]] * len(frame))) is None
    assert stragglers(frame.assign(slowest_rank_share=None)) is None


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
    versions = points.assign(library_version=["5.0.1", "5.0.1", "5.0.2"])
    said = [history(each, "bw 8 B").spec["layout"]["annotations"] for each in (points, versions)]
    assert [[word["text"] for word in words] for words in said] == [
        ["environment, 2026-01-03"],
        ["5.0.2, 2026-01-03"],
    ], "a line has a word and a day"


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


def late(cell, shares: list[float], hosts: str = "aabbccdd", **more: int) -> list[LateNode]:
    rows = [
        cell(2.0, n, benchmark=name, slowest_rank_share=shares, hosts=list(hosts), ranks=len(hosts), **more)
        for name in ("allreduce", "bcast")
        for n in range(4)
    ]
    return late_nodes(series.prepared(pd.DataFrame(rows)))


def test_a_node_whose_ranks_share_the_lateness(cell) -> None:
    (node,) = late(cell, [0.02, 0.02, 0.02, 0.02, 0.44, 0.44, 0.02, 0.02])
    assert (node.host, node.share, node.even) == ("c", pytest.approx(0.88), 0.25) and len(node.parts) == 2
    assert node.sentence == (
        "c is late: one of its ranks is the last in 88 % of the calls of 2 benchmarks; an even share is 25 %"
    )


@pytest.mark.parametrize(
    ("shares", "hosts"),
    [
        ([0.125] * 8, "aabbccdd"),  # nobody
        ([0.02, 0.02, 0.02, 0.02, 0.86, 0.02, 0.02, 0.02], "aabbccdd"),  # one rank
        ([0.02, 0.02, 0.02, 0.02, 0.44, 0.44, 0.02, 0.02], "abbbccdd"),  # nodes of unlike numbers of ranks
        ([0.5, 0.5, 0.0, 0.0], "aaaa"),  # one node
        ([0.9, 0.1], "ab"),  # one rank a node: a late rank
    ],
)
def test_what_is_no_late_node(cell, shares: list[float], hosts: str) -> None:
    assert late(cell, shares, hosts) == []


def test_three_calls_a_launch_are_too_few_to_name_a_node(cell) -> None:
    """The same rank may be last in all three by chance; four launches are four draws."""
    shares = [0.0, 0.0, 0.5, 0.5]
    assert late(cell, shares, "aabb", iterations=3) == []
    assert [node.host for node in late(cell, shares, "aabb", iterations=1200)] == ["b"]

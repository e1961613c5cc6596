from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.dashboards.base import series
from omb_py.dashboards.figures import launches
from omb_py.dashboards.figures.stragglers import stragglers


def test_a_box_a_launch_and_the_share_of_samples(frame) -> None:
    cell = series.prepared(frame[(frame["library"] == "MPICH") & (frame["size_bytes"] == 8)])
    view = launches.distribution(cell)
    boxes = [t for t in view.spec["data"] if t["type"] == "box"]
    assert [b["median"][0] for b in boxes] == pytest.approx(list(cell["median_us"]), rel=1e-5)
    curve = next(t for t in view.spec["data"] if t["type"] == "scatter")
    middle = min(range(len(curve["y"])), key=lambda i: abs(curve["y"][i]))
    assert curve["x"][middle] == pytest.approx(cell["median_us"].iloc[0], rel=0.01)
    assert curve["x"] == sorted(curve["x"])
    assert "3 launches lie" in view.title
    view.figure  # noqa: B018


def test_a_tail_that_few_samples_cannot_support_is_not_drawn(frame) -> None:
    cell = frame.iloc[:1].copy()
    cell["samples_us"] = [np.linspace(1, 2, 20, dtype=np.float32)]
    curve = next(t for t in launches.distribution(series.prepared(cell)).spec["data"] if t["type"] == "scatter")
    assert max(curve["y"]) < 1.7  # not 99 %, which is 2.3 on this axis


def test_every_call_is_in_the_trace(frame) -> None:
    launch = series.prepared(frame.iloc[:1])
    view = launches.trace(launch)
    assert view is not None
    points = view.spec["data"][0]
    assert points["x"] == list(range(1200))
    assert points["y"] == pytest.approx(list(frame["samples_us"].iloc[0]))
    assert view.title.startswith("allreduce 8 B: 0 calls of 1200 took over twice the median of ")
    assert "stopped by count" in view.caption
    view.figure  # noqa: B018
    assert launches.trace(launch.assign(samples_us=[None])) is None


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=400), st.integers(4, 60))
def test_thinning_loses_no_outlier(values: list[float], most: int) -> None:
    x, y = launches.thinned(values, most)
    assert len(x) <= max(most, 1) or len(values) <= most
    assert x == sorted(set(x)) and y == [values[i] for i in x]
    assert max(y) == max(values) and min(y) == min(values)


def test_autocorrelation_of_a_wave_and_of_a_constant() -> None:
    assert launches.autocorrelation([1.0, 2.0] * 50, 2) == pytest.approx([-0.99, 0.98])
    assert launches.autocorrelation([1.0] * 10, 3) == []


def test_the_late_rank_is_named_with_its_host(frame) -> None:
    view = stragglers(series.prepared(frame[frame["library"] == "MPICH"]))
    assert view is not None
    assert view.title == "allreduce, 4 ranks: rank 3 (n1) is the slowest in 85 % of calls, an even share is 25 %"
    bars, even, excess = view.spec["data"]
    assert bars["y"] == pytest.approx([5, 5, 5, 85]) and even["y"] == [25, 25]
    assert excess["z"][0] == pytest.approx([0, 0, 0, 10])
    view.figure  # noqa: B018


def test_one_rank_is_no_straggler(frame) -> None:
    assert stragglers(frame.assign(slowest_rank_share=[[1.0]] * len(frame))) is None
    assert stragglers(frame.assign(slowest_rank_share=None)) is None


def test_cells_without_a_size_have_late_ranks_too(frame) -> None:
    known = series.prepared(frame[frame["library"] == "MPICH"])
    view = stragglers(known.assign(size_bytes=None))
    assert view is not None
    assert len(view.spec["data"][-1]["z"]) == 1

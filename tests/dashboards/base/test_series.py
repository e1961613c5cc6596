"""Series of a figure and their medians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from omb_py.dashboards.base import series


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

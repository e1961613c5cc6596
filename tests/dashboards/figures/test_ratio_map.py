"""The map of ratios: what a phone has room for."""

from __future__ import annotations

import pandas as pd
import pytest

from omb_py.dashboards.figures.maps import ratio_map


@pytest.mark.parametrize(("sizes", "written", "on_a_phone"), [(10, 10, 10), (13, 13, 0), (15, 0, 0)])
def test_ratios_are_written_where_there_is_room(sizes: int, written: int, on_a_phone: int) -> None:
    rows = [
        {
            "benchmark": "allreduce",
            "comparability_key": f"k{at}",
            "ranks": 4,
            "size_bytes": 4 << at,
            "ratio": 1.3,
            "verdict": "slower",
            "base_us": 1.0,
            "new_us": 1.3,
            "launches_base": 5,
            "launches_new": 5,
        }
        for at in range(sizes)
    ]
    view = ratio_map(pd.DataFrame(rows), ("old", "new"))
    assert view.spec is not None
    layout = view.spec["layout"]
    assert len(layout["annotations"]) == written
    narrow = {**layout, **layout["meta"]["narrow"]}
    assert len(narrow["annotations"]) == on_a_phone
    assert view.cells[1] == [[f"/k{at}" for at in range(sizes)]], "a click leads to the cell"

from __future__ import annotations

import pandas as pd
import pytest

from omb_py.dashboards.figures.models import model


def test_a_model_and_what_it_leaves() -> None:
    measured = pd.DataFrame({"size_bytes": [8, 16, 32], "median_us": [1.8, 2.6, 8.4]})
    parts = pd.DataFrame(
        {"low_bytes": [8, 32], "high_bytes": [16, 64], "alpha_us": [1.0, 4.0], "beta_us_per_byte": [0.1, 0.1]}
    )
    view = model(measured, parts, "latency")
    assert view.title == "latency: 2 segments, at most 16.7 % off the fit"
    assert view.spec["data"][1]["y"] == pytest.approx([1.8, 2.6])
    assert [row[2] for row in view.rows] == pytest.approx([0, 0, 100 * (8.4 / 7.2 - 1)])
    assert "0.01 GB/s" in view.caption
    stems = view.spec["data"][-1]
    assert stems["type"] == "scatter", "bars would be as wide as a decade at small sizes"
    assert stems["x"] == [8, 8, None, 16, 16, None, 32, 32, None] and stems["y"][6] == 0
    view.figure  # noqa: B018

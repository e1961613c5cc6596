"""Times of rows, as logs, from which ratios are made."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from omb_py.dashboards.changes.ratios import LOG, with_logs


def test_a_rate_is_a_time_a_message_and_no_rate_is_none() -> None:
    frame = pd.DataFrame(
        {
            "unit": ["MB/s", "MB/s", "us", "us"],
            "size_bytes": [1000, 1000, 8, 8],
            "value": [500.0, 0.0, 3.0, 4.0],
            "median_us": [None, None, 3.0, 0.0],
        }
    )
    rows = with_logs(frame)
    assert list(rows.index) == [0, 2]
    assert list(rows[LOG]) == pytest.approx([math.log(2.0), math.log(3.0)])

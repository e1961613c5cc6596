"""Which number of a row stands for its launch: the median of the samples, or the mean that another tool has printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Row = Mapping[str, Any]
Statistic = Literal["median", "mean"]

OURS = "omb-py"
"""The ``source`` of rows that were measured here."""
COLUMNS = ("source", "median_us", "value", "unit", "size_bytes")
"""What of a row is looked at."""
FIELD = "statistic"
"""Named where rows may not be compared for it."""


def statistic_of(row: Row) -> Statistic | None:
    """What :func:`time_of` is of; None where the row says no time.

    Tools that keep no samples print one number a cell, which is a mean. A row of ours without samples timed nothing.
    """
    if (row.get("median_us") or 0) > 0:
        return "median"
    return "mean" if row.get("source") != OURS and (row.get("value") or 0) > 0 else None


def time_of(row: Row) -> float | None:
    """The median of the samples in µs, or the printed mean as a time; None where the row says no time.

    Of a bandwidth in MB/s (10^6 bytes/s, which are bytes per µs) the time is that of one message.
    """
    statistic = statistic_of(row)
    if statistic is None:
        return None
    if statistic == "median":
        return float(row["median_us"])
    value = float(row["value"])
    return value if row.get("unit") == "us" else (row.get("size_bytes") or 1) / value

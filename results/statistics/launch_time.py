"""The number of a row that stands for its launch: the median of the samples, or the mean that another tool printed."""

from __future__ import annotations

from typing import Literal

from omb_py.results.store.row import Row

Statistic = Literal["median", "mean"]

OURS = "omb-py"
"""The ``source`` of rows that were measured here."""
COLUMNS = ("source", "median_us", "value", "unit", "size_bytes", "parameters")
"""Columns that :func:`statistic_of` and :func:`time_of` read."""
FIELD = "statistic"
"""Name of the statistic beside the columns of a row: it is no column of the store."""


def statistic_of(row: Row) -> Statistic | None:
    """Say whether :func:`time_of` is a median or a mean; None where the row has no time.

    Tools that keep no samples print one number a cell, which is a mean. A row of omb-py without samples timed nothing.
    """
    if (row.get("median_us") or 0) > 0:
        return "median"
    return "mean" if row.get("source") != OURS and (row.get("value") or 0) > 0 else None


def time_of(row: Row) -> float | None:
    """Give the median of the samples in µs, or the printed mean as a time in µs; None where the row has no time.

    A bandwidth in MB/s (10^6 bytes/s, which is bytes per µs) becomes the time of one message, and any other number of
    which a higher one is better its inverse, so that more is always slower.
    """
    statistic = statistic_of(row)
    if statistic is None:
        return None
    if statistic == "median":
        return float(row["median_us"])
    value = float(row["value"])
    return value if is_lower_better(row) else (row.get("size_bytes") or 1) / value


def is_lower_better(row: Row) -> bool:
    """Whether a lower printed number is the better one: as the row says, else that of a time."""
    better = dict(row.get("parameters") or {}).get("better")
    return better == "lower" if better else row.get("unit") == "us"


def printed_text(row: Row, time: float, of_times: str = "") -> str:
    """A number that :func:`time_of` gives, as the tool of `row` prints it: a bandwidth is no time.

    Args:
        row: a row of the cell.
        time: the number.
        of_times: what follows a time in µs; other numbers are followed by their unit.
    """
    lower = is_lower_better(row)
    if (lower and row.get("unit") == "us") or statistic_of(row) != "mean":
        return f"{time:.2f}{of_times}"
    value = time if lower else (row.get("size_bytes") or 1) / time
    return f"{value:.{2 if value >= 1 else 4}f} {row.get('unit')}"

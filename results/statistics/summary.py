"""The statistics columns of a row, from its series of maxima over ranks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

QUANTILES: dict[str, float] = {
    "p05_us": 0.05,
    "p25_us": 0.25,
    "p50_us": 0.50,
    "p75_us": 0.75,
    "p90_us": 0.90,
    "p95_us": 0.95,
    "p99_us": 0.99,
    "p999_us": 0.999,
}

COLUMNS: tuple[str, ...] = (
    "mean_us",
    "median_us",
    "min_us",
    "max_us",
    "stddev_us",
    "mad_us",
    *QUANTILES,
    "ci_low_us",
    "ci_high_us",
    "ess",
)


def summarise(samples_max_us: ArrayLike) -> dict[str, float | None]:
    """Compute the columns ``mean_us`` … ``ci_high_us`` and ``ess`` of a series.

    Args:
        samples_max_us: samples in µs in order of time, each the maximum over the ranks.

    Returns:
        Column -> value; None for a statistic that the number of samples cannot support.
    """
    from omb_py.engine.measuring.statistics import SignSeries, median_of, quantile_or_null

    series = SignSeries(samples_max_us)
    n = series.size
    if n == 0:
        return dict.fromkeys(COLUMNS)
    mean = math.fsum(series.values) / n
    low, high = series.median_interval()
    columns: dict[str, float | None] = {
        "mean_us": mean,
        "median_us": series.median,
        "min_us": float(series.ordered[0]),
        "max_us": float(series.ordered[-1]),
        "stddev_us": math.sqrt(math.fsum((us - mean) ** 2 for us in series.values) / (n - 1)) if n > 1 else None,
        "mad_us": median_of([abs(us - series.median) for us in series.values]),
    }
    columns |= {name: quantile_or_null(series, q) for name, q in QUANTILES.items()}
    columns["ci_low_us"] = None if math.isnan(low) else low
    columns["ci_high_us"] = None if math.isnan(high) else high
    columns["ess"] = n / series.autocorrelation_time()
    return columns

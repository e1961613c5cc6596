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
    import numpy as np

    from omb_py.engine.measuring import statistics

    x = np.asarray(samples_max_us, dtype=np.float64).ravel()
    if x.size == 0:
        return dict.fromkeys(COLUMNS)
    low, high = statistics.median_interval(x)
    columns: dict[str, float | None] = {
        "mean_us": float(x.mean()),
        "median_us": float(np.median(x)),
        "min_us": float(x.min()),
        "max_us": float(x.max()),
        "stddev_us": float(x.std(ddof=1)) if x.size > 1 else None,
        "mad_us": statistics.median_absolute_deviation(x),
    }
    columns |= {name: statistics.quantile_or_null(x, q) for name, q in QUANTILES.items()}
    columns["ci_low_us"] = None if math.isnan(low) else low
    columns["ci_high_us"] = None if math.isnan(high) else high
    columns["ess"] = statistics.effective_size(x)
    return columns

"""Dependence of successive values of a series that has steps. Derived in docs/statistics.md."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

USUAL, SPREAD = 0.15, 0.2
"""Mean and standard deviation of the correlation of successive units, before a series is looked at."""
ABOVE = 1.0
"""Standard deviations from the estimate to its upper limit."""
MOST = 0.95


def correlation_at_most(x: ArrayLike, edges: Sequence[int]) -> float:
    """Estimate an upper limit of the lag-1 correlation of the values around their levels.

    The correlation r of the residuals is too small, because each of the m levels is fitted: about
    rho - m (1 + 3 rho) / n in the mean for n values. That is undone, the estimate is weighed against :data:`USUAL` by
    their variances, and :data:`ABOVE` standard deviations are added.

    Args:
        x: the series, shape (n,).
        edges: indices at which a new level begins, ascending.

    Returns:
        Between 0 and :data:`MOST`; 0 where the values do not scatter around their levels.
    """
    values = np.asarray(x, dtype=np.float64).ravel()
    parts = [part - part.mean() for part in np.split(values, list(edges)) if part.size]
    total = sum(float(part @ part) for part in parts)
    n, levels = values.size, len(parts)
    scale = float(np.abs(values).max()) if n else 0.0
    if n < 3 or total <= n * (1e-12 * scale) ** 2:  # rounding is no scatter
        return 0.0
    r = sum(float(part[1:] @ part[:-1]) for part in parts) / total
    rho = (r + levels / n) / max(1 - 3 * levels / n, 0.3)
    known, usual = n, 1 / SPREAD**2
    posterior = (known * rho + usual * USUAL) / (known + usual) + ABOVE / math.sqrt(known + usual)
    return min(max(posterior, 0.0), MOST)


def whitened(x: ArrayLike, rho: float, edges: Sequence[int] = ()) -> NDArray[np.float64]:
    """Take the dependence out of a series with levels: (1 - rho) level_i + e_i - rho e_(i-1), e = x - level.

    Independent where the values around their levels are an AR(1) process with this correlation. Within a level it is
    x_i - rho x_(i-1), and a step of height h is one of height (1 - rho) h at the same place, without the peak that
    x_i - rho x_(i-1) has there. The first e is scaled so that its variance is that of the others (Prais and Winsten
    1954).

    Args:
        x: the series, shape (n,).
        rho: lag-1 correlation, 0 to below 1.
        edges: indices at which a new level begins, ascending; the level is the mean up to the next.

    Returns:
        Shape (n,).
    """
    values = np.asarray(x, dtype=np.float64).ravel()
    if not values.size:
        return values
    level = np.concatenate([np.full(part.size, part.mean()) for part in np.split(values, list(edges)) if part.size])
    e = values - level
    noise = e.copy()
    noise[0] *= math.sqrt(1 - rho * rho)
    noise[1:] -= rho * e[:-1]
    white: NDArray[np.float64] = (1 - rho) * level + noise
    return white

"""Dependence of successive launches, and of a series that has steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

USUAL, SPREAD = 0.15, 0.2
"""Mean and standard deviation of the correlation of successive units, before a series is looked at."""
ABOVE = 1.0
"""Standard deviations from the estimate to its upper limit."""
MOST = 0.95
FEWEST = 8
"""Fewest launches of which :func:`pooled_correlation` takes a correlation."""
CAUTION = 0.8
"""Standard errors that are added to it, so that the verdict on one cell alone does not trust what it shows."""
UNKNOWN = 0.5
"""The correlation that is assumed where too few launches show one."""
STRONG = 0.65
"""Correlation above which :func:`pooled_correlation` corrects Kendall's formula."""


def pooled_correlation(series: Iterable[Sequence[float]], caution: float = CAUTION) -> float:
    """Estimate what the correlation of a launch with the one before may be, from all cells that they measured.

    The correlation r that n launches show is about rho - (1 + 4 rho) / n in the mean (M. Kendall, Biometrika 41, 1954).
    That is undone for each series, and the estimates are averaged with n as weights. Above :data:`STRONG` r is smaller
    than that by what simulated series of 8 to 24 launches show, which is undone too.

    Launches of a night share more than an AR(1) process of this correlation says. So the correlation with the launch
    before that counts too, by its square root, where it is larger; less its error, since a root makes errors large.

    Args:
        series: log of each launch, one series a cell, in the order of the launches. A series of fewer than
            :data:`FEWEST`, or of equal values, is left out.
        caution: so many standard errors are added. They are those of cells that know nothing of each other; what cells
            share in a launch makes the error larger.

    Returns:
        From 0 to :data:`MOST`, upwards to a hundredth; :data:`UNKNOWN` where no series tells anything.
    """
    known = [x - x.mean() for x in map(np.asarray, series) if x.size >= FEWEST and x.min() < x.max()]
    if not known:
        return UNKNOWN
    next_one, error = _correlate(known, 1)
    later = [x for x in known if x.size > FEWEST]
    second, second_error = _correlate(later, 2)
    rho = max(next_one + caution * error, math.sqrt(max(0.0, second - second_error)))
    return min(math.ceil(100 * (rho + 0.3 * max(0.0, rho - STRONG)) - 1e-9) / 100, MOST)


def _correlate(series: Sequence[NDArray[np.float64]], lag: int) -> tuple[float, float]:
    """Correlation of launches so far apart, without its bias, and its standard error; series are about their means."""
    total = variance = weight = 0.0
    for x in series:
        n, slope = x.size, 1 - (2 + 2 * lag) / x.size
        total += n * (float(x[lag:] @ x[:-lag]) / float(x @ x) + 1 / n) / slope
        variance += n / slope**2  # of n times the estimate; that of r is 1/n
        weight += n
    return (total / weight, math.sqrt(variance) / weight) if weight else (0.0, 0.0)


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

"""Student's t of launches that resemble the one before. Pure; derived in docs/statistics.md, Acceptance.

The mean of an AR(1) series varies more than that of independent launches, and the spread that few of them show is less
than theirs. Both are in the exact law of their quotient.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FARTHEST = 1e5
"""Largest quotient of mean and spread whose chance is computed; rounding is all there is beyond."""
_POINTS = 64
"""Points of the Gauss-Legendre quadrature over the angle."""


def mean_tail(quotient: float, launches: int, correlation: float) -> float:
    """Compute the chance that the mean of launches is so many spreads above the true mean, or more.

    The spread is the standard deviation that the launches show, with n - 1. With a correlation of 0 this is Student's t
    with n - 1 degrees of freedom, for quotient times √n.

    Args:
        quotient: mean over spread; 0 or less has a chance of at least 1/2.
        launches: 2 or more.
        correlation: of a launch with the one before, 0 to below 1.

    >>> round(mean_tail(1.0, 10, 0.0), 4), round(mean_tail(1.0, 10, 0.5), 4), round(mean_tail(1.0, 10, 0.9), 4)
    (0.0058, 0.0592, 0.2795)
    """
    if quotient < 0:
        return 1.0 - mean_tail(-quotient, launches, correlation)
    above, spread = _forms(launches, correlation)
    values = np.linalg.eigvalsh(np.outer(above, above) - min(quotient, FARTHEST) ** 2 * spread)
    ratios = np.maximum(-values[:-1], 0.0) / values[-1]  # one is positive: the mean's
    angles, weights = _quadrature()
    return float(weights @ np.prod(np.sqrt(angles / (angles + ratios)), axis=1)) / math.pi


@lru_cache(maxsize=4096)
def mean_quantile(chance: float, launches: int, correlation: float) -> float:
    """Find the quotient of mean and spread that is exceeded with this chance; :data:`FARTHEST` at most.

    Args:
        chance: above 0, up to 1/2.
        launches: 2 or more.
        correlation: as in :func:`mean_tail`.

    >>> round(mean_quantile(0.025, 10, 0.0) * 10**0.5, 3)  # that of Student's t with 9 degrees of freedom
    2.262
    """
    low, high = -20.0, math.log(FARTHEST)
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if mean_tail(math.exp(middle), launches, correlation) > chance else (low, middle)
    return math.exp(high)


@lru_cache(maxsize=512)
def _forms(launches: int, correlation: float) -> tuple[Floats, Floats]:
    """Vector u and matrix B: of n independent z, the mean of the launches is u z, and their variance z B z."""
    places = np.arange(launches)
    values, vectors = np.linalg.eigh(correlation ** np.abs(places[:, None] - places))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    around = root - root.mean(axis=0)
    return root.mean(axis=0), around.T @ around / (launches - 1)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    """Squares of the cosines from 0 to a right angle, shape (points, 1), and the weights."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    return np.cos((points + 1) * math.pi / 4)[:, None] ** 2, weights * math.pi / 4

"""Launches of many kinds, for the benches of the judges: log costs whose median is 0, seeded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import ndtri

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]
"""(generator, series, launches) -> logs, shape (series, launches)."""
SPREAD = 0.02
"""Standard deviation of the logs of launches in their usual mode."""
_WARM_UP = 100


def normal(rng: np.random.Generator, series: int, launches: int) -> Floats:
    """Normal launches."""
    return rng.normal(0, SPREAD, (series, launches))


def heavy(rng: np.random.Generator, series: int, launches: int) -> Floats:
    """Student's t with 3 degrees of freedom."""
    return SPREAD * rng.standard_t(3, (series, launches))


def bimodal(share: float, factor: float) -> Draw:
    """Make launches of which this share takes `factor` times as long; the median of all is 0."""

    def draw(rng: np.random.Generator, series: int, launches: int) -> Floats:
        logs = normal(rng, series, launches) + math.log(factor) * (rng.random((series, launches)) < share)
        # half of all lies below the quantile 0.5/(1 - share) of the mode that is not moved
        below = 0.5 / (1 - share) if factor > 1 else (0.5 - share) / (1 - share)
        return logs - SPREAD * float(ndtri(below))

    return draw


def autoregressive(correlation: float) -> Draw:
    """Make normal launches of which each knows of the one before."""

    def draw(rng: np.random.Generator, series: int, launches: int) -> Floats:
        fresh = rng.normal(0, SPREAD * math.sqrt(1 - correlation**2), (series, launches + _WARM_UP))
        logs: Floats = lfilter([1.0], [1.0, -correlation], fresh, axis=1)[:, _WARM_UP:]
        return logs

    return draw


EFFECTS: Mapping[str, Draw] = {
    "normal": normal,
    "Student's t, 3 degrees of freedom": heavy,
    "10 % twice as slow": bimodal(0.1, 2.0),
    "30 % twice as slow": bimodal(0.3, 2.0),
    "10 % twice as fast": bimodal(0.1, 0.5),
    "AR(1), 0.3": autoregressive(0.3),
    "AR(1), 0.5": autoregressive(0.5),
    "AR(1), 0.9: more than is promised": autoregressive(0.9),
}

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
TICK, DRIFT, LOST, LAUNCHES_A_NIGHT = 0.05, 0.005, 0.15, 5
"""Step of quantised times; log a launch; share of the launches that a series lacks; launches that share a night."""
RISING, FALLING, NIGHTS = (
    "rising by 0.5 % a launch",
    "falling by 0.5 % a launch",
    "nights of 5 launches, each 2 % apart",
)
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


def halves(rng: np.random.Generator, series: int, launches: int) -> Floats:
    """Launches of which each second one takes twice as long, by a coin; 0 is half way, so no launch is near it."""
    return normal(rng, series, launches) + math.log(2) * ((rng.random((series, launches)) < 0.5) - 0.5)


def autoregressive(correlation: float) -> Draw:
    """Make normal launches of which each knows of the one before."""

    def draw(rng: np.random.Generator, series: int, launches: int) -> Floats:
        fresh = rng.normal(0, SPREAD * math.sqrt(1 - correlation**2), (series, launches + _WARM_UP))
        logs: Floats = lfilter([1.0], [1.0, -correlation], fresh, axis=1)[:, _WARM_UP:]
        return logs

    return draw


def nightly(rng: np.random.Generator, series: int, launches: int) -> Floats:
    """Launches of several nights, which differ as much as the launches of one night do."""
    nights = normal(rng, series, -(-launches // LAUNCHES_A_NIGHT))
    return np.repeat(nights, LAUNCHES_A_NIGHT, axis=1)[:, :launches] + normal(rng, series, launches)


def drifting(slope: float, middle: float | None = None) -> Draw:
    """Make launches that drift by `slope` each; the median is 0 at launch `middle`, or half way."""

    def draw(rng: np.random.Generator, series: int, launches: int) -> Floats:
        at = (launches - 1) / 2 if middle is None else middle
        return normal(rng, series, launches) + slope * (np.arange(launches) - at)

    return draw


def ties(rng: np.random.Generator, series: int, launches: int) -> Floats:
    """Times in steps of 5 %; one half of the launches has the step below the median, the other the one above."""
    return (np.floor(normal(rng, series, launches) / TICK) + 0.5) * TICK


def unequal(rng: np.random.Generator, series: int, launches: int) -> Floats:
    """Normal launches of which some lack the series: NaN."""
    logs = normal(rng, series, launches)
    return np.where(rng.random(logs.shape) < LOST, np.nan, logs)


EFFECTS: Mapping[str, Draw] = {
    "normal": normal,
    "Student's t, 3 degrees of freedom": heavy,
    "10 % twice as slow": bimodal(0.1, 2.0),
    "30 % twice as slow": bimodal(0.3, 2.0),
    "10 % twice as fast": bimodal(0.1, 0.5),
    "AR(1), 0.3": autoregressive(0.3),
    "AR(1), 0.5": autoregressive(0.5),
    "AR(1), 0.9": autoregressive(0.9),
    NIGHTS: nightly,
    RISING: drifting(DRIFT),
    FALLING: drifting(-DRIFT),
    "15 % of the launches lost": unequal,
    "steps of 5 % (ties)": ties,
}

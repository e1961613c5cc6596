"""Two sides that were not measured in turn: the night is the unit, and a steady drift is allowed for. Pure.

Launches of one night share the state of the machine, however many they are. Where BASE is of other nights than NEW,
nights are compared, and what drifted steadily over the nights of both sides is not taken for a change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from omb_py.results.statistics.nights import nights_of
from omb_py.results.statistics.t_test import Estimate

Array = NDArray[np.float64]

FEWEST_NIGHTS = 6
"""Fewest nights of each side that are compared. With fewer, rare slow launches make more alarms than promised."""
SHARED_NIGHTS = 8
"""Fewest nights in which both sides were measured that are compared by pairs: their sign flips can reach 1 %."""


def days_of(runs: Iterable[tuple[str, datetime]]) -> Mapping[str, float]:
    """Find the night of each run: when its first run began, in days since 1970.

    Args:
        runs: id and start of each launch's run; a run may occur several times.
    """
    runs = list(runs)
    nights = nights_of(runs)
    begun: dict[int, datetime] = {}
    for run, start in runs:
        begun[nights[run]] = min(start, begun.get(nights[run], start))
    return {run: begun[night].timestamp() / 86400 for run, night in nights.items()}


def by_night(nights: Sequence[float], logs: Sequence[float]) -> tuple[Array, Array]:
    """Nights in order of time, and the mean of the logs of each."""
    days, places = np.unique(np.asarray(nights, dtype=float), return_inverse=True)
    return days, np.bincount(places, np.asarray(logs, dtype=float)) / np.bincount(places)


def drift_allowed_for(base: tuple[Array, Array], new: tuple[Array, Array], floor: float = 0.0) -> Estimate:
    """Estimate the difference of two sides by least squares, beside a straight line over time that both share.

    Args:
        base: nights of BASE, in days, and the mean log of each.
        new: the same of NEW.
        floor: smallest standard deviation that a night can have (the clock's resolution).

    Returns:
        The difference; its spread is unknown under :data:`FEWEST_NIGHTS` nights of a side.
    """
    days, values = (np.concatenate(both) for both in zip(base, new, strict=True))
    counts = len(base[0]), len(new[0])
    difference = float(new[1].mean() - base[1].mean())
    if min(counts) < FEWEST_NIGHTS:
        return Estimate(difference, math.inf, 0.0, *counts, paired=False)
    side = np.repeat([0.0, 1.0], counts)
    columns = [np.ones(len(days)), side]
    if np.ptp(days) > 0:
        columns.append((days - days.mean()) / np.ptp(days))
    design = np.stack(columns, axis=1)
    inverse = np.linalg.pinv(design.T @ design)
    fit = inverse @ design.T @ values
    freedom = float(len(days) - np.linalg.matrix_rank(design))
    variance = max(float(((values - design @ fit) ** 2).sum()) / freedom, floor**2)
    return Estimate(float(fit[1]), math.sqrt(variance * inverse[1, 1]), freedom, *counts, paired=False)

"""Nights: how much a machine differs from day to day, and one more night against those of a baseline. Pure.

Launches of one night share the state of the machine: its neighbours, its routes, its temperature. However many they
are, they are one draw of that state. So the night is the unit, and one more night is compared with the earlier ones by
their own spread (docs/statistics.md, Acceptance).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from omb_py.results.statistics.t_test import Estimate, moments, quantile

PAUSE: Final = timedelta(hours=6)
"""A longer pause between the starts of two runs ends a night."""
LONGEST: Final = timedelta(hours=24)
"""A night ends after this time at the latest, so that measuring all the time has nights too."""
FREEDOM = 0.7
"""Share of N - 1 degrees of freedom that the spread of N nights counts as."""
MOST_NIGHTS = 1000
"""Most nights that :func:`nights_to_decide` searches."""


def nights_of(runs: Iterable[tuple[str, datetime]]) -> dict[str, int]:
    """Number the night of each run, from 0 in the order of time. A run is never divided.

    A night ends with a pause of more than `PAUSE` between the starts of runs, or `LONGEST` after its first one.

    Args:
        runs: id and start of each launch's run; a run may occur several times, and its earliest start counts.

    >>> at = datetime.fromisoformat
    >>> nights_of([("a", at("2026-11-20T22:00")), ("b", at("2026-11-21T03:00")), ("c", at("2026-11-21T22:00"))])
    {'a': 0, 'b': 0, 'c': 1}
    """
    begun: dict[str, datetime] = {}
    for run, start in runs:
        begun[run] = min(start, begun.get(run, start))
    nights: dict[str, int] = {}
    first = last = None
    number = -1
    for run, start in sorted(begun.items(), key=lambda item: (item[1], item[0])):
        if first is None or last is None or start - last > PAUSE or start - first >= LONGEST:
            first, number = start, number + 1
        nights[run] = number
        last = start
    return nights


def one_more_night(earlier: Sequence[float], tonight: float) -> Estimate:
    """Estimate how far a night is from the mean of the earlier ones, by what the earlier ones differ from each other.

    The standard error is that of the prediction of one more value, s·√(1 + 1/N), with :data:`FREEDOM` of N - 1 degrees
    of freedom: nights that resemble the one before differ less from each other than from one to come.

    Args:
        earlier: log of each earlier night; with fewer than two the spread is unknown.
        tonight: log of the night that is judged.

    Raises:
        ValueError: there is no earlier night.
    """
    n = len(earlier)
    if not n:
        raise ValueError("no nights")
    mean = math.fsum(earlier) / n
    if n == 1:
        return Estimate(tonight - mean, math.inf, 0.0, 1, 1, paired=False)
    return Estimate(tonight - mean, spread_of(earlier) * math.sqrt(1 + 1 / n), FREEDOM * (n - 1), n, 1, paired=False)


def spread_of(nights: Sequence[float]) -> float:
    """Standard deviation of two or more nights, with n - 1; 0 where all are equal."""
    return math.sqrt(moments(nights)[1])


def nights_to_decide(spread: float, distance: float, alpha: float) -> int | None:
    """Compute how many nights of a baseline decide about a night that is this far from the limit.

    Args:
        spread: standard deviation of nights, in logs.
        distance: distance of the night from the limit, in logs, 0 or more.
        alpha: one-sided level of the verdict.

    Returns:
        2 or more; None where not even :data:`MOST_NIGHTS` do, because single nights differ by more than the distance.
    """
    if distance <= NormalDist().inv_cdf(1 - alpha) * spread:
        return None
    for n in range(2, MOST_NIGHTS + 1):
        if quantile(1 - alpha, FREEDOM * (n - 1)) * spread * math.sqrt(1 + 1 / n) < distance:
            return n
    return None


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

"""The history of a series: its levels, the changes between them, and the environment's differences at each change."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omb_py.errors import UsageError
from omb_py.results.analysis.series import Point, Series, by_version
from omb_py.results.compare.environment_diff import Difference, differences
from omb_py.results.statistics.change_points import DELTA, LEAST, MOST, change_points
from omb_py.results.statistics.launch_time import FIELD

Provenance = Callable[[str], Mapping[str, Any]]
"""Looks up the provenance of a launch id; empty when it has none."""


@dataclass(frozen=True, slots=True)
class Level:
    """A stretch of launches without a change."""

    first: Point
    last: Point
    launches: int
    time_us: float
    """Median over the launches of their medians, or printed means, in µs; for a band of its geometric means."""
    spread: float
    """Relative spread: 1.4826 times the median absolute deviation of the logs."""
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A change between two levels."""

    before: Point
    """Last launch before the change."""
    after: Point
    """First launch after the change."""
    ratio: float
    p: float
    what_changed: tuple[Difference, ...]
    """Differences between the environments of these two launches."""


@dataclass(frozen=True, slots=True)
class History:
    """A series with its levels and the steps between them."""

    series: Series
    levels: tuple[Level, ...]
    steps: tuple[Step, ...]
    left_out: int
    """Number of older launches that were not judged."""


def history(
    series: Series, provenance: Provenance, *, versions: bool = False, delta: float = DELTA, seed: int = 0
) -> History:
    """Find the levels and changes of a series.

    Args:
        series: launches of one cell or band.
        provenance: looks up a launch; it is called for the two launches around each change.
        versions: order the launches by version of the library instead of by time.
        delta: smallest relative step that is reported.
        seed: seed of the test's random orders.

    Raises:
        UsageError: there are fewer than :data:`~omb_py.results.statistics.change_points.LEAST` launches.
    """
    if len(series.points) < LEAST:
        raise UsageError(f"{len(series.points)} launches are too few for a history: {LEAST} are needed")
    newest = series.points[-MOST:]
    points = by_version(newest) if versions else list(newest)
    logs = np.array([point.log_time for point in points])
    changes = change_points(logs, delta=delta, seed=seed)
    bounds = [0, *(change.at for change in changes), len(points)]
    levels = [_level(points[a:b], logs[a:b]) for a, b in itertools.pairwise(bounds)]
    steps = []
    for change in changes:
        before, after = points[change.at - 1], points[change.at]
        changed = differences(
            [provenance(before.launch_id)], [provenance(after.launch_id)], (_row(series, before), _row(series, after))
        )
        steps.append(Step(before, after, change.ratio, change.p, tuple(changed)))
    return History(series, tuple(levels), tuple(steps), len(series.points) - len(newest))


def as_json(result: History) -> dict[str, Any]:
    """A history as JSON can hold it; times are ``median_us``, or ``mean_us`` for imported rows."""
    time = f"{result.series.facts[FIELD]}_us"
    return {
        "series": {name: value for name, value in result.series.facts.items() if value is not None},
        "sizes": list(result.series.sizes),
        "launches": [
            {
                "launch_id": point.launch_id,
                "started_at": point.started_at,
                "library_version": point.library_version,
                "environment_key": point.environment_key,
                time: math.exp(point.log_time),
            }
            for point in result.series.points
        ],
        "left_out": result.left_out,
        "levels": [
            {
                "from": level.first.launch_id,
                "to": level.last.launch_id,
                "launches": level.launches,
                time: level.time_us,
                "spread": level.spread,
                "library_versions": list(level.versions),
            }
            for level in result.levels
        ],
        "changes": [
            {
                "before": step.before.launch_id,
                "after": step.after.launch_id,
                "at": step.after.started_at,
                "ratio": step.ratio,
                "p": step.p,
                "library_version_before": step.before.library_version,
                "library_version_after": step.after.library_version,
                "environment": [
                    {"what": fact.what, "before": fact.base, "after": fact.new} for fact in step.what_changed
                ],
            }
            for step in result.steps
        ],
    }


def _level(points: Sequence[Point], logs: np.ndarray[Any, np.dtype[np.float64]]) -> Level:
    middle = float(np.median(logs))
    spread = 1.4826 * float(np.median(np.abs(logs - middle)))
    versions = tuple(dict.fromkeys(point.library_version for point in points))
    return Level(points[0], points[-1], len(points), math.exp(middle), spread, versions)


def _row(series: Series, point: Point) -> dict[str, Any]:
    return {**series.facts, "library_version": point.library_version}

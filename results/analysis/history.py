"""The history of a series: its levels, the changes between them, and the environment's differences at each change."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omb_py.errors import UsageError
from omb_py.results.analysis.series import PLURALS, Kind, Series, SeriesPoint, Unit, kind_of, units_of
from omb_py.results.compare.environment_diff import EnvironmentDifference, differences
from omb_py.results.statistics.change_points import DELTA, LEAST, MOST, change_points
from omb_py.results.statistics.launch_time import FIELD
from omb_py.results.store.provenance import Provenance


@dataclass(frozen=True, slots=True)
class Level:
    """A stretch of units without a change."""

    points: tuple[SeriesPoint, ...]
    """The launches, unit by unit."""
    units: int
    time_us: float
    """Median over the units of their times in µs, each the geometric mean of its launches' medians, or of printed
    means."""
    spread: float
    """Relative spread of the units: 1.4826 times the median absolute deviation of the logs."""
    versions: tuple[str, ...]

    @property
    def first(self) -> SeriesPoint:
        return self.points[0]

    @property
    def last(self) -> SeriesPoint:
        return self.points[-1]

    @property
    def launches(self) -> int:
        return len(self.points)


@dataclass(frozen=True, slots=True)
class LevelStep:
    """A change between two levels."""

    before: SeriesPoint
    after: SeriesPoint
    ratio: float
    p: float
    what_changed: tuple[EnvironmentDifference, ...]
    """Differences between the environments of these two launches."""


@dataclass(frozen=True, slots=True)
class History:
    """A series with its levels and the steps between them."""

    series: Series
    unit: Kind
    """What the launches were taken together to: units are independent, launches of one unit are not."""
    levels: tuple[Level, ...]
    steps: tuple[LevelStep, ...]
    left_out: int
    """Number of older launches that were not judged."""


def history(
    series: Series,
    provenance: Callable[[str], Provenance],
    *,
    versions: bool = False,
    delta: float = DELTA,
    seed: int = 0,
    unit: Kind | None = None,
) -> History:
    """Find the levels and changes of a series.

    Args:
        provenance: looks up a launch; it is called for the two launches around each change.
        versions: order the units by version of the library instead of by time.
        seed: seed of the test's random orders.
        unit: what counts as one observation; None: the night where there are several, else the run.

    Raises:
        UsageError: there are fewer than :data:`~omb_py.results.statistics.change_points.LEAST` units.
    """
    kind = unit or kind_of(series.points)
    every = units_of(series.points, kind)
    if len(every) < LEAST:
        raise UsageError(too_few(series, kind))
    newest = [point for unit in every[-MOST:] for point in unit.points]
    newest.sort(key=series.points.index)
    units = units_of(newest, kind, versions)
    logs = np.array([unit.log_time for unit in units])
    changes = change_points(logs, delta=delta, seed=seed)
    bounds = [0, *(change.at for change in changes), len(units)]
    levels = [_level(units[a:b], logs[a:b]) for a, b in itertools.pairwise(bounds)]
    steps = []
    for change in changes:
        before, after = units[change.at - 1].points[-1], units[change.at].points[0]
        changed = differences(
            [provenance(before.launch_id)], [provenance(after.launch_id)], (_row(series, before), _row(series, after))
        )
        steps.append(LevelStep(before, after, change.ratio, change.p, tuple(changed)))
    return History(series, kind, tuple(levels), tuple(steps), len(series.points) - len(newest))


def enough(series: Series, unit: Kind | None = None) -> bool:
    """Whether a series has as many units as are judged."""
    return len(units_of(series.points, unit or kind_of(series.points))) >= LEAST


def too_few(series: Series, kind: Kind) -> str:
    """Say that a series has too few units, and what they are."""
    count = len(units_of(series.points, kind))
    launches, name = len(series.points), series.facts["benchmark"]
    if count == launches:
        return f"too few {PLURALS[kind]}: {count} of {name}, {LEAST} are needed"
    units = kind if count == 1 else PLURALS[kind]
    few = PLURALS[kind]
    return (
        f"too few {few}: {launches} launches of {name} in {count} {units}, {LEAST} {few} are needed, since launches of "
        f"one {kind} share its conditions"
    )


def as_json(result: History) -> dict[str, object]:
    """A history as JSON can hold it; times are ``median_us``, or ``mean_us`` for imported rows."""
    time = f"{result.series.facts[FIELD]}_us"
    return {
        "series": {name: value for name, value in result.series.facts.items() if value is not None},
        "sizes": [result.series.facts["size_bytes"]],
        "unit": result.unit,
        "launches": [
            {
                "run_id": point.run_id,
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
                "units": level.units,
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


def _level(units: Sequence[Unit], logs: NDArray[np.float64]) -> Level:
    points = tuple(point for unit in units for point in unit.points)
    middle = float(np.median(logs))
    spread = 1.4826 * float(np.median(np.abs(logs - middle)))
    versions = tuple(dict.fromkeys(point.library_version for point in points))
    return Level(points, len(units), math.exp(middle), spread, versions)


def _row(series: Series, point: SeriesPoint) -> dict[str, object]:
    return {**series.facts, "library_version": point.library_version}

"""Units of a history: the launches that share their conditions count once.

Launches of one run, and runs of one night, share what the machine was like then. Taken as independent they show
changes that no change of the system made (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from omb_py.results.analysis.series import Point, version_key
from omb_py.results.statistics.nights import nights_of

Kind = Literal["launch", "run", "night"]
KINDS: Final[tuple[Kind, ...]] = ("launch", "run", "night")
PLURALS: Final[dict[Kind, str]] = {"launch": "launches", "run": "runs", "night": "nights"}


@dataclass(frozen=True, slots=True)
class Unit:
    """Launches of one library version that share their conditions, in order of time."""

    points: tuple[Point, ...]

    @property
    def log_time(self) -> float:
        """Mean over the launches of their logs."""
        return sum(point.log_time for point in self.points) / len(self.points)


def _nights(points: Sequence[Point]) -> dict[str, int]:
    return nights_of((point.run_id, datetime.fromisoformat(point.started_at)) for point in points)


def kind_of(points: Sequence[Point]) -> Kind:
    """Choose the unit: the night where the launches are of several, else the run."""
    return "night" if max(_nights(points).values(), default=0) > 0 else "run"


def units_of(points: Sequence[Point], kind: Kind, versions: bool = False) -> list[Unit]:
    """Group launches into units, in order of the first launch of each.

    Args:
        points: launches in order of time.
        kind: the unit. Two versions of the library in one run or night make two units.
        versions: order by version of the library first, older versions before newer ones.
    """
    nights = _nights(points)
    named: dict[Kind, Callable[[int], Hashable]] = {
        "launch": lambda at: at,
        "run": lambda at: points[at].run_id,
        "night": lambda at: nights[points[at].run_id],
    }
    name = named[kind]
    groups: dict[Hashable, list[Point]] = {}
    for at, point in enumerate(points):
        groups.setdefault((name(at), point.library_version), []).append(point)
    units = [Unit(tuple(group)) for group in groups.values()]
    return sorted(units, key=lambda unit: version_key(unit.points[0].library_version)) if versions else units

"""Units of a history: the launches that share their conditions count once.

Launches of one run, and runs of one night, share what the machine was like then. Taken as independent they show
changes that no change of the system made (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from omb_py.results.analysis.series import Point, version_key

Kind = Literal["launch", "run", "night"]
KINDS: Final[tuple[Kind, ...]] = ("launch", "run", "night")
PLURALS: Final[dict[Kind, str]] = {"launch": "launches", "run": "runs", "night": "nights"}
PAUSE: Final = timedelta(hours=6)
"""A pause between two launches that ends a night."""
LONGEST: Final = timedelta(hours=24)
"""A night ends after this time at the latest, so that measuring all the time has nights too."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Launches of one library version that share their conditions, in order of time."""

    points: tuple[Point, ...]

    @property
    def log_time(self) -> float:
        """Mean over the launches of their logs."""
        return sum(point.log_time for point in self.points) / len(self.points)


def nights_of(points: Sequence[Point]) -> list[int]:
    """Number the nights: for each launch, in order of time, the number of its night from 0."""
    numbers: list[int] = []
    began = last = None
    for point in points:
        start = datetime.fromisoformat(point.started_at)
        if began is None or last is None or start - last > PAUSE or start - began >= LONGEST:
            began = start
            numbers.append(numbers[-1] + 1 if numbers else 0)
        else:
            numbers.append(numbers[-1])
        last = start
    return numbers


def kind_of(points: Sequence[Point]) -> Kind:
    """Choose the unit: the night where the launches are of several, else the run."""
    nights = nights_of(points)
    return "night" if nights and nights[-1] > 0 else "run"


def units_of(points: Sequence[Point], kind: Kind, versions: bool = False) -> list[Unit]:
    """Group launches into units, in order of the first launch of each.

    Args:
        points: launches in order of time.
        kind: the unit. Two versions of the library in one run or night make two units.
        versions: order by version of the library first, older versions before newer ones.
    """
    nights = nights_of(points)
    named: dict[Kind, Callable[[int], Hashable]] = {
        "launch": lambda at: at,
        "run": lambda at: points[at].run_id,
        "night": lambda at: nights[at],
    }
    name = named[kind]
    groups: dict[Hashable, list[Point]] = {}
    for at, point in enumerate(points):
        groups.setdefault((name(at), point.library_version), []).append(point)
    units = [Unit(tuple(group)) for group in groups.values()]
    return sorted(units, key=lambda unit: version_key(unit.points[0].library_version)) if versions else units

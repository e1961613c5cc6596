"""What moves over time within one version of a library: a drift, or a step that no upgrade explains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from omb_py.dashboards.base import series
from omb_py.dashboards.base.theme import Facts
from omb_py.dashboards.changes.regions import LOG
from omb_py.dashboards.changes.sides import COLUMNS, KEY, VERSION, names_of
from omb_py.results.analysis.crossover import ALPHA
from omb_py.results.statistics.change_points import DELTA, LEAST, SHORTEST
from omb_py.results.statistics.holm import holm
from omb_py.results.statistics.t_test import paired, split_chances, welch_of_rounded

LEAST_STRETCHES = 4
"""Fewest stretches of launches from whose halves a drift is judged: each is one sample of it."""
SHORTEST_STRETCH = 4
"""Fewest launches of a stretch through which a line is drawn."""
SUBJECT, SERIES, STRETCH, TURN, VALUE = "subject", "series", "stretch", "turn", "value"


@dataclass(frozen=True)
class Launches:
    """A number a launch, of each benchmark and side."""

    rows: pd.DataFrame
    """A row a launch: ``subject`` (benchmark and side without version), ``series`` (subject and ranks), ``stretch``
    (series and version), ``launch_id``, ``started_at``, ``turn`` (its number in its series) and ``value``: the log of
    how far it lies from the mean of its stretch, over all its cells."""
    subjects: Mapping[int, Facts]
    """Number of a subject -> its columns."""

    def name(self, subject: int) -> str:
        """``allreduce over Open MPI``, and what tells it from others of this benchmark and library."""
        benchmark = self.subjects[subject]["benchmark"]
        alike = {number: own for number, own in self.subjects.items() if own["benchmark"] == benchmark}
        names = names_of([{name: value for name, value in own.items() if name != VERSION} for own in alike.values()])
        return f"{benchmark} over {names[[*alike].index(subject)]}"


@dataclass(frozen=True)
class LaunchDrift:
    """A subject that gets slower, or faster, from launch to launch without a change of version."""

    subject: int
    each: float
    """Change of the log from one launch to the next."""
    launches: int
    """Launches of its longest series, over all versions."""

    @property
    def ratio(self) -> float:
        """The last launch over the first, in times."""
        return math.exp(self.each * (self.launches - 1))


@dataclass(frozen=True)
class TimeStep:
    """A step within one version."""

    subject: int
    ratio: float
    rows: pd.DataFrame
    """The launches of its series in order of time."""
    at: int
    """Place of the first launch of the new level."""

    @property
    def began_at(self) -> datetime:
        """The start of that launch."""
        began: datetime = self.rows["started_at"].iloc[self.at]
        return began


def moved_most(step: TimeStep, frame: pd.DataFrame) -> tuple[float, pd.DataFrame]:
    """The cell that moved most in the direction of a step: its own ratio, of geometric means of launches, and its rows.

    Args:
        frame: rows of its subject with :data:`omb_py.dashboards.changes.regions.LOG`.
    """
    own = frame[frame["launch_id"].isin(step.rows["launch_id"])]
    after = own["started_at"] >= step.began_at
    means = [own[there].groupby(KEY, observed=True)[LOG].mean() for there in (~after, after)]
    moved = (means[1] - means[0]).dropna()
    key = str((moved if step.ratio > 1 else -moved).idxmax())
    return math.exp(float(moved[key])), frame[frame[KEY] == key]


def launches(frame: pd.DataFrame) -> Launches:
    """A number a launch.

    Args:
        frame: rows with :data:`omb_py.dashboards.changes.regions.LOG`.
    """
    names = [name for name in ("benchmark", *COLUMNS) if name in frame]
    line = [name for name in names if name != VERSION]
    part = frame[[*names, "ranks", KEY, "launch_id", "started_at", LOG]]

    def by(columns: list[str]) -> Any:
        apart = series.varying(part, columns) or columns[:1]  # most columns have one value, which groups nothing
        return part.groupby(apart, observed=True, dropna=False, sort=False)

    numbers = part.assign(
        **{VALUE: part[LOG] - by([*names, KEY])[LOG].transform("mean"), SUBJECT: by(line).ngroup()},
        **{SERIES: by([*line, "ranks"]).ngroup(), STRETCH: by([*names, "ranks"]).ngroup()},
    )
    grouped = numbers.groupby([SUBJECT, SERIES, STRETCH, "launch_id"], observed=True, sort=False)
    each = grouped.agg(started_at=("started_at", "min"), value=(VALUE, "mean")).reset_index()
    each = each.sort_values([SERIES, "started_at", "launch_id"], kind="stable", ignore_index=True)
    firsts = numbers.drop_duplicates(SUBJECT)[[SUBJECT, *names]].astype(object)
    subjects = {
        int(number): dict(zip(names, values, strict=True)) for number, *values in firsts.itertuples(index=False)
    }
    return Launches(each.assign(**{TURN: each.groupby(SERIES).cumcount()}), subjects)


def drifts(each: Launches) -> list[LaunchDrift]:
    """Subjects that drift, by the slope of a least-squares line through each stretch of launches.

    The stretch is the sample: a paired t of the lines' ends over stretches, Holm's method over subjects. So the
    launches of a stretch may depend on each other. A drift that moves the last launch by less than delta from the
    first counts as none.
    """
    judged: list[tuple[float, LaunchDrift]] = []
    for subject, rows in each.rows.groupby(SUBJECT, sort=True):
        slopes = [
            float(np.polyfit(stretch[TURN].to_numpy(dtype=np.float64), stretch[VALUE].to_numpy(dtype=np.float64), 1)[0])
            for _, stretch in rows.groupby(STRETCH, sort=True)
            if len(stretch) >= SHORTEST_STRETCH
        ]
        if len(slopes) >= LEAST_STRETCHES:
            estimate = paired([0.0] * len(slopes), slopes)
            judged.append((estimate.p, LaunchDrift(int(str(subject)), estimate.difference, int(rows[TURN].max()) + 1)))
    adjusted = holm([p for p, _ in judged])
    return [
        drift
        for p, (_, drift) in zip(adjusted, judged, strict=True)
        if p <= ALPHA and abs(math.log(drift.ratio)) >= math.log1p(DELTA)
    ]


def without_drifts(frame: pd.DataFrame, each: Launches, known: list[LaunchDrift]) -> pd.DataFrame:
    """The rows with the drifts taken out of :data:`omb_py.dashboards.changes.regions.LOG`, so that versions compare."""
    if not known:
        return frame
    slopes = {drift.subject: drift.each for drift in known}
    rows = each.rows[each.rows[SUBJECT].isin(slopes)]
    off = rows.assign(off=rows[SUBJECT].map(slopes) * rows[TURN])
    names = [name for name in ("benchmark", *COLUMNS) if name in frame and name != VERSION]
    number = frame.groupby(names, observed=True, dropna=False, sort=False).ngroup()
    where = dict(zip(zip(off[SUBJECT], off["launch_id"].astype(str), strict=True), off["off"], strict=True))
    taken = [where.get(place, 0.0) for place in zip(number, frame["launch_id"].astype(str), strict=True)]
    return frame.assign(**{LOG: frame[LOG] - taken})


def steps(each: Launches, drifting: list[LaunchDrift]) -> list[TimeStep]:
    """The largest step within a version of each subject: Welch's t at every split, Bonferroni over splits and series.

    Versions are no steps here: a value is the distance from the mean of its version. Subjects that drift are left out.
    """
    left_out = {drift.subject for drift in drifting}
    tried: list[tuple[float, TimeStep]] = []
    count = 0
    for _, rows in each.rows[~each.rows[SUBJECT].isin(left_out)].groupby(SERIES, sort=True):
        values = rows[VALUE].to_numpy(dtype=float)
        if len(values) < LEAST:
            continue
        chances = split_chances(values, SHORTEST)
        count += len(chances)
        at = SHORTEST + int(chances.argmin())
        estimate = welch_of_rounded(values[:at].tolist(), values[at:].tolist())
        tried.append((estimate.p, TimeStep(int(rows[SUBJECT].iloc[0]), estimate.ratio, rows, at)))
    known: dict[int, tuple[float, TimeStep]] = {}
    for p, step in sorted(tried, key=lambda pair: pair[0]):
        if p * count <= ALPHA and abs(math.log(step.ratio)) >= math.log1p(DELTA):
            known.setdefault(step.subject, (p, step))
    return [step for _, step in known.values()]

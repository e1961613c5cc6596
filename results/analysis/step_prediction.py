"""Predicted times of a step's calls from the measured curves of single operations. Rows in, times out.

:mod:`omb_py.backends.timeline` simulates how the calls of the ranks meet (docs/workloads/predict.md).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median
from typing import Final

import numpy as np

from omb_py.engine.program.language import Message
from omb_py.errors import UsageError
from omb_py.results.analysis.cost_model import ALIKE, RANKED, grouped, launch_time, predict_at_ranks
from omb_py.results.analysis.series import TimedRow
from omb_py.results.statistics.curve_fit import LEAST, Curve, fit
from omb_py.results.statistics.rank_scaling import FURTHEST
from omb_py.results.store.row import Row
from omb_py.results.units import size_text

MESSAGES: Final = "latency"
"""Benchmark that measures the time of one message."""
WRITES: Final = "put_latency"
"""Benchmark that measures the time of one write into another rank's memory."""
SIDE: Final = ("backend", "binding", "library", "device", "buffer")
"""Columns that the rows of the curves must share with the step."""
SERIAL: Final = "serial"
"""Prefix of the metrics that hold the times of the calls of a row of the table."""
MEDIAN: Final = ".median"
"""Ending of those that are medians over the iterations, not means."""
ALL: Final = "all calls, one by one"


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of one rank whose time is asked for."""

    row: str
    """Row of the table of calls."""
    benchmark: str
    """Benchmark that measures its time; :data:`MESSAGES` for messages, :data:`WRITES` for writes of this rank alone."""
    size_bytes: int = 0
    """Size as that benchmark counts it; the largest where members differ."""
    dtype: str = ""
    """Datatype; empty means any."""
    members: tuple[int, ...] = ()
    """Ranks that make the call together; empty means all."""
    in_place: bool = False
    sends: tuple[Message, ...] = ()
    receives: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """An operation whose time is unknown."""

    benchmark: str
    ranks: int
    dtype: str
    in_place: bool
    size_bytes: int
    why: str


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predicted times of a step's calls, one after the other, in µs, as means over the ranks."""

    rows: Mapping[str, float | None]
    """Row of the table of calls -> time of all its calls; None where one of them is unknown."""
    missing: tuple[Missing, ...] = ()
    ranks_scaled: tuple[str, ...] = ()
    """Operations that were predicted from other numbers of ranks."""

    @property
    def serial_us(self) -> float | None:
        """Time of all calls in µs; None where one is unknown."""
        known = [us for us in self.rows.values() if us is not None]
        return sum(known) if len(known) == len(self.rows) else None


@dataclass(frozen=True, slots=True)
class Observed:
    """A measured time: the median over launches of each launch's median."""

    time_us: float
    launches: int
    floor: float | None
    """How far one launch is from another, as the median over all pairs of the larger over the smaller, less 1; None
    with one launch. No prediction of a launch can be closer, as a rule."""


@dataclass(frozen=True, slots=True)
class PredictionLine:
    """A predicted time beside the measured one."""

    what: str
    predicted_us: float | None
    observed: Observed | None

    @property
    def measured_us(self) -> float | None:
        """The measured time; None where it was not measured."""
        return self.observed.time_us if self.observed else None

    @property
    def error(self) -> float | None:
        """Predicted over measured, less 1."""
        if self.predicted_us is None or not self.measured_us:
            return None
        return self.predicted_us / self.measured_us - 1

    @property
    def as_good_as_a_launch(self) -> bool:
        """Whether the prediction is as close as launches are to each other, to half a percent."""
        floor = self.observed.floor if self.observed else None
        if floor is None or not self.predicted_us or not self.measured_us:
            return False
        return abs(math.log(self.predicted_us / self.measured_us)) <= math.log1p(max(floor, 0.005))


class NoModel(Exception):
    """The time of an operation is unknown; the message says why."""


@dataclass(frozen=True, slots=True)
class SizeSweep:
    """Measured times of one operation over size."""

    sizes: tuple[int, ...]
    """In bytes, ascending."""
    times_us: tuple[float, ...]
    fit: Curve

    @classmethod
    def of(cls, times: Mapping[int, float]) -> SizeSweep:
        """Make one from size in bytes -> time in µs. A size of 0 counts as 1 byte."""
        sizes = sorted(times)
        values = tuple(times[size] for size in sizes)
        return cls(tuple(max(size, 1) for size in sizes), values, fit(sizes, values))

    def time_us(self, size: int) -> float:
        """The time in µs at a size in bytes: on the line between its measured neighbours, or on the fit outside of all.

        Between two measured sizes a fit over all is less close, where a library changes its protocol.
        """
        if not self.sizes[0] <= size <= self.sizes[-1]:
            return float(self.fit.time_us([size])[0])
        return float(np.interp(size, self.sizes, self.times_us))


@dataclass(slots=True)
class Curves:
    """The times of operations on one side, from measured sweeps.

    Each curve is fitted once and kept.
    """

    rows: Sequence[TimedRow]
    """Rows of any benchmarks, from :func:`omb_py.results.analysis.series.timed`."""
    side: Mapping[str, object]
    """Values of :data:`SIDE`, and ``nodes`` and ``ranks`` of the step."""
    launches: Collection[str] = ()
    """Launches of the step: sweeps made in them are preferred, since launches differ."""
    scaled: set[str] = field(default_factory=set)
    """Operations that have been predicted from other numbers of ranks so far."""
    _known: dict[Hashable, SizeSweep | float | str] = field(default_factory=dict)

    def time_us(self, ask: Ask, size_bytes: int, ranks: int) -> float:
        """Compute the time of an operation in µs.

        Raises:
            NoModel: the operation was not measured, or not near this size or number of ranks.
        """
        key = (ask.benchmark, ask.dtype, ask.in_place, ranks)
        if key not in self._known:
            try:
                self._known[key] = self._find(ask, ranks)
            except NoModel as error:
                self._known[key] = str(error)
        curve = self._known[key]
        if isinstance(curve, str):
            raise NoModel(curve)
        if isinstance(curve, float):
            return curve
        first, last = curve.sizes[0], curve.sizes[-1]
        if not first / FURTHEST <= size_bytes <= FURTHEST * last:
            raise NoModel(
                f"{size_text(size_bytes)} is more than {FURTHEST} times outside of the measured sizes, "
                f"{size_text(first)} to {size_text(last)}"
            )
        return curve.time_us(size_bytes)

    def _find(self, ask: Ask, ranks: int) -> SizeSweep | float:
        rows = [row for row in self.rows if self._is_of(row, ask)]
        try:
            return self._find_curve(ask, ranks, [row for row in rows if row["launch_id"] in self.launches])
        except NoModel:
            return self._find_curve(ask, ranks, rows)

    def _find_curve(self, ask: Ask, ranks: int, own: Sequence[TimedRow]) -> SizeSweep | float:
        here = [part for part in grouped(own, ALIKE) if part[0]["ranks"] == ranks and self._placed(part[0], ranks)]
        if ask.benchmark.removeprefix("i") == "barrier" and here:
            return float(launch_time(max(here, key=lambda part: _liking(part, ask)))[0])
        enough = [part for part in here if len({row["size_bytes"] for row in part}) >= LEAST]
        if enough:
            best = max(enough, key=lambda part: _liking(part, ask))
            by_size = {size: [row for row in best if row["size_bytes"] == size] for size in _sizes(best)}
            return SizeSweep.of({size: launch_time(rows)[0] for size, rows in by_size.items()})
        if here:
            most = max(len(_sizes(part)) for part in here)
            raise NoModel(f"{most} sizes are too few: {LEAST} are needed")
        return self._from_other_ranks(own, ask, ranks)

    def _from_other_ranks(self, rows: Sequence[TimedRow], ask: Ask, ranks: int) -> SizeSweep:
        parts = grouped(rows, tuple(name for name in ALIKE if name not in RANKED))
        parts = [part for part in parts if len({row["ranks"] for row in part}) > 1]
        if not parts or ask.benchmark in (MESSAGES, WRITES):
            raise NoModel("not measured")
        try:
            (scaling,) = predict_at_ranks(max(parts, key=lambda part: _liking(part, ask)), ranks)
        except UsageError as error:
            raise NoModel(str(error)) from None
        if len(scaling.sizes) < LEAST:
            raise NoModel(f"{len(scaling.sizes)} sizes are too few: {LEAST} are needed")
        at = ", ".join(map(str, scaling.measured))
        self.scaled.add(f"{ask.benchmark} at {ranks} ranks from {at}")
        return SizeSweep.of({size: prediction.time_us for size, prediction in scaling.sizes.items()})

    def _is_of(self, row: Row, ask: Ask) -> bool:
        same = row["benchmark"] == ask.benchmark and row["metric"] == "latency" and row["op"] in (None, "sum")
        return bool(same and ask.dtype in ("", row["dtype"]) and all(row[name] == self.side[name] for name in SIDE))

    def _placed(self, row: Row, ranks: int) -> bool:
        # on which nodes a part of the step's ranks runs is not known, so only sweeps of all ranks are compared by nodes
        return bool(ranks != self.side["ranks"] or row["nodes"] == self.side["nodes"])


def _sizes(rows: Sequence[TimedRow]) -> list[int]:
    return sorted({int(row["size_bytes"] or 0) for row in rows})


def _liking(rows: Sequence[TimedRow], ask: Ask) -> tuple[object, ...]:
    """Rank a curve among several of an operation: made as the call is, then complete, then new.

    A call of a step has a buffer of its own, which other calls pushed out of the cache: a cold sweep is like it.
    """
    first = rows[0]
    plain = first["cache"] == "rotate", first["datatype_layout"] in (None, "contiguous")
    alike = (first["source"] == "omb-py", bool(first["in_place"]) == ask.in_place, *plain)
    return (*alike, len(_sizes(rows)), max(str(row["started_at"]) for row in rows))


def median_metrics(rows: Sequence[Row]) -> dict[str, float]:
    """Compute each metric of a step as the median over its rows, one row a launch."""
    names = dict.fromkeys(name for row in rows for name in row["metrics"] or {})
    return {name: median(row["metrics"][name] for row in rows if name in (row["metrics"] or {})) for name in names}


def observed(steps: Sequence[Row]) -> dict[str, Observed]:
    """The measured time of each row of the table of calls, and of :data:`ALL`; `steps` has one row a launch."""
    launches = [_times_of(step["metrics"] or {}) for step in steps]
    out = {}
    for what in dict.fromkeys(what for times in launches for what in times):
        values = [times[what] for times in launches if what in times]
        pairs = [abs(math.log(a / b)) for a, b in combinations(values, 2) if a > 0 and b > 0]
        out[what] = Observed(median(values), len(values), math.expm1(median(pairs)) if pairs else None)
    return out


def _times_of(metrics: Mapping[str, float]) -> dict[str, float]:
    """The medians of one launch, and their sum."""
    ends = f"{SERIAL}.", MEDIAN
    times = {
        name.removeprefix(ends[0]).removesuffix(ends[1]): time
        for name, time in metrics.items()
        if name.startswith(ends[0]) and name.endswith(ends[1])
    }
    return {**times, ALL: sum(times.values())} if times else {}


def put_beside(prediction: Predicted, times: Mapping[str, Observed]) -> list[PredictionLine]:
    """Put the predicted time of each row of the table of calls, and of all calls, beside the measured one.

    Args:
        times: those of the measured step (:func:`observed`); empty where it was not measured.
    """
    lines = [PredictionLine(row, us, times.get(row)) for row, us in prediction.rows.items()]
    return [*lines, PredictionLine(ALL, prediction.serial_us, times.get(ALL))]


def as_json(prediction: Predicted, times: Mapping[str, Observed]) -> dict[str, object]:
    lines = [
        {
            "what": line.what,
            "predicted_us": line.predicted_us,
            "measured_us": line.measured_us,
            "error": line.error,
            "launches": line.observed.launches if line.observed else 0,
            "launches_differ_by": line.observed and line.observed.floor,
        }
        for line in put_beside(prediction, times)
    ]
    missing = [{name: getattr(gap, name) for name in Missing.__slots__} for gap in prediction.missing]
    return {"lines": lines, "missing": missing, "scaled": list(prediction.ranks_scaled)}

"""What the calls of a step take, predicted from the curves of single operations: rows in, times out.

The calls run as in the loop ``serial`` of a workload: each until it is done, then the next. A collective begins when
its last rank has come; a message is under way when both its ends have come; a rank sends its messages of a call one
after the other, and gets them so, both at once (docs/workloads/predict.md).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from omb_py.engine.program.message import Message
from omb_py.errors import UsageError
from omb_py.results.analysis.cost_model import ALIKE, RANKED, grouped, launch_time, scaled
from omb_py.results.formats.units import size_text
from omb_py.results.statistics.curve_fit import LEAST, Curve, fit
from omb_py.results.statistics.rank_scaling import FURTHEST

Row = Mapping[str, Any]

MESSAGES: Final = "latency"
"""The benchmark that says what one message takes."""
SIDE: Final = ("backend", "binding", "library", "device", "buffer")
"""Columns that are equal in the rows of the curves and in the step's."""
SERIAL: Final = "serial"
"""Beginning of the metrics that say what the calls of a row of the table took."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of one rank."""

    row: str
    """Of the table of calls."""
    benchmark: str
    """Under which name its time is measured; :data:`MESSAGES` for messages."""
    size_bytes: int = 0
    """As that benchmark counts; of members that differ the largest holds."""
    dtype: str = ""
    """Empty: whatever the type."""
    members: tuple[int, ...] = ()
    """Ranks that make the call together; empty: all."""
    in_place: bool = False
    sends: tuple[Message, ...] = ()
    receives: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """An operation whose time is not known."""

    benchmark: str
    ranks: int
    dtype: str
    in_place: bool
    size_bytes: int
    """The largest that is wanted."""
    why: str


@dataclass(frozen=True, slots=True)
class Predicted:
    """What the calls of a step take one by one, in µs, as means over the ranks."""

    rows: Mapping[str, float | None]
    """Row of the table of calls -> all its calls together; None where one of them is not known."""
    missing: tuple[Missing, ...] = ()
    ranks_scaled: tuple[str, ...] = ()
    """Operations whose times rest on other numbers of ranks."""

    @property
    def serial_us(self) -> float | None:
        """All calls; None where one is not known."""
        known = [us for us in self.rows.values() if us is not None]
        return sum(known) if len(known) == len(self.rows) else None


@dataclass(frozen=True, slots=True)
class Line:
    """Predicted beside measured."""

    what: str
    predicted_us: float | None
    measured_us: float | None

    @property
    def error(self) -> float | None:
        """Predicted over measured, less 1."""
        if self.predicted_us is None or not self.measured_us:
            return None
        return self.predicted_us / self.measured_us - 1


class NoModel(Exception):
    """The time of an operation is not known, and why."""


@dataclass(slots=True)
class Curves:
    """The times of operations on one side, from measured sweeps."""

    rows: Sequence[Row]
    """Of any benchmarks, as :func:`omb_py.results.analysis.series.timed` gives them."""
    side: Mapping[str, Any]
    """:data:`SIDE`, and ``nodes`` and ``ranks`` of the step."""
    scaled: set[str] = field(default_factory=set)
    """What was predicted from other numbers of ranks so far."""
    _known: dict[Hashable, Curve | float | str] = field(default_factory=dict)

    def time_us(self, ask: Ask, size_bytes: int, ranks: int) -> float:
        """The time of an operation. Raises NoModel."""
        key = (ask.benchmark, ask.dtype, ask.in_place, ranks)
        if key not in self._known:
            try:
                self._known[key] = self._find(ask, ranks)
            except NoModel as error:
                self._known[key] = str(error)
        found = self._known[key]
        if isinstance(found, str):
            raise NoModel(found)
        if isinstance(found, float):
            return found
        first, last = found.segments[0].first, found.segments[-1].last
        if not first / FURTHEST <= size_bytes <= FURTHEST * last:
            raise NoModel(
                f"{size_text(size_bytes)} is more than {FURTHEST} times outside of the measured sizes, "
                f"{size_text(first)} to {size_text(last)}"
            )
        return float(found.time_us([size_bytes])[0])

    def _find(self, ask: Ask, ranks: int) -> Curve | float:
        mine = [row for row in self.rows if self._is_of(row, ask)]
        here = [part for part in grouped(mine, ALIKE) if part[0]["ranks"] == ranks and self._placed(part[0], ranks)]
        if ask.benchmark.removeprefix("i") == "barrier" and here:
            return float(launch_time(max(here, key=lambda part: _liking(part, ask)))[0])
        enough = [part for part in here if len({row["size_bytes"] for row in part}) >= LEAST]
        if enough:
            best = max(enough, key=lambda part: _liking(part, ask))
            by_size = {size: [row for row in best if row["size_bytes"] == size] for size in _sizes(best)}
            return fit(list(by_size), [launch_time(rows)[0] for rows in by_size.values()])
        if here:
            most = max(len(_sizes(part)) for part in here)
            raise NoModel(f"{most} sizes are too few: {LEAST} are needed")
        return self._from_other_ranks(mine, ask, ranks)

    def _from_other_ranks(self, rows: Sequence[Row], ask: Ask, ranks: int) -> Curve:
        parts = grouped(rows, tuple(name for name in ALIKE if name not in RANKED))
        parts = [part for part in parts if len({row["ranks"] for row in part}) > 1]
        if not parts or ask.benchmark == MESSAGES:
            raise NoModel("not measured")
        try:
            (found,) = scaled(max(parts, key=lambda part: _liking(part, ask)), ranks)
        except UsageError as error:
            raise NoModel(str(error)) from None
        if len(found.sizes) < LEAST:
            raise NoModel(f"{len(found.sizes)} sizes are too few: {LEAST} are needed")
        at = ", ".join(map(str, found.measured))
        self.scaled.add(f"{ask.benchmark} at {ranks} ranks from {at}")
        return fit(list(found.sizes), [one.time_us for one in found.sizes.values()])

    def _is_of(self, row: Row, ask: Ask) -> bool:
        told = row["benchmark"] == ask.benchmark and row["metric"] == "latency" and row["op"] in (None, "sum")
        return bool(told and ask.dtype in ("", row["dtype"]) and all(row[name] == self.side[name] for name in SIDE))

    def _placed(self, row: Row, ranks: int) -> bool:
        """The whole step's ranks are on as many nodes; of fewer ranks it is not known where they are."""
        return bool(ranks != self.side["ranks"] or row["nodes"] == self.side["nodes"])


def _sizes(rows: Sequence[Row]) -> list[int]:
    return sorted({int(row["size_bytes"] or 0) for row in rows})


def _liking(rows: Sequence[Row], ask: Ask) -> tuple[Any, ...]:
    """Of several curves of an operation the largest of these: as the call is made, complete, new."""
    one = rows[0]
    plain = one["cache"] in (None, "hot"), one["datatype_layout"] in (None, "contiguous")
    alike = (one["source"] == "omb-py", bool(one["in_place"]) == ask.in_place, *plain)
    return (*alike, len(_sizes(rows)), max(str(row["started_at"]) for row in rows))


def predict_step(calls: Sequence[Sequence[Ask]], curves: Curves) -> Predicted:
    """What the calls of a step take one by one.

    Args:
        calls: of each rank, in order.
        curves: of the side on which the step runs.

    Raises:
        ValueError: calls of ranks do not meet.
    """
    missing: dict[tuple[str, int, str, bool, str], int] = {}
    unknown: set[str] = set()
    priced: dict[Hashable, float] = {}

    def cost(ask: Ask, size: int, ranks: int) -> float:
        if ranks < 2:
            return 0.0
        key = (ask.benchmark, ask.dtype, ask.in_place, size, ranks)
        if key not in priced:
            try:
                priced[key] = curves.time_us(ask, size, ranks)
            except NoModel as error:
                what = (ask.benchmark, ranks, ask.dtype, ask.in_place, str(error))
                missing[what] = max(missing.get(what, 0), size)
                priced[key] = float("nan")
        if priced[key] != priced[key]:
            unknown.add(ask.row)
            return 0.0
        return priced[key]

    spent = timeline(calls, cost)
    rows = dict.fromkeys(row for own in spent for row in own)
    means = {row: None if row in unknown else sum(own.get(row, 0.0) for own in spent) / len(spent) for row in rows}
    told = tuple(Missing(what[0], what[1], what[2], what[3], size, what[4]) for what, size in missing.items())
    return Predicted(means, told, tuple(sorted(curves.scaled)))


def timeline(calls: Sequence[Sequence[Ask]], cost: Callable[[Ask, int, int], float]) -> list[dict[str, float]]:
    """For each rank the µs in the calls of each row, with the waiting for others.

    Args:
        calls: of each rank, in order.
        cost: (call, size, ranks) -> µs.

    Raises:
        ValueError: calls of ranks do not meet.
    """
    world = len(calls)
    clock, at = [0.0] * world, [0] * world
    spent: list[dict[str, float]] = [{} for _ in calls]
    turns: Counter[Hashable] = Counter()
    meeting: dict[Hashable, list[int]] = {}
    posted: dict[Hashable, int] = {}  # one end of a message -> its rank
    waits = [0] * world  # ends of messages that have not come, of the rank's present call
    ready: list[list[tuple[float, bool, int]]] = [[] for _ in calls]  # (when both ends were there, out, bytes)
    free = deque(range(world))

    def done(rank: int, end: float) -> None:
        row = calls[rank][at[rank]].row
        spent[rank][row] = spent[rank].get(row, 0.0) + end - clock[rank]
        clock[rank] = end
        at[rank] += 1
        free.append(rank)

    def together(rank: int, ask: Ask) -> None:
        turns[rank, ask.members] += 1
        key = (ask.members, turns[rank, ask.members])
        here = meeting.setdefault(key, [])
        here.append(rank)
        if len(here) == (len(ask.members) or world):
            del meeting[key]
            size = max(calls[one][at[one]].size_bytes for one in here)
            end = max(clock[one] for one in here) + cost(ask, size, len(here))
            for one in here:
                done(one, end)

    def finish(rank: int) -> None:
        port = {True: clock[rank], False: clock[rank]}
        for since, out, nbytes in sorted(ready[rank]):
            port[out] = max(port[out], since) + cost(calls[rank][at[rank]], nbytes, 2)
        ready[rank].clear()
        done(rank, max(port.values()))

    def exchange(rank: int, ask: Ask) -> None:
        ends = [((rank, m.peer, m.tag), True, m.nbytes) for m in ask.sends]
        ends += [((m.peer, rank, m.tag), False, m.nbytes) for m in ask.receives]
        waits[rank] = len(ends)
        complete = []
        for channel, out, nbytes in ends:
            turns[channel, out] += 1
            other = posted.pop((channel, not out, turns[channel, out]), None)
            if other is None:
                posted[channel, out, turns[channel, out]] = rank
                continue
            for one, way in ((rank, out), (other, not out)):
                waits[one] -= 1
                ready[one].append((max(clock[rank], clock[other]), way, nbytes))
            if other != rank and not waits[other]:
                complete.append(other)
        for one in (*complete, *(() if waits[rank] else (rank,))):
            finish(one)

    while free:
        rank = free.popleft()
        if at[rank] < len(calls[rank]):
            ask = calls[rank][at[rank]]
            (exchange if ask.benchmark == MESSAGES else together)(rank, ask)
    stuck = [rank for rank in range(world) if at[rank] < len(calls[rank])]
    if stuck:
        raise ValueError(f"calls of ranks do not meet: rank {stuck[0]} waits in call {at[stuck[0]]}")
    return spent


def measured(rows: Sequence[Row]) -> dict[str, float]:
    """The metrics of rows of one step, each the median over the launches."""
    names = dict.fromkeys(name for row in rows for name in row["metrics"] or {})
    return {name: median(row["metrics"][name] for row in rows if name in (row["metrics"] or {})) for name in names}


def beside(found: Predicted, metrics: Mapping[str, float]) -> list[Line]:
    """Each row of the table of calls, and all calls one by one.

    Args:
        found: the prediction.
        metrics: of the measured step (:func:`measured`); empty where it was not measured.
    """
    lines = [Line(row, us, metrics.get(f"{SERIAL}.{row}")) for row, us in found.rows.items()]
    return [*lines, Line(ALL, found.serial_us, metrics.get(f"{SERIAL}_us"))]


ALL: Final = "all calls, one by one"


def as_json(found: Predicted, metrics: Mapping[str, float]) -> dict[str, Any]:
    """As JSON can hold it."""
    lines = [
        {"what": line.what, "predicted_us": line.predicted_us, "measured_us": line.measured_us, "error": line.error}
        for line in beside(found, metrics)
    ]
    missing = [{name: getattr(one, name) for name in Missing.__slots__} for one in found.missing]
    return {"lines": lines, "missing": missing, "scaled": list(found.ranks_scaled)}

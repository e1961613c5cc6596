"""A sweep over all pairs (``omb-py links``): the tables of its launches and its verdicts, also from stored rows.

Judged by :mod:`omb_py.results.checks.links`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omb_py.engine.program.pair_schedule import DIRECTIONS
from omb_py.results.checks import links
from omb_py.results.compare.tags import LINKS_PART

Floats = NDArray[np.float64]
Row = Mapping[str, Any]

METRICS = tuple(links.DELTAS)
PART_TAG = LINKS_PART
"""Tag of a row: the part of a run to which its launch belongs, one of :data:`PARTS`."""
PARTS = ("sweep", "repeat")
MARKS = ("pair", "pass", "direction")
"""Keys that the ``parameters`` of every stored row of a sweep have."""
COLUMNS = ("run_id", "launch_index", "benchmark", "parameters", "metrics", "hosts", "samples_us", "tags")
"""Columns of the store that :func:`sweep_of` needs."""


@dataclass
class Table:
    """The measurements of a sweep or its repeat: a few numbers for each pair and pass."""

    members: tuple[int, ...]
    """Ranks that took part."""
    shares: Sequence[int]
    """Passes over all pairs of each launch, one launch after the other."""
    values: dict[str, Floats] = field(default_factory=dict)
    """Metric -> logs of times in µs, shape (passes, pairs); the slower direction for bandwidth. NaN: not measured."""
    directions: dict[str, Floats] = field(default_factory=dict)
    """Direction -> logs of the time of a window in µs, shape (passes, pairs)."""
    hosts: Sequence[str] = ()
    """Hosts of all ranks of the launch."""
    window_bytes: float = math.nan

    @property
    def fresh(self) -> bool:
        """True if there are several launches: then the launch is the unit, and no longer the pass."""
        return len(self.shares) > 1

    @property
    def units(self) -> dict[str, Floats]:
        """Metric -> logs of times, shape (launches, pairs): of each launch the median; of one launch all passes."""
        if not self.fresh:
            return self.values
        *ends, _ = accumulate(self.shares)
        return {
            metric: np.array([np.median(own, axis=0) for own in np.split(values, ends)])
            for metric, values in self.values.items()
        }

    def __post_init__(self) -> None:
        shape = sum(self.shares), len(self.members) * (len(self.members) - 1) // 2
        self.values = {metric: np.full(shape, np.nan) for metric in METRICS}
        self.directions = {direction: np.full(shape, np.nan) for direction in DIRECTIONS}
        self._place = {rank: k for k, rank in enumerate(self.members)}

    def latency(self, turn: int, pairs: Sequence[tuple[int, int]], samples: Floats) -> None:
        """Add the ping-pongs of a pass.

        Args:
            turn: number of the pass from 0.
            pairs: pairs of ranks.
            samples: times in µs, shape (pairs, iterations).
        """
        columns = self._columns(pairs)
        self.values["latency"][turn, columns] = np.log(np.median(samples, axis=1))
        self.values["tail"][turn, columns] = np.log(links.tail(samples))

    def bandwidth(
        self, turn: int, direction: str, pairs: Sequence[tuple[int, int]], samples: Floats, window_bytes: float
    ) -> None:
        """Add the windows of a pass in one direction, each of `window_bytes`; the rest is as in :meth:`latency`."""
        columns, means = self._columns(pairs), np.log(samples.mean(axis=1))
        self.directions[direction][turn, columns] = means
        self.values["bandwidth"][turn, columns] = np.fmax(self.values["bandwidth"][turn, columns], means)
        self.window_bytes = window_bytes

    def _columns(self, pairs: Sequence[tuple[int, int]]) -> list[int]:
        place, n = self._place, len(self.members)
        return [links.column_of(n, place[a], place[b]) for a, b in pairs]

    def typical(self, metric: str) -> Floats:
        """Compute the median over the passes of each pair: µs, or MB/s of the slower direction for bandwidth."""
        middle = _middle(self.values[metric])
        return self.window_bytes / middle if metric == "bandwidth" else middle

    def rate(self, direction: str) -> Floats:
        """Compute the bandwidth in MB/s of each pair in a direction; NaN where it was not measured."""
        rate: Floats = self.window_bytes / _middle(self.directions[direction])
        return rate

    @property
    def complete(self) -> bool:
        """True if every pair was measured in every pass."""
        return not any(np.isnan(values).any() for values in self.values.values())


def _middle(logs: Floats) -> Floats:
    known = ~np.isnan(logs).all(axis=0)
    medians = np.full(logs.shape[1], np.nan)
    medians[known] = np.exp(np.nanmedian(logs[:, known], axis=0))
    return medians


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep with its verdicts."""

    run_id: str
    names: tuple[str, ...]
    """Name of each endpoint: its host, with a number where a host has several."""
    first: Table
    suspects: tuple[links.Suspect, ...]
    repeat: Table | None
    outcomes: Mapping[links.Suspect, links.Suspect | None]
    """Suspect -> the suspect as the repeat measured it, or None where the repeat cleared it."""

    @property
    def judged(self) -> bool:
        """True if all pairs were measured and there are enough nodes for verdicts."""
        return self.first.complete and len(self.names) >= links.LEAST

    @property
    def confirmed(self) -> list[links.Suspect]:
        """Suspects that were slow twice, with the values of the repeat."""
        return [again for again in self.outcomes.values() if again is not None]

    def state(self, suspect: links.Suspect) -> str:
        """State of a suspect: ``confirmed``, ``cleared``, or ``suspect`` where it was not measured again."""
        if suspect not in self.outcomes:
            return "suspect"
        return "cleared" if self.outcomes[suspect] is None else "confirmed"

    def name(self, suspect: links.Suspect) -> str:
        """Name of a suspect: ``node3``, or ``node1 - node2`` for a link."""
        return " - ".join(self.names[end] for end in suspect.ends)


def names_of(hosts: Sequence[str]) -> tuple[str, ...]:
    """Name the ranks on these hosts.

    >>> names_of(["a", "b"]), names_of(["a", "a"])
    (('a', 'b'), ('a:0', 'a:1'))
    """
    if len(set(hosts)) == len(hosts):
        return tuple(hosts)
    return tuple(f"{host}:{hosts[:rank].count(host)}" for rank, host in enumerate(hosts))


def is_row(parameters: Mapping[str, str] | None) -> bool:
    """Say whether a stored row with these ``parameters`` belongs to a sweep."""
    return parameters is not None and all(mark in parameters for mark in MARKS)


def sweep_of(rows: Sequence[Row]) -> Sweep:
    """Judge a stored sweep again by the usual rules; it has no suspects if its first launch is not complete.

    Args:
        rows: all rows of one run, with :data:`COLUMNS`; ``parameters`` and ``metrics`` as mappings. Their tag says
            which launches are the sweep and which the repeat; without it the first launch is the sweep.

    Raises:
        ValueError: there is no row.
    """
    if not rows:
        raise ValueError("a sweep without rows")
    ordered = sorted(rows, key=lambda row: (int(row["launch_index"]), int(row["parameters"]["pass"])))
    first_launch = int(ordered[0]["launch_index"])
    parts: dict[str, list[Row]] = {part: [] for part in PARTS}
    for row in ordered:
        # before launches were tagged a sweep had one
        usual = PARTS[0] if int(row["launch_index"]) == first_launch else PARTS[1]
        parts[dict(row.get("tags") or {}).get(PART_TAG, usual)].append(row)
    first, *more = [_table(own) for own in parts.values() if own]
    plain = Sweep(str(rows[0]["run_id"]), names_of(first.hosts), first, (), None, {})
    if not plain.judged or first.members != tuple(range(len(first.members))):
        return plain
    suspects = tuple(links.suspects(first.units, len(first.members), fresh=first.fresh))
    repeat = more[0] if suspects and more and more[0].complete else None
    outcomes = links.confirm(suspects, repeat.units, repeat.members, fresh=repeat.fresh) if repeat is not None else {}
    return replace(plain, suspects=suspects, repeat=repeat, outcomes=outcomes)


def _table(rows: Sequence[Row]) -> Table:
    """Rebuild a table from its stored rows, which are in the order of launches and passes."""
    hosts: dict[int, str] = {}
    turns: dict[tuple[int, str], int] = {}
    for row in rows:
        hosts.update(zip(_pair(row), map(str, row["hosts"]), strict=True))
        turns.setdefault(_turn(row), len(turns))
    members = tuple(sorted(hosts))
    shares = list(Counter(launch for launch, _ in turns).values())
    table = Table(members, shares, hosts=[hosts[rank] for rank in members])
    for row in rows:
        turn, pair = turns[_turn(row)], (_pair(row),)
        samples = _samples(row["samples_us"])
        if row["benchmark"] == "latency":
            table.latency(turn, pair, samples)
        else:
            moved = float((row["metrics"] or {}).get("bytes_moved", math.nan))
            table.bandwidth(turn, row["parameters"]["direction"], pair, samples, moved)
    return table


def _turn(row: Row) -> tuple[int, str]:
    """The launch, and its pass."""
    return int(row["launch_index"]), str(row["parameters"]["pass"])


def _pair(row: Row) -> tuple[int, int]:
    first, second = str(row["parameters"]["pair"]).split("-")
    return int(first), int(second)


def _samples(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64).reshape(1, -1)

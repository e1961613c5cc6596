"""A sweep over all pairs (``omb-py links``): the tables of its launches and its verdicts, also from stored rows.

Judged by :mod:`omb_py.results.checks.links`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from omb_py.engine.program.pair_schedule import DIRECTIONS
from omb_py.errors import NEGATIVE, OK
from omb_py.results.checks import links
from omb_py.results.checks.links import Floats
from omb_py.results.compare.tags import LINKS_PART
from omb_py.results.document import Document, TextTable
from omb_py.results.store.row import Row
from omb_py.results.units import listed

if TYPE_CHECKING:
    import pandas as pd

METRICS = tuple(links.DELTAS)
PARTS = ("sweep", "repeat")
"""Values of the tag :data:`~omb_py.results.compare.tags.LINKS_PART`."""
MARKS = ("pair", "pass", "direction")
"""Keys that the ``parameters`` of every stored row of a sweep have."""
COLUMNS = ("run_id", "launch_index", "benchmark", "parameters", "metrics", "hosts", "samples_us", "tags")
"""Columns of the store that :func:`sweep_of` needs."""


@dataclass
class PairTable:
    """The measurements of a sweep or its repeat: a few numbers for each pair and pass."""

    members: tuple[int, ...]
    """The ranks, in order."""
    shares: Sequence[int]
    """Passes over all pairs of each launch, one launch after the other."""
    values: dict[str, Floats] = field(default_factory=dict)
    """Metric -> logs of times in µs, shape (passes, pairs); the slower direction for bandwidth. NaN: not measured."""
    directions: dict[str, Floats] = field(default_factory=dict)
    """Direction -> logs of the time of a window in µs, shape (passes, pairs)."""
    hosts: Sequence[str] = ()
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

    def latency(self, turn: int, pairs: Sequence[tuple[int, int]], samples: Floats) -> None:
        """Add the ping-pongs of a pass.

        Args:
            turn: number of the pass from 0.
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

    def _columns(self, pairs: Sequence[tuple[int, int]]) -> links.Ints:
        places = np.searchsorted(self.members, np.sort(np.array(pairs, np.intp), axis=1))
        return links.column_of(len(self.members), places[:, 0], places[:, 1])

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


_SHOWN = 8
"""Most nodes of a group that are named."""


@dataclass(frozen=True, slots=True)
class PairSweep:
    """A sweep with its verdicts."""

    run_id: str
    names: tuple[str, ...]
    """Name of each endpoint: its host, with a number where a host has several."""
    first: PairTable
    suspects: tuple[links.Suspect, ...]
    repeat: PairTable | None
    outcomes: Mapping[links.Suspect, links.Suspect | None]
    """Suspect -> the suspect as the repeat measured it, or None where the repeat cleared it."""
    logs: tuple[str, ...] = ()
    """What logs say of themselves; empty where omb-py measured."""

    @property
    def judged(self) -> bool:
        """True if all pairs were measured and there are enough nodes for verdicts."""
        return self.first.complete and len(self.names) >= links.LEAST

    @property
    def confirmed(self) -> list[links.Suspect]:
        """Suspects that were slow twice, with the values of the repeat."""
        return [again for again in self.outcomes.values() if again is not None]

    @property
    def slow_nodes(self) -> list[str]:
        """Hosts of the nodes that were slow twice."""
        ends = [suspect.ends[0] for suspect in self.confirmed if suspect.kind == "node"]
        return list(dict.fromkeys(self.first.hosts[end] for end in ends))

    def state(self, suspect: links.Suspect) -> str:
        """State of a suspect: ``confirmed``, ``cleared``, or ``suspect`` where it was not measured again."""
        if suspect not in self.outcomes:
            return "suspect"
        return "cleared" if self.outcomes[suspect] is None else "confirmed"

    def name(self, suspect: links.Suspect) -> str:
        """Name of a suspect: ``node3``, ``node1 - node2`` for a link, ``node4, node5`` for a group."""
        names = [self.names[end] for end in suspect.ends]
        if suspect.kind == "group":
            return listed(names, _SHOWN)
        return " - ".join(names)


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


def sweep_of(rows: Sequence[Row]) -> PairSweep:
    """Judge a stored sweep again by the usual rules; it has no suspects if its first launch is not complete.

    Args:
        rows: all rows of one run, with :data:`COLUMNS`; ``parameters`` and ``metrics`` as mappings. Their tag says
            which launches are the sweep and which the repeat.

    Raises:
        ValueError: there is no row, or no sweep wrote the rows.
    """
    if not rows:
        raise ValueError("a sweep without rows")
    parts: dict[str, list[Row]] = {part: [] for part in PARTS}
    try:
        for row in sorted(rows, key=lambda row: (int(row["launch_index"]), int(row["parameters"]["pass"]))):
            parts[dict(row["tags"])[LINKS_PART]].append(row)
    except KeyError as lacking:
        raise ValueError(f"no sweep wrote these rows: {lacking} is not theirs") from None
    first, *more = [_table(own) for own in parts.values() if own]
    plain = PairSweep(str(rows[0]["run_id"]), names_of(first.hosts), first, (), None, {})
    if not plain.judged or first.members != tuple(range(len(first.members))):
        return plain
    suspects = tuple(links.suspects(first.units, len(first.members), fresh=first.fresh, hosts=first.hosts))
    repeat = more[0] if suspects and more and more[0].complete else None
    outcomes = links.confirm(suspects, repeat.units, repeat.members, fresh=repeat.fresh) if repeat is not None else {}
    return replace(plain, suspects=suspects, repeat=repeat, outcomes=outcomes)


def _table(rows: Sequence[Row]) -> PairTable:
    """Rebuild a table from its stored rows, which are in the order of launches and passes."""
    hosts: dict[int, str] = {}
    turns: dict[tuple[int, str], int] = {}
    for row in rows:
        hosts.update(zip(_pair(row), map(str, row["hosts"]), strict=True))
        turns.setdefault(_turn(row), len(turns))
    members = tuple(sorted(hosts))
    shares = list(Counter(launch for launch, _ in turns).values())
    table = PairTable(members, shares, hosts=[hosts[rank] for rank in members])
    for row in rows:
        turn, pair = turns[_turn(row)], (_pair(row),)
        samples = np.asarray(row["samples_us"], dtype=np.float64).reshape(1, -1)
        if row["benchmark"] == "latency":
            table.latency(turn, pair, samples)
        else:
            moved = float((row["metrics"] or {}).get("bytes_moved", math.nan))
            table.bandwidth(turn, row["parameters"]["direction"], pair, samples, moved)
    return table


def _turn(row: Row) -> tuple[int, str]:
    return int(row["launch_index"]), str(row["parameters"]["pass"])


def _pair(row: Row) -> tuple[int, int]:
    first, second = str(row["parameters"]["pair"]).split("-")
    return int(first), int(second)


GROUP_NOTE = (
    "links within such a group are as fast as others: look at what joins it to the rest; racks that are farther apart "
    "look the same, so sweep one rack at a time to judge them"
)
HEADS = ("what", "which", "metric", "state", "times as long", "expected by chance, at most")
UNITS = {"latency": "us", "tail": "us", "bandwidth": "MB/s"}


class SubjectMetric(TypedDict):
    """How a subject is slow in one metric."""

    slower: float
    """Times as long, in the repeat where there was one."""
    limit: float
    state: str


class Subject(TypedDict):
    """A node or link that was suspect."""

    kind: str
    name: str
    ends: list[str]
    state: str
    metrics: dict[str, SubjectMetric]


def subjects(sweep: PairSweep) -> list[Subject]:
    """The nodes and links that were suspect, confirmed ones first, then the slowest first."""
    by_subject: dict[tuple[str, tuple[int, ...]], Subject] = {}
    for suspect in sweep.suspects:
        state = sweep.state(suspect)
        latest = sweep.outcomes.get(suspect) or suspect
        subject = by_subject.setdefault(
            (suspect.kind, suspect.ends),
            {
                "kind": suspect.kind,
                "name": sweep.name(suspect),
                "ends": [sweep.names[e] for e in suspect.ends],
                "state": state,
                "metrics": {},
            },
        )
        subject["metrics"][suspect.metric] = {"slower": latest.slower, "limit": latest.limit, "state": state}
        subject["state"] = min(subject["state"], state, key=_ORDER.index)
    return sorted(
        by_subject.values(), key=lambda s: (_ORDER.index(s["state"]), -max(m["slower"] for m in s["metrics"].values()))
    )


_ORDER = ("confirmed", "suspect", "cleared")


def as_dict(sweep: PairSweep) -> dict[str, object]:
    n = len(sweep.names)
    first, second = links.pair_ends(n)
    typical = {metric: sweep.first.typical(metric) for metric in sweep.first.values}
    return {
        "run_id": sweep.run_id,
        "nodes": list(sweep.names),
        "units": UNITS,
        "median": {metric: float(np.median(values)) for metric, values in typical.items()},
        "found": subjects(sweep),
        **({"logs": list(sweep.logs)} if sweep.logs else {}),
        "pairs": [
            {"ends": [sweep.names[a], sweep.names[b]], **{metric: float(own[k]) for metric, own in typical.items()}}
            for k, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
        ],
    }


def matrix(sweep: PairSweep) -> pd.DataFrame:
    """Make the frame that :func:`omb_py.dashboards.figures.maps.pairs` draws.

    Returns:
        A row for each measured direction of a pair: ``source``, ``target``, ``value`` in MB/s, ``unit``.
    """
    import pandas as pd

    first, second = links.pair_ends(len(sweep.names))
    parts = []
    for direction in DIRECTIONS:
        source, target = (first, second) if direction == "forward" else (second, first)
        names = np.array(sweep.names, object)
        parts.append(
            pd.DataFrame(
                {"source": names[source], "target": names[target], "value": sweep.first.rate(direction), "unit": "MB/s"}
            )
        )
    every = pd.concat(parts)
    return every[every["value"].notna()].reset_index(drop=True)


def document_of(sweep: PairSweep) -> Document:
    by_state: dict[str, list[Subject]] = {state: [] for state in _ORDER}
    for subject in subjects(sweep):
        by_state[subject["state"]].append(subject)
    notes = []
    if by_state["cleared"]:
        notes.append(f"suspected, not confirmed: {_names(by_state['cleared'])}")
    if by_state["suspect"] and sweep.repeat is not None:
        notes.append(f"suspect, not repeated since others were slower: {_names(by_state['suspect'])}")
    if any(subject["kind"] == "group" for subject in by_state["confirmed"]):
        notes.append(GROUP_NOTE)
    notes += [*sweep.logs, *_groups_text(sweep)]
    if sweep.judged and not sweep.first.fresh and not sweep.logs:
        notes.append(
            "one launch: what is slow in this launch only cannot be told from what is slow for good: --launches 5"
        )
    rows = [
        (subject["kind"], subject["name"], metric, values["state"], f"{values['slower']:.3f}", f"{values['limit']:.3f}")
        for subject in subjects(sweep)
        for metric, values in subject["metrics"].items()
    ]
    return Document(
        "omb-py links",
        headline(sweep),
        NEGATIVE if sweep.confirmed else OK,
        partial(as_dict, sweep),
        tables=(TextTable(HEADS, rows, HEADS[:4], spare=HEADS[-1:]),) if rows else (),
        notes=notes,
    )


def headline(sweep: PairSweep) -> str:
    """Sum up in one line what is slow, and what may be: ``8 nodes, 28 links: node2 is slow (latency +50 %)``."""
    pairs = len(sweep.names) * (len(sweep.names) - 1) // 2
    found = subjects(sweep)
    slow, left = ([_describe(one) for one in found if one["state"] == state] for state in ("confirmed", "suspect"))
    maybe = f"suspect, not yet repeated: {listed(left, _SHOWN)}" if left else ""
    verdict = "; ".join(filter(None, (", ".join(slow), maybe))) or "nothing is slow"
    if not sweep.judged:
        verdict = "nothing is judged, since not all were measured"
    return f"{len(sweep.names)} nodes, {pairs} links: {verdict}"


def _groups_text(sweep: PairSweep) -> list[str]:
    """Say which nodes are nearer to each other: levels of their own were given to these."""
    if not sweep.judged:
        return []
    metric, units = next(iter(sweep.first.units.items()))
    values, _ = links.usual_value(units, sweep.first.fresh)
    groups = links.groups_of(values, len(sweep.names))
    members = [[sweep.names[node] for node in np.flatnonzero(groups == group)] for group in range(groups.max() + 1)]
    if len(members) < 2:
        return []
    return [f"nearer to each other by {metric}: {'; '.join(listed(names, _SHOWN) for names in members)}"]


def _names(subjects: Sequence[Subject]) -> str:
    return ", ".join(subject["name"] for subject in subjects)


def _describe(subject: Subject) -> str:
    slow = {metric: m["slower"] for metric, m in subject["metrics"].items() if m["state"] == subject["state"]}
    times = ", ".join(f"{metric} {_times(metric, factor)}" for metric, factor in slow.items())
    is_slow = "is slow" if subject["state"] == "confirmed" else "may be slow"
    if subject["kind"] == "group":
        are_slow = "are slow" if subject["state"] == "confirmed" else "may be slow"
        return f"{subject['name']} {are_slow} to all others ({times}): an uplink, a switch, or another rack"
    name = subject["name"] if subject["kind"] == "node" else f"link {subject['name']}"
    return f"{name} {is_slow} ({times})"


def _times(metric: str, slower: float) -> str:
    if metric == "bandwidth":
        return f"{100 / slower:.0f} %"
    return f"{slower:.3g} ×" if slower >= 2 else f"+{100 * (slower - 1):.0f} %"

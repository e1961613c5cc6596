"""The report of a search by groups (``omb-py links --isolate``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from omb_py.errors import NEGATIVE, OK
from omb_py.results.checks.isolation import Culprit
from omb_py.results.checks.links import Suspect
from omb_py.results.checks.pair_sweeps import HEADS
from omb_py.results.document import Document, TextTable
from omb_py.results.units import listed

_SHOWN = 8
"""Most possible culprits that are named."""


@dataclass(frozen=True, slots=True)
class IsolationResult:
    """What a search named, and what the pairs of a confirmation say of it."""

    run_id: str
    names: tuple[str, ...]
    """Name of each endpoint."""
    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    """Names of the switches; empty: not known."""
    benchmark: str
    launches: int
    """Launches of groups."""
    pair_launches: int
    """Launches of pairs, which confirmed or cleared what was named."""
    outcomes: Mapping[Culprit, Sequence[Suspect]]
    """What was named -> the metrics in which pairs confirmed it; none: cleared."""
    possible: tuple[Culprit, ...]
    """Of these one is probably slow, and the launches did not say which."""
    counted_from: float
    """So many times the usual time made a group slow."""
    unjudged: str = ""
    """What the groups cannot say."""

    @property
    def confirmed(self) -> list[Culprit]:
        return [culprit for culprit, slow in self.outcomes.items() if slow]

    @property
    def slow_nodes(self) -> list[str]:
        """Hosts of the nodes that are slow."""
        return list(dict.fromkeys(self.hosts[c.ends[0]] for c in self.confirmed if c.kind == "node"))

    def name(self, culprit: Culprit) -> str:
        """``node3``, ``uplink of leaf2``, ``link leaf1 - leaf7``."""
        if culprit.kind == "node":
            return self.names[culprit.ends[0]]
        names = [(self.switches or self.names)[end] for end in culprit.ends]
        return f"uplink of {names[0]}" if culprit.kind == "uplink" else f"link {' - '.join(names)}"


def isolation_document(result: IsolationResult) -> Document:
    """The report: the verdict first, then how sure and what was not judged."""
    rows = []
    for culprit, slow in result.outcomes.items():
        for suspect in slow or (None,):
            metric, *times = (suspect.metric, f"{suspect.slower:.3f}", f"{suspect.limit:.3f}") if suspect else [""] * 3
            state = "confirmed" if suspect else "not confirmed"
            rows.append((culprit.kind, result.name(culprit), metric, state, *times))
    notes = [f"{result.launches} launches of {result.benchmark} on groups, {result.pair_launches} of pairs"]
    notes.append(f"a group counted as slow from {result.counted_from:.3g} times the usual on: less is noise here")
    if result.unjudged:
        notes.append(result.unjudged)
    return Document(
        "omb-py links --isolate",
        headline(result),
        NEGATIVE if result.confirmed else OK,
        partial(as_dict, result),
        tables=(TextTable(HEADS, rows, HEADS[:4], spare=HEADS[-1:]),) if rows else (),
        notes=notes,
    )


def headline(result: IsolationResult) -> str:
    """``1024 nodes: node3 is slow; one of node5, node9 may be slow``."""
    slow = [f"{result.name(culprit)} is slow" for culprit in result.confirmed]
    cleared = [result.name(culprit) for culprit, pairs in result.outcomes.items() if not pairs]
    if cleared:
        slow.append(f"{', '.join(cleared)}: slow in groups, not in pairs")
    if possible := [result.name(culprit) for culprit in result.possible]:
        which = f"one of {listed(possible, _SHOWN)}" if len(possible) > 1 else possible[0]
        slow.append(f"{which} may be slow")
    nothing = f"nothing is {result.counted_from:.3g} times as slow as usual"
    return f"{len(result.names)} nodes: {'; '.join(slow) or nothing}"


def as_dict(result: IsolationResult) -> dict[str, object]:
    """The machine-readable form."""
    return {
        "run_id": result.run_id,
        "nodes": list(result.names),
        "switches": list(result.switches),
        "benchmark": result.benchmark,
        "launches": result.launches,
        "counted_from": result.counted_from,
        "pair_launches": result.pair_launches,
        "found": [
            {
                "kind": culprit.kind,
                "name": result.name(culprit),
                "state": "confirmed" if slow else "cleared",
                "metrics": {one.metric: {"slower": one.slower, "limit": one.limit} for one in slow},
            }
            for culprit, slow in result.outcomes.items()
        ],
        "possible": [{"kind": culprit.kind, "name": result.name(culprit)} for culprit in result.possible],
    }

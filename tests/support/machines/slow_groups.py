"""Machines whose nodes, uplinks and links are slow, for searches by groups (:mod:`omb_py.results.checks.isolation`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from omb_py.results.checks.isolation import Culprit, Isolation, Split

KINDS = ("normal", "bimodal", "nights")
"""Noise: launches log-normal; also a tenth of the launches and of the groups twice as slow; also nights that differ,
and a job beside that takes a part of the network in every third launch."""


@dataclass(frozen=True)
class Machine:
    """Nodes and what is slow, as factors."""

    nodes: int
    kind: str = "normal"
    slow: Mapping[int, float] = field(default_factory=dict)
    uplinks: Mapping[frozenset[int], float] = field(default_factory=dict)
    """Nodes of a switch -> factor of what leaves it."""
    links: Mapping[tuple[frozenset[int], frozenset[int]], float] = field(default_factory=dict)
    """Two sets of nodes -> factor of what goes between them."""

    def factor(self, group: frozenset[int]) -> float:
        """How much longer a collective of this group takes."""
        of_nodes = [self.slow[node] for node in group & self.slow.keys()]
        of_uplinks = [factor for own, factor in self.uplinks.items() if group & own and group - own]
        of_links = [factor for (one, other), factor in self.links.items() if group & one and group & other]
        return max([1.0, *of_nodes, *of_uplinks, *of_links])

    def times(self, split: Split, launch: int, random: np.random.Generator) -> list[float]:
        """Time of each group in one launch, µs."""
        count = len(split.groups)
        if self.kind == "quiet":
            return [100 * self.factor(frozenset(group)) for group in split.groups]
        whole = 0.15 * random.standard_normal() + (launch // 12) * 0.1 * (self.kind == "nights")
        own = (0.08 if self.kind == "nights" else 0.05) * random.standard_normal(count)
        if self.kind == "bimodal":
            whole += math.log(2) * (random.random() < 0.1)
            own += math.log(2) * (random.random(count) < 0.1)
        if self.kind == "nights" and launch % 3 == 0:
            start, width = int(random.integers(self.nodes)), max(1, self.nodes // 32)
            own += [math.log(1.5) * any(start <= node < start + width for node in group) for group in split.groups]
        return [
            100 * self.factor(frozenset(g)) * math.exp(whole + off) for g, off in zip(split.groups, own, strict=True)
        ]


def searched(machine: Machine, switches: list[range], seed: int) -> Isolation:
    """A finished search on a machine."""
    search, random = Isolation(machine.nodes, switches, seed), np.random.default_rng([seed, 1])
    while (split := search.next_split()) is not None:
        search.add(split, machine.times(split, search.launches, random))
    return search


FAULTS = ("nothing", "one node", "two nodes", "three nodes", "an uplink", "a link")


def broken(
    fault: str, nodes: int, per_switch: int, kind: str, seed: int, factor: float
) -> tuple[Machine, set[Culprit]]:
    """A machine with a fault somewhere, and what a search should name."""
    random, switches = np.random.default_rng([seed, 7]), switches_of(nodes, per_switch)
    if fault in ("an uplink", "a link"):
        ends = sorted(random.choice(len(switches), 1 + (fault == "a link"), replace=False).tolist())
        sets = [frozenset(switches[end]) for end in ends]
        if fault == "an uplink":
            return Machine(nodes, kind, uplinks={sets[0]: factor}), {Culprit("uplink", (ends[0],))}
        return Machine(nodes, kind, links={(sets[0], sets[1]): factor}), {Culprit("link", (ends[0], ends[1]))}
    slow = random.choice(nodes, FAULTS.index(fault), replace=False).tolist()
    return Machine(nodes, kind, slow=dict.fromkeys(slow, factor)), {Culprit("node", (node,)) for node in slow}


def switches_of(nodes: int, per_switch: int) -> list[range]:
    return [range(first, min(first + per_switch, nodes)) for first in range(0, nodes, per_switch)] if per_switch else []

"""Simulated fleets: what a sweep over all pairs of many nodes would have measured, drawn at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from omb_py.results.checks import links

Floats = NDArray[np.float64]
METRICS = ("latency", "tail", "bandwidth")
KINDS = ("normal", "t3", "AR 0.3", "AR 0.5", "AR 0.9", "night", "drift", "ties")
TICK, DRIFT = 0.05, 0.02
"""Step of quantised times; log a launch, and up to as much again from its first to its last round."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes that differ for good by `spread`, and pairs that are measured with `noise`, both in logs."""

    nodes: int
    spread: float = 0.008
    noise: float = 0.015
    passes: int = 1
    slow: Mapping[int, float] = field(default_factory=dict)
    """Node -> how many times as long its messages take."""
    links: Mapping[tuple[int, int], float] = field(default_factory=dict)
    drawn: float = 0.0
    """Share of the pairs that each launch draws by chance to be 30 % slower: rows are then launches."""
    launches: str = "normal"
    """What the values of a pair in successive launches are like, of :data:`KINDS`."""
    racks: tuple[int, ...] = ()
    """Nodes of each rack, whose links to other racks take longer; none: one rack."""
    between: float = 1.5
    """How many times as long those links take."""


def sweep(fleet: Fleet, seed: int, members: Sequence[int] = (), passes: int = 0, look: int = 0) -> dict[str, Floats]:
    """metric -> logs of times of every pair of `members`; nodes keep their own effect from look to look."""
    own = np.random.default_rng([seed, 1])
    noise = np.random.default_rng([seed, 2, look])
    chosen = np.array(members or range(fleet.nodes))
    first, second = links.pair_ends(len(chosen))
    made = {}
    for metric in METRICS:
        node = own.normal(0, fleet.spread, fleet.nodes)
        for slow, factor in fleet.slow.items():
            node[slow] += math.log(factor)
        mean = node[chosen][first] + node[chosen][second]
        for (a, b), factor in fleet.links.items():
            mean = mean + math.log(factor) * ((chosen[first] == min(a, b)) & (chosen[second] == max(a, b)))
        if fleet.racks:
            rack = np.repeat(np.arange(len(fleet.racks)), fleet.racks)[chosen]
            mean = mean + math.log(fleet.between) * (rack[first] != rack[second])
        # what a night does to a pair it does in all launches, also in those of the repeat
        night = own.normal(0, fleet.noise, (fleet.nodes, fleet.nodes)) if fleet.launches == "night" else None
        mean = mean if night is None else mean + night[chosen[first], chosen[second]]
        made[metric] = mean + _noise(noise, fleet, (passes or fleet.passes, len(first)))
        if fleet.launches == "ties":
            made[metric] = np.round(made[metric] / TICK) * TICK
        if fleet.drawn:
            made[metric] += math.log(1.3) * (noise.random(made[metric].shape) < fleet.drawn)
    return made


def _noise(rng: np.random.Generator, fleet: Fleet, shape: tuple[int, int]) -> Floats:
    """What launches add to each pair, shape (launches, pairs)."""
    if fleet.launches == "t3":
        return fleet.noise * rng.standard_t(3, shape)
    drawn = rng.normal(0, fleet.noise, shape)
    if fleet.launches.startswith("AR "):
        rho = float(fleet.launches.removeprefix("AR "))
        for row in range(1, len(drawn)):
            drawn[row] = rho * drawn[row - 1] + math.sqrt(1 - rho * rho) * drawn[row]
    if fleet.launches == "drift":
        drawn += DRIFT * (np.arange(shape[0])[:, None] + rng.random(shape))
    return drawn


def found_in(fleet: Fleet, seed: int, passes: int = 5, fresh: bool = False) -> list[links.Suspect]:
    """What a sweep and its repeat confirm, each (kind, ends) once; `fresh` says that rows are launches."""
    first = sweep(fleet, seed)
    found = links.suspects(first, fleet.nodes, fresh=fresh)
    if not found:
        return []
    effects = [links.take_apart(links.usual_value(p, fresh)[0], fleet.nodes) for p in first.values()]
    members = links.choose_again(found, effects)
    said = links.confirm(found, sweep(fleet, seed, members, passes, look=1), members, fresh=fresh)
    kept = {(one.kind, one.ends): one for one in said.values() if one is not None}
    return list(kept.values())

"""When things happen: the noise and length of operations, and the ports that ranks share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mock.config import Config
from omb_py.backends.mock.simulator.lower import Op
from omb_py.backends.mock.simulator.network import Port, Topology
from omb_py.engine.program.groups import Group

_BLOCK, _BLOCK_WITH_SPIKES = 1 << 12, 1 << 16
"""Number of factors that are drawn at a time, over all ranks.

Without spikes it changes no factor, since one stream gives them all; with spikes another number would give other ones.
"""


def launch_factor(config: Config, seed: int, launch_index: int) -> float:
    """The factor of all operations of a launch: a log-normal effect of the launch, times the drift."""
    z = float(np.random.default_rng(_entropy(seed, launch_index)).standard_normal()) if config.launch else 0.0
    return math.exp(config.launch * z) * (1 + config.drift) ** launch_index


class Noise:
    """Factors with median 1: log-normal, some of them spikes.

    Draw k of rank r is element (k, r) of one random table that depends on the seeds alone.
    """

    def __init__(self, config: Config, seeds: Sequence[int], ranks: int) -> None:
        self._sd = config.noise
        self._share, self._factor = config.spike
        self._random = np.random.default_rng(_entropy(*seeds))
        self._ranks = ranks
        self._rows = max(16, (_BLOCK_WITH_SPIKES if self._share else _BLOCK) // ranks)
        self._blocks: list[NDArray[np.float64]] = []
        self._lists: list[list[list[float]]] = []
        self._start = 0
        self.used = [0] * ranks
        """Draws so far of each rank."""
        self.active = bool(self._sd or self._share)

    def forget(self) -> None:
        """Free the draws that every rank has used."""
        keep = min(self.used) // self._rows
        drop = min(keep - self._start, len(self._blocks))
        del self._blocks[:drop], self._lists[:drop]
        self._start += drop

    def draw(self, rank: int) -> float:
        """The next factor of one rank."""
        k = self.used[rank]
        self.used[rank] = k + 1
        block, row = divmod(k, self._rows)
        self._grow(block)
        lists = self._lists[block - self._start]
        if not lists:
            lists.extend(self._blocks[block - self._start].T.tolist())
        return lists[rank][row]

    def row(self, k: int) -> NDArray[np.float64]:
        """Factor k of every rank. It does not count as used: the caller sets `used` at the end."""
        block, row = divmod(k, self._rows)
        self._grow(block)
        factors: NDArray[np.float64] = self._blocks[block - self._start][row]
        return factors

    def _grow(self, block: int) -> None:
        while block - self._start >= len(self._blocks):
            shape = (self._rows, self._ranks)
            factors = np.exp(self._sd * self._random.standard_normal(shape))
            if self._share:
                factors[self._random.random(shape) < self._share] *= self._factor
            self._blocks.append(factors)
            self._lists.append([])


def _entropy(*seeds: int) -> list[int]:
    """Distinct seeds for NumPy, which takes no negative ones."""
    return [2 * s if s >= 0 else -2 * s - 1 for s in seeds]


class Slowness:
    """What is slower than usual: nodes, links and uplinks."""

    def __init__(self, config: Config, ranks: int) -> None:
        self.any = bool(config.slow or config.link or config.uplink)
        self._of_rank = np.ones(ranks)
        for rank, factor in config.slow:
            self._of_rank[rank] = factor
        self._links = {frozenset((a, b)): factor for a, b, factor in config.link}
        self._uplinks = [(range(first, last + 1), factor) for first, last, factor in config.uplink]
        self.of_group = lru_cache(maxsize=4096)(self._slow_group)
        """:meth:`_slow_group`, which every call of a collective asks."""

    def of_message(self, rank: int, peer: int) -> float:
        """How many times as long a message takes."""
        return float(self.of_messages(np.array([[rank], [peer]]))[0])

    def of_messages(self, ends: NDArray[np.intp]) -> NDArray[np.float64]:
        """How many times as long messages between pairs take, shape (2, pairs)."""
        slower: NDArray[np.float64] = self._of_rank[ends[0]] * self._of_rank[ends[1]]
        for pair, factor in self._links.items():
            slower[np.isin(ends, list(pair)).all(axis=0)] *= factor
        for inside, factor in self._uplinks:
            is_inside = (ends >= inside.start) & (ends < inside.stop)
            slower[is_inside[0] != is_inside[1]] *= factor
        return slower

    def _slow_group(self, group: Group) -> float:
        """How many times as long a collective takes, which waits for its slowest; an empty group is all ranks."""
        members = frozenset(group or range(len(self._of_rank)))
        links = [factor for pair, factor in self._links.items() if pair <= members]
        uplinks = [
            factor for inside, factor in self._uplinks if 0 < sum(rank in inside for rank in members) < len(members)
        ]
        return max([1.0, *links, *uplinks, float(self._of_rank[list(members)].max())])


class Timing:
    """Durations of messages and collectives, rank by rank."""

    def __init__(self, config: Config, ranks: int, scale: float, noise: Noise) -> None:
        self._series = config.series
        self._scale = scale
        self.noise = noise
        self._delays: dict[int, int] = {}
        for rank, delay in config.straggler:
            self._delays[rank] = self._delays.get(rank, 0) + round(delay)
        self._slowness = Slowness(config, ranks)
        self._of_message = lru_cache(maxsize=4096)(self._slowness.of_message)

    def message(self, rank: int, op: Op, iteration: int) -> tuple[int, int]:
        """(time from start to arrival, time on the sender's link) of a message that `rank` sends, ns."""
        cost, wire = op.cost, op.wire
        if self._series and op.timed:
            cost, wire = self._from_series(rank, iteration), 0.0
        if self._slowness.any:
            slower = self._of_message(rank, op.peer)
            cost, wire = cost * slower, wire * slower
        if self.noise.active:
            factor = self.noise.draw(rank)
            return round(cost * factor), round(wire * factor)
        return round(cost), round(wire)

    def collective(self, rank: int, op: Op, iteration: int) -> int:
        """Time from the opening of a collective until `rank` leaves it, ns."""
        cost = self._from_series(rank, iteration) if self._series and op.timed else op.cost
        if self._slowness.any:
            cost = cost * self._slowness.of_group(op.group)
        if self.noise.active:
            cost = cost * self.noise.draw(rank)
        return round(cost) + (self._delays.get(rank, 0) if op.timed else 0)

    def _from_series(self, rank: int, iteration: int) -> float:
        times = self._series[rank % len(self._series)]
        return times[iteration % len(times)] * self._scale


Way = Literal["out", "in"]


class Ports:
    """Until when each port is busy, ns. A NIC sends and receives at the same time."""

    def __init__(self, topology: Topology | None) -> None:
        self._topology = topology if topology and topology.shared else None
        self._free: dict[tuple[Port, Way], int] = {}

    def message(self, source: int, destination: int, earliest: int, transit: int, wire: int) -> tuple[int, int]:
        """(start, arrival) of a message that starts at `earliest` or later; the ports are then busy with it.

        Args:
            source, destination: ranks.
            earliest: when the sender is ready, ns.
            transit: time from start to arrival when nothing else is under way.
            wire: how long it keeps a port busy.
        """
        where = self._topology
        if where is None:
            return earliest, earliest + transit
        if not where.crosses(source, destination):
            start = self._take([(where.channel(source), "out")], earliest, wire)
            return start, start + transit
        start = self._take([(where.nic(source), "out")], earliest, wire)
        into: tuple[Port, Way] = where.nic(destination), "in"
        arrival = max(start + transit, self._free.get(into, 0) + wire)
        self._free[into] = arrival
        return start, arrival

    def collective(self, group: Sequence[int], opened: int, channel: float, nic: float) -> int:
        """When a collective of a group begins: `opened`, or later when its ports are busy.

        `channel` and `nic` are the times for which it keeps the channels and NICs of its ranks busy.
        """
        where = self._topology
        if where is None or not (channel or nic):
            return opened
        channels: list[tuple[Port, Way]] = [(port, "out") for port in {where.channel(r) for r in group}]
        nics: list[tuple[Port, Way]] = [(port, way) for port in {where.nic(r) for r in group} for way in ("out", "in")]
        begins = max([opened, *(self._free.get(port, 0) for port in (*channels, *nics))])
        for ports, busy in ((channels, channel), (nics, nic)):
            if busy:
                self._take(ports, begins, round(busy))
        return begins

    def _take(self, ports: Sequence[tuple[Port, Way]], earliest: int, busy: int) -> int:
        start = max([earliest, *(self._free.get(port, 0) for port in ports)])
        self._free.update(dict.fromkeys(ports, start + busy))
        return start

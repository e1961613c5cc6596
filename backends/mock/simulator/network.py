"""Costs of messages and collectives on the simulated machine, and where its ranks lie.

Without ``between``, ``nics`` and ``channels`` there is one level, and all costs are those of :class:`Costs`. Else there
are two: within a node, and between nodes through the NICs that its ranks share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from omb_py.backends.mock.algorithms import AlgorithmSelection
from omb_py.backends.mock.config import Config
from omb_py.engine.program.groups import Group
from omb_py.engine.program.steps import COMMUNICATORS

Port = tuple[str, int, int]
"""("nic" or "channel", node, number on the node)."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How a group of ranks lies on the nodes."""

    ranks: int
    nodes: int
    widest: int
    """Most ranks of the group on a node."""
    on_nic: int
    """Most ranks of the group that share a NIC."""
    on_channel: int
    """Most ranks of the group that share a memory channel."""


class Topology:
    """Nodes hold blocks of consecutive ranks. A rank uses the NIC and the channel at its share of its node's ranks.

    Args:
        config: `nodes`, `nics` and `channels`; 0 NICs or channels: one for each rank, so that nothing is shared.
        ranks: number of ranks.
    """

    def __init__(self, config: Config, ranks: int) -> None:
        self.node_of = tuple(rank * config.nodes // ranks for rank in range(ranks))
        sizes = Counter(self.node_of)
        first = {node: rank for rank, node in reversed(list(enumerate(self.node_of)))}
        local = [rank - first[node] for rank, node in enumerate(self.node_of)]
        self.shared = bool(config.nics or config.channels)
        """Whether ranks share anything."""

        def number(rank: int, ports: int) -> int:
            width = sizes[self.node_of[rank]]
            return local[rank] * (min(ports, width) or width) // width

        self._nic = [("nic", node, number(rank, config.nics)) for rank, node in enumerate(self.node_of)]
        self._channel = [("channel", node, number(rank, config.channels)) for rank, node in enumerate(self.node_of)]

    def crosses(self, a: int, b: int) -> bool:
        """Whether two ranks are on different nodes."""
        return self.node_of[a] != self.node_of[b]

    def nic(self, rank: int) -> Port:
        """The NIC of a rank."""
        return self._nic[rank]

    def channel(self, rank: int) -> Port:
        """The memory channel of a rank."""
        return self._channel[rank]

    def spread(self, group: Sequence[int]) -> Spread:
        """How a group lies on the nodes; empty: all ranks."""
        members = group or range(len(self.node_of))
        on_node = Counter(self.node_of[rank] for rank in members)
        nics, channels = Counter(map(self.nic, members)), Counter(map(self.channel, members))
        return Spread(len(members), len(on_node), max(on_node.values()), max(nics.values()), max(channels.values()))


@dataclass(frozen=True, slots=True)
class Costs:
    """Times in nanoseconds of operations among `ranks` ranks, by Hockney's model.

    ``alpha`` is the start-up time of a message, ``beta`` the time per byte. As libraries do, a collective takes the
    cheaper of an algorithm for short and one for long messages.
    """

    alpha: float
    beta: float
    ranks: int
    gflops: float = 50.0
    algorithms: AlgorithmSelection | None = None
    """Algorithms of collectives with planted costs, in place of the model's."""

    @property
    def rounds(self) -> int:
        """Rounds of a doubling algorithm: ceil(log2 p)."""
        return (self.ranks - 1).bit_length()

    def message(self, nbytes: float) -> float:
        """Time from the start of a send to the arrival of its last byte."""
        return self.alpha + nbytes * self.beta

    def wire(self, nbytes: float) -> float:
        """Time for which a message keeps its sender's link busy."""
        return nbytes * self.beta

    def product(self, flop: int) -> int:
        """Time of a matrix product of so many floating point operations."""
        return round(flop / self.gflops)

    def barrier(self) -> float:
        """Time of a dissemination barrier."""
        return self.rounds * self.alpha

    def bcast(self, nbytes: float) -> float:
        """Binomial tree; or scatter and allgather (van de Geijn)."""
        p, rounds = self.ranks, self.rounds
        tree = rounds * self.message(nbytes)
        scattered = (rounds + p - 1) * self.alpha + 2 * (p - 1) / p * nbytes * self.beta
        return min(tree, scattered)

    def allreduce(self, nbytes: float) -> float:
        """Recursive doubling; or reduce-scatter and allgather (Rabenseifner). The arithmetic costs nothing."""
        p, rounds = self.ranks, self.rounds
        doubling = rounds * self.message(nbytes)
        halving = 2 * rounds * self.alpha + 2 * (p - 1) / p * nbytes * self.beta
        return min(doubling, halving)

    def allgather(self, nbytes: float) -> float:
        """Recursive doubling, `nbytes` from each rank."""
        return self.rounds * self.alpha + (self.ranks - 1) * nbytes * self.beta

    def alltoall(self, nbytes: float) -> float:
        """Bruck; or pairwise exchange. `nbytes` for each destination."""
        p, rounds = self.ranks, self.rounds
        bruck = rounds * self.alpha + rounds * p / 2 * nbytes * self.beta
        pairwise = (p - 1) * self.message(nbytes)
        return min(bruck, pairwise)

    def reduce_scatter(self, nbytes: float) -> float:
        """Recursive halving of a vector of `nbytes`."""
        return self.rounds * self.alpha + (self.ranks - 1) / self.ranks * nbytes * self.beta

    def neighbor(self, nbytes: float, edges: int) -> float:
        """A message to each neighbor, one after the other: `nbytes` each."""
        return edges * self.message(nbytes)

    def collective(self, op: str, nbytes: float, edges: int = 1) -> float:
        """Time of a collective, blocking or not, by the name of its blocking form.

        `nbytes` is the vector of a reduction or broadcast, else the (mean) block of one rank; `edges` is the number of
        a rank's neighbors. Raises KeyError for an unknown name.
        """
        planted = self.algorithms.of(op, self.ranks, nbytes) if self.algorithms else None
        if planted is not None:
            return planted.alpha + nbytes * planted.beta
        match op if op in COMMUNICATORS else op.removesuffix("v").removesuffix("w"):
            case "barrier":
                return self.barrier()
            case "bcast":
                return self.bcast(nbytes)
            case "allreduce" | "reduce":  # a tree, or reduce-scatter and gather: as a broadcast, backwards
                return self.allreduce(nbytes)
            case "scan" | "exscan":  # recursive doubling
                return self.rounds * self.message(nbytes)
            case "reduce_scatter" | "reduce_scatter_block":
                return self.reduce_scatter(nbytes)
            case "allgather" | "gather" | "scatter":  # binomial tree: as many bytes through its top
                return self.allgather(nbytes)
            case "alltoall":
                return self.alltoall(nbytes)
            case "comm_dup" | "comm_create" | "comm_grow":  # to agree on a number
                return self.allreduce(8)
            case "comm_shrink":  # so among those who stay; one alone asks somebody, too
                return max(self.allreduce(8), self.message(8))
            case "comm_split":  # to tell each other colour and key
                return self.allgather(8)
            case "comm_free":
                return self.barrier()
            case "neighbor_allgather" | "neighbor_alltoall":
                return self.neighbor(nbytes, edges)
        raise KeyError(op)


class Price(NamedTuple):
    """Times in ns of an operation."""

    time: float
    channel: float = 0.0
    """How long it keeps each memory channel of its ranks busy."""
    nic: float = 0.0
    """How long it keeps each NIC of its ranks busy."""

    def then(self, *others: Price) -> Price:
        """The price of this and then the others."""
        return Price(*(sum(times) for times in zip(self, *others, strict=True)))


class Network:
    """Times in nanoseconds of operations among the ranks of a session.

    Args:
        config: costs and shape of the machine.
        ranks: number of ranks.
        algorithms: algorithms of collectives with planted costs, in place of the model's.
    """

    def __init__(self, config: Config, ranks: int, algorithms: AlgorithmSelection | None = None) -> None:
        self.ranks = ranks
        self.topology = Topology(config, ranks)
        self._within = Costs(config.alpha, config.beta, ranks, config.gflops, algorithms)
        alpha, beta = config.between or (config.alpha, config.beta)
        self._between = replace(self._within, alpha=alpha, beta=beta)
        self._levels = config.between is not None or self.topology.shared
        self.collective = lru_cache(maxsize=4096)(self._collective)
        """:meth:`_collective`, which a program asks for the same few calls."""

    def message(self, rank: int, peer: int, nbytes: float) -> tuple[float, float]:
        """(time from start to arrival, time for which it keeps its sender's link busy) of a message."""
        costs = self._between if self.topology.crosses(rank, peer) else self._within
        return costs.message(nbytes), costs.wire(nbytes)

    def product(self, flop: int) -> int:
        """Time of a matrix product of so many floating point operations."""
        return self._within.product(flop)

    def _collective(self, op: str, group: Group, nbytes: float, edges: int = 1, crossing: int = 0) -> Price:
        """Price of a collective among a group (empty: all ranks), blocking or not, by the name of its blocking form.

        `nbytes` and `edges` are those of :meth:`Costs.collective`; `crossing` of the edges lead to other nodes.
        Raises KeyError for an unknown name.
        """
        flat = replace(self._within, ranks=len(group) or self.ranks)
        if not self._levels or (flat.algorithms and flat.algorithms.of(op, flat.ranks, nbytes)):
            return Price(flat.collective(op, nbytes, edges))
        spread = self.topology.spread(group)
        inner = _Level(replace(self._within, ranks=spread.widest), spread.on_channel, False)
        outer = _Level(replace(self._between, ranks=spread.nodes), spread.on_nic, True)
        name = op.removesuffix("v").removesuffix("w")
        if name.startswith("neighbor"):
            return inner.messages(nbytes, edges - crossing).then(outer.messages(nbytes, crossing))
        if spread.nodes == 1:
            return inner.by_all(op, nbytes)
        away = spread.ranks - spread.widest
        return min(_ways(name, nbytes, inner, outer, away), key=lambda price: price.time)


class _Level:
    """The costs among ranks of a node, or among nodes: one rank of each communicates, or all that share a port."""

    def __init__(self, costs: Costs, share: int, outside: bool) -> None:
        self.ranks = costs.ranks
        self._one, self._all, self._outside = costs, replace(costs, beta=costs.beta * share), outside

    def by_one(self, op: str, nbytes: float) -> Price:
        return self._price(self._one, op, nbytes)

    def by_all(self, op: str, nbytes: float) -> Price:
        return self._price(self._all, op, nbytes)

    def messages(self, nbytes: float, count: int) -> Price:
        """So many messages of each rank, one after the other."""
        return self._busy(count * self._all.message(nbytes), count * self._all.wire(nbytes))

    def _price(self, costs: Costs, op: str, nbytes: float) -> Price:
        return self._busy(costs.collective(op, nbytes), replace(costs, alpha=0.0).collective(op, nbytes))

    def _busy(self, time: float, busy: float) -> Price:
        return Price(time, 0.0, busy) if self._outside else Price(time, busy)


def _ways(op: str, nbytes: float, inner: _Level, outer: _Level, away: int) -> list[Price]:
    """The usual constructions of a collective over several nodes, of which the cheapest counts.

    By leaders: one rank of each node speaks for it (MagPIe, Kielmann et al., PPoPP 1999). By parts: every rank
    exchanges a part of the data with its counterparts on the other nodes (BlueConnect, Cho et al., MLSys 2019). By
    doubling: first among the ranks of a node, then each rank with its counterparts, all of the data each time.
    `away` is the number of ranks on other nodes.
    """
    part = nbytes / inner.ranks
    match op:
        case "bcast":
            return [outer.by_one(op, nbytes).then(inner.by_one(op, nbytes))]
        case "reduce":
            return [inner.by_one(op, nbytes).then(outer.by_one(op, nbytes))]
        case "allreduce":
            doubling = inner.by_one(op, nbytes).then(outer.by_all(op, nbytes))
            leaders = inner.by_one("reduce", nbytes).then(outer.by_one(op, nbytes), inner.by_one("bcast", nbytes))
            gathered = outer.by_all(op, part).then(inner.by_all("allgather", part))
            return [doubling, leaders, inner.by_all("reduce_scatter", nbytes).then(gathered)]
        case "reduce_scatter" | "reduce_scatter_block":
            return [inner.by_all(op, nbytes).then(outer.by_all(op, part))]
        case "allgather":
            return [outer.by_all(op, nbytes).then(inner.by_all(op, outer.ranks * nbytes))]
        case "gather" | "scatter":
            return [inner.by_one(op, nbytes).then(outer.by_one(op, inner.ranks * nbytes))]
        case "alltoall":
            direct = inner.messages(nbytes, inner.ranks - 1).then(outer.messages(nbytes, away))
            return [direct, inner.by_all(op, outer.ranks * nbytes).then(outer.by_all(op, inner.ranks * nbytes))]
    # barrier, scans, and what makes communicators
    return [inner.by_one(op, nbytes).then(outer.by_one(op, nbytes))]

"""Costs on a machine of two levels: within a node, and between nodes through the NICs that its ranks share.

Without ``between``, ``nics`` and ``channels`` there is one level, and all costs are those of
:class:`omb_py.backends.mock.simulator.cost.Costs`. Collectives over several nodes take the cheapest of the
usual constructions. By leaders: one rank of each node speaks for it (MagPIe, Kielmann et al., PPoPP 1999). By parts:
every rank exchanges a part of the data with its counterparts on the other nodes (BlueConnect, Cho et al., MLSys 2019).
By doubling: first among the ranks of a node, then each rank with its counterparts, all of the data each time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from omb_py.backends.mock.algorithms import Selection
from omb_py.backends.mock.config import Config
from omb_py.backends.mock.simulator.cost import Costs
from omb_py.backends.mock.simulator.topology import Topology
from omb_py.engine.program.groups import Group


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

    def __init__(self, config: Config, ranks: int, algorithms: Selection | None = None) -> None:
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
            return inner.all(op, nbytes)
        away = spread.ranks - spread.widest
        return min(_ways(name, nbytes, inner, outer, away), key=lambda price: price.time)


class _Level:
    """The costs among ranks of a node, or among nodes: one rank of each communicates, or all that share a port."""

    def __init__(self, costs: Costs, share: int, outside: bool) -> None:
        self.ranks = costs.ranks
        self._one, self._all, self._outside = costs, replace(costs, beta=costs.beta * share), outside

    def one(self, op: str, nbytes: float) -> Price:
        return self._price(self._one, op, nbytes)

    def all(self, op: str, nbytes: float) -> Price:
        return self._price(self._all, op, nbytes)

    def messages(self, nbytes: float, count: int) -> Price:
        """So many messages of each rank, one after the other."""
        return self._busy(count * self._all.message(nbytes), count * self._all.wire(nbytes))

    def _price(self, costs: Costs, op: str, nbytes: float) -> Price:
        return self._busy(costs.collective(op, nbytes), replace(costs, alpha=0.0).collective(op, nbytes))

    def _busy(self, time: float, busy: float) -> Price:
        return Price(time, 0.0, busy) if self._outside else Price(time, busy)


def _ways(op: str, nbytes: float, inner: _Level, outer: _Level, away: int) -> list[Price]:
    """The constructions of a collective over several nodes; `away` is the number of ranks on nodes of others."""
    part = nbytes / inner.ranks
    match op:
        case "bcast":
            return [outer.one(op, nbytes).then(inner.one(op, nbytes))]
        case "reduce":
            return [inner.one(op, nbytes).then(outer.one(op, nbytes))]
        case "allreduce":
            doubling = inner.one(op, nbytes).then(outer.all(op, nbytes))
            leaders = inner.one("reduce", nbytes).then(outer.one(op, nbytes), inner.one("bcast", nbytes))
            gathered = outer.all(op, part).then(inner.all("allgather", part))
            return [doubling, leaders, inner.all("reduce_scatter", nbytes).then(gathered)]
        case "reduce_scatter" | "reduce_scatter_block":
            return [inner.all(op, nbytes).then(outer.all(op, part))]
        case "allgather":
            return [outer.all(op, nbytes).then(inner.all(op, outer.ranks * nbytes))]
        case "gather" | "scatter":
            return [inner.one(op, nbytes).then(outer.one(op, inner.ranks * nbytes))]
        case "alltoall":
            direct = inner.messages(nbytes, inner.ranks - 1).then(outer.messages(nbytes, away))
            return [direct, inner.all(op, outer.ranks * nbytes).then(outer.all(op, inner.ranks * nbytes))]
    return [inner.one(op, nbytes).then(outer.one(op, nbytes))]  # barrier, scans, and what makes communicators

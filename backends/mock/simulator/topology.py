"""Where ranks are on a simulated machine: blocks on nodes, whose NICs and memory channels they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from omb_py.backends.mock.config import Config

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
        first = {node: self.node_of.index(node) for node in sizes}
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

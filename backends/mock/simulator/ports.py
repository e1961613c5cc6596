"""NICs and memory channels that ranks share: who comes first is served first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from omb_py.backends.mock.simulator.topology import Port, Topology

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

"""Bandwidth between one node and several: OMB's bw_fan_in and bw_fan_out.

Rank j of every other node exchanges windows with rank j of the first node, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.engine.program.benchmark import Cell, Metric, RankRule, World, halves
from omb_py.engine.program.language import Buffer, Node, Program, Region, Repeat, Requests, RequestSlot, Stage, body
from omb_py.engine.program.steps import irecv, isend, waitall
from omb_py.suites.pt2pt.two_ranks import OPTIONS, REPLY_BYTES, WINDOW_TAG, has_own_memory, reply, timed
from omb_py.suites.shared import BANDWIDTH_COUNTS, message_bytes, point_to_point


def by_node(hosts: Sequence[str]) -> list[list[int]]:
    """The ranks of each node in the order of their first ranks, given the host of each rank."""
    nodes: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        nodes.setdefault(host, []).append(rank)
    return list(nodes.values())


def _peers(world: World) -> tuple[bool, list[int]]:
    """Whether this rank is on the first node, and the ranks that it exchanges with."""
    first, *others = by_node(world.hosts or halves(world.size))
    if world.rank in first:
        return True, [node[first.index(world.rank)] for node in others]
    own = next(node for node in others if world.rank in node)
    return False, [first[own.index(world.rank)]]


def _program(world: World, cell: Cell, sender: bool, peers: list[int]) -> Program:
    """A window to (from) each peer, all posted before any is waited for; then a reply from (to) each.

    Each peer has its place in the buffers, so that its data can be checked (OMB: one place for all).
    """
    size, w, total = message_bytes(cell), cell.options.window, cell.options.window * len(peers)
    name, stride = ("send" if sender else "recv"), size if has_own_memory(cell) else 0
    nodes: list[Node] = []
    for j, peer in enumerate(peers):
        region = Region(name, j * (w * stride or size), size, stride)
        request = RequestSlot(j * w, 1)
        post = isend if sender else irecv
        nodes.append(Repeat(w, (post(region, peer, cell.dtype, request, WINDOW_TAG),)))
    nodes.append(waitall(Requests(0, total)))
    nodes += [reply(sender, peer, j) for j, peer in enumerate(peers)]
    buffers = Buffer(name, size * (total if stride else len(peers))), Buffer("ack", REPLY_BYTES * len(peers))
    return Program(buffers, (Stage(body(*timed(sender, *nodes))),))


def bw_fan_in(world: World, cell: Cell) -> Program:
    """Every node but the first sends to the first."""
    first, peers = _peers(world)
    return _program(world, cell, not first, peers)


def bw_fan_out(world: World, cell: Cell) -> Program:
    """The first node sends to every other."""
    first, peers = _peers(world)
    return _program(world, cell, first, peers)


def _equal_nodes(hosts: Sequence[str]) -> bool:
    sizes = {len(ranks) for ranks in by_node(hosts)}
    return len(set(hosts)) > 1 and len(sizes) == 1


SEVERAL_NODES = RankRule("several nodes with equally many ranks on each", lambda n: n >= 2, _equal_nodes)


def _count_moved(cell: Cell, hosts: Sequence[str]) -> int:
    """Bytes that enter (leave) the first node in an iteration."""
    window: int = cell.options.window
    return message_bytes(cell) * window * (len(hosts) - len(by_node(hosts)[0]))


FAN = Metric(
    "MB/s", "size × window × links of the first node × iterations / mean of the senders' time", bytes_over=_count_moved
)
_OPTIONS = OPTIONS | {"window"}

BENCHMARKS = (
    point_to_point(
        "bw_fan_in",
        "bandwidth into one node from all others at once",
        bw_fan_in,
        FAN,
        BANDWIDTH_COUNTS,
        _OPTIONS,
        ranks=SEVERAL_NODES,
        timed="other nodes",
    ),
    point_to_point(
        "bw_fan_out",
        "bandwidth out of one node to all others at once",
        bw_fan_out,
        FAN,
        BANDWIDTH_COUNTS,
        _OPTIONS,
        ranks=SEVERAL_NODES,
        timed="first node",
    ),
)

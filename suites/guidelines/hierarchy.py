"""Mock-ups by the places of ranks: a collective as steps within parts of the ranks, and steps between the parts.

The parts are the nodes, if there are several, each with the same number of ranks, two or more, in consecutive order;
else the two halves of the ranks, since a guideline holds for every way to cut them.  A *lane* is the ranks at one place
of every part.  *By nodes* one rank represents each part (``Hier`` of ReproMPI); *by lanes* each rank carries its share
between the parts (``Lane``): J. L. Träff, S. Hunold, *Decomposing MPI collectives for exploiting multi-lane
communication*, IEEE CLUSTER 2020.
"""

from __future__ import annotations

from omb_py.engine.program.benchmark import World, halves
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.groups import Group, on_group
from omb_py.engine.program.language import Body
from omb_py.suites.guidelines.mockups import Calls, GuidelineSide, Make
from omb_py.suites.pt2pt.congestion import by_node


def parts_of(world: World) -> list[Group]:
    """The parts into which the ranks are cut, each in order."""
    nodes = by_node(world.hosts) if world.hosts else []
    each = world.size // max(1, len(nodes))
    blocks = [list(range(start, start + each)) for start in range(0, world.size, max(1, each))]
    if len(nodes) < 2 or each < 2 or nodes != blocks:
        nodes = by_node(halves(world.size))
    return [tuple(node) for node in nodes]


class PartAndLane:
    """The part and the lane of a rank, and its calls among their ranks."""

    def __init__(self, c: Calls) -> None:
        parts, root = parts_of(c.world), c.cell.options.root
        self.calls, self.root = c, root
        self.part = next(part for part in parts if c.rank in part)
        self.home = next(part for part in parts if root in part)
        """The root's part."""
        place = self.home.index(root)
        self.head = self.part[place]
        """The rank that represents this part: the one at the root's place."""
        self.heads = tuple(part[place] for part in parts)
        self.lane = tuple(part[self.part.index(c.rank)] for part in parts)
        self.top = next(rank for rank in self.lane if rank in self.home)
        """The rank of this lane that is in the root's part."""
        item = DTYPES[c.cell.dtype].itemsize
        self.share = -(-c.size // item // len(self.part)) * item
        """Bytes of a vector that each rank of a part carries, rounded up to whole elements."""
        self.vector = self.share * len(self.part)

    def call(self, ranks: Group, op: str, size: int, send: str, recv: str, root: int = 0, here: bool = False) -> Body:
        """A collective among some ranks; empty on the others."""
        c = self.calls
        if c.rank not in ranks:
            return ()
        cell = c.cell.with_options(root=ranks.index(root) if root in ranks else 0)
        step = Calls(World(ranks.index(c.rank), len(ranks)), cell).call(op, size, send, recv, here=here or None)
        return (on_group(step, ranks),)

    def inputs(self, size: int, at_heads: bool) -> Body:
        """A step that reads the inputs of a reduction; a head that reduces in place has its own in ``right``."""
        c = self.calls
        here = at_heads and c.cell.options.in_place and c.rank == self.head
        return (c.call("allreduce", size, "right" if here else "send", here=False),)


def _bcast_by_nodes(c: Calls) -> GuidelineSide:
    p, result = PartAndLane(c), (c.call("bcast", c.size),)
    between = p.call(p.heads, "bcast", c.size, "", "right", p.root)
    return GuidelineSide((*between, *p.call(p.part, "bcast", c.size, "", "right", p.head)), result, result)


def _reduce_by_nodes(c: Calls) -> GuidelineSide:
    p = PartAndLane(c)
    within = p.call(p.part, "reduce", c.size, "send", "right", p.head)
    between = p.call(p.heads, "reduce", c.size, "right", "right", p.root, here=True)
    return GuidelineSide((*within, *between), p.inputs(c.size, at_heads=True), (c.call("reduce", c.size),))


def _allreduce_by_nodes(c: Calls) -> GuidelineSide:
    p = PartAndLane(c)
    within = p.call(p.part, "reduce", c.size, "send", "right", p.head)
    between = p.call(p.heads, "allreduce", c.size, "right", "right", here=True)
    back = p.call(p.part, "bcast", c.size, "", "right", p.head)
    return GuidelineSide((*within, *between, *back), p.inputs(c.size, at_heads=True), (c.call("allreduce", c.size),))


def _allgather_by_nodes(c: Calls) -> GuidelineSide:
    p, result = PartAndLane(c), (c.call("allgather", c.size),)
    within = p.call(p.part, "gather", c.size, "send", "part", p.head)
    between = p.call(p.heads, "allgather", c.size * len(p.part), "part", "right")
    return GuidelineSide((*within, *between, *p.call(p.part, "bcast", c.whole, "", "right", p.head)), result, result)


def _gather_by_nodes(c: Calls) -> GuidelineSide:
    p, result = PartAndLane(c), (c.call("gather", c.size),)
    within = p.call(p.part, "gather", c.size, "send", "part", p.head)
    return GuidelineSide(
        (*within, *p.call(p.heads, "gather", c.size * len(p.part), "part", "right", p.root)), result, result
    )


def _scatter_by_nodes(c: Calls) -> GuidelineSide:
    p, result = PartAndLane(c), (c.call("scatter", c.size),)
    between = p.call(p.heads, "scatter", c.size * len(p.part), "send", "part", p.root)
    return GuidelineSide((*between, *p.call(p.part, "scatter", c.size, "part", "right", p.head)), result, result)


def _bcast_by_lanes(c: Calls) -> GuidelineSide:
    p = PartAndLane(c)
    result = (c.call("bcast", p.vector),)
    dealt = p.call(p.home, "scatter", p.share, "right", "part", p.root)
    between = p.call(p.lane, "bcast", p.share, "", "part", p.top)
    return GuidelineSide((*dealt, *between, *p.call(p.part, "allgather", p.share, "part", "right")), result, result)


def _reduce_by_lanes(c: Calls) -> GuidelineSide:
    p = PartAndLane(c)
    within = p.call(p.part, "reduce_scatter_block", p.vector, "send", "part")
    between = p.call(p.lane, "reduce", p.share, "part", "part", p.top, here=True)
    back = p.call(p.home, "gather", p.share, "part", "right", p.root)
    return GuidelineSide((*within, *between, *back), p.inputs(p.vector, at_heads=False), (c.call("reduce", p.vector),))


def _allreduce_by_lanes(c: Calls) -> GuidelineSide:
    p = PartAndLane(c)
    within = p.call(p.part, "reduce_scatter_block", p.vector, "send", "part")
    between = p.call(p.lane, "allreduce", p.share, "part", "part", here=True)
    back = p.call(p.part, "allgather", p.share, "part", "right")
    return GuidelineSide(
        (*within, *between, *back), p.inputs(p.vector, at_heads=False), (c.call("allreduce", p.vector),)
    )


BY_NODES: dict[str, tuple[str, Make]] = {
    "bcast": ("bcast between nodes + bcast in nodes", _bcast_by_nodes),
    "reduce": ("reduce in nodes + reduce between nodes", _reduce_by_nodes),
    "allreduce": ("reduce in nodes + allreduce between nodes + bcast in nodes", _allreduce_by_nodes),
    "allgather": ("gather in nodes + allgather between nodes + bcast in nodes", _allgather_by_nodes),
    "gather": ("gather in nodes + gather between nodes", _gather_by_nodes),
    "scatter": ("scatter between nodes + scatter in nodes", _scatter_by_nodes),
}
BY_LANES: dict[str, tuple[str, Make]] = {
    "bcast": ("scatter in a node + bcast in lanes + allgather in nodes", _bcast_by_lanes),
    "reduce": ("reduce_scatter_block in nodes + reduce in lanes + gather in a node", _reduce_by_lanes),
    "allreduce": ("reduce_scatter_block in nodes + allreduce in lanes + allgather in nodes", _allreduce_by_lanes),
}
"""Collective -> text and sides of its mock-up."""

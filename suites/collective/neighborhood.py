"""Neighborhood collectives: each rank exchanges blocks with its neighbors in a graph."""

from __future__ import annotations

from itertools import product

from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.language import Blocks, Buffer, Region
from omb_py.engine.program.steps import Ranks, neighbor
from omb_py.grammar.graphs import dims_create
from omb_py.suites.collective.forms import CallAndBuffers, Collective, blocking, overlapping
from omb_py.suites.shared import message_bytes


def grid_edges(ranks: int, rank: int, dimensions: int, radius: int) -> tuple[Ranks, Ranks]:
    """(sources, targets) of a rank in a periodic grid: all ranks at most `radius` away in each dimension.

    Both have (2 radius + 1)^dimensions - 1 entries, as in OMB; in a small grid a rank is listed more than once. What a
    rank sends along its edge j arrives as edge j of the target.
    """
    sizes = dims_create(ranks, dimensions)
    place: list[int] = []
    rest = rank
    for n in reversed(sizes):
        place.insert(0, rest % n)
        rest //= n
    moves = [m for m in product(range(-radius, radius + 1), repeat=dimensions) if any(m)]

    def at(move: tuple[int, ...], sign: int) -> int:
        number = 0
        for n, here, step in zip(sizes, place, move, strict=True):
            number = number * n + (here + sign * step) % n
        return number

    return tuple(at(m, -1) for m in moves), tuple(at(m, 1) for m in moves)


def edges(world: World, cell: Cell) -> tuple[Ranks, Ranks]:
    """(sources, targets) of a rank in the graph of a cell: ``cart:DIMENSIONS:RADIUS`` or ``graph:0>1,1>0``."""
    kind, _, rest = cell.options.neighborhood.partition(":")
    if kind == "cart":
        dimensions, radius = (int(word) for word in rest.split(":"))
        return grid_edges(world.size, world.rank, dimensions, radius)
    pairs = [tuple(int(end) for end in edge.split(">")) for edge in rest.split(",") if edge]
    sources = tuple(source for source, target in pairs if target == world.rank)
    return sources, tuple(target for source, target in pairs if source == world.rank)


def _call(op: str, world: World, cell: Cell) -> CallAndBuffers:
    """The call with blocks of `size` bytes: one for all neighbors (allgather) or one for each (alltoall)."""
    size = message_bytes(cell)
    sources, targets = edges(world, cell)
    blocks = 1 if op.startswith("allgather") else len(targets)
    out: Region | Blocks = Region("send", 0, size * blocks)
    into: Region | Blocks = Region("recv", 0, size * len(sources))
    if op[-1] in "vw":
        into = Blocks.packed("recv", (size,) * len(sources))
        out = out if blocks == 1 and op.startswith("allgather") else Blocks.packed("send", (size,) * blocks)
    buffers = Buffer("send", size * blocks), Buffer("recv", size * len(sources))
    return neighbor(op, out, into, cell.dtype, sources, targets), buffers


def _collective(op: str, summary: str) -> Collective:
    return Collective(
        f"neighbor_{op}",
        summary,
        lambda world, cell: _call(op, world, cell),
        lambda size, ranks: size,
        options=frozenset({"neighborhood"}),
        family="neighborhood",
    )


COLLECTIVES = (
    _collective("allgather", "a vector from each neighbor"),
    _collective("allgatherv", "a vector from each neighbor, with a count for each"),
    _collective("alltoall", "a block to each neighbor"),
    _collective("alltoallv", "a block to each neighbor, with a count for each"),
    _collective("alltoallw", "a block to each neighbor, with a datatype for each"),
)

BENCHMARKS = tuple(form(collective) for form in (blocking, overlapping) for collective in COLLECTIVES)

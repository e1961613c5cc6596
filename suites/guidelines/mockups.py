"""Mock-ups: collectives composed of other collectives, for the guidelines (``suites.guidelines.patterns``).

The calls are those of ``suites.collective.calls``, with buffers of other names: ``send`` holds the input, ``left`` the
result of the collective, ``right`` the result of its mock-up.  Vectors that are cut into blocks are rounded up to whole
elements for each rank, so a mock-up may move a little more than the collective, never less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.dtypes import DTYPES, reduction_dtype
from omb_py.engine.program.language import Blocks, Body, Buffer, Operand, Region, Step, each_node
from omb_py.suites.collective import calls
from omb_py.suites.shared import message_bytes

_IN_PLACE = ("allreduce", "reduce")
"""Collectives that are in place if the cell is, as some libraries have no other form of them."""


@dataclass(frozen=True, slots=True)
class GuidelineSide:
    """One side of a guideline."""

    body: Body
    """The timed steps."""
    reads: Body = ()
    """Steps whose inputs are filled before the body; empty: those of the body."""
    leaves: Body = ()
    """Steps whose outputs are checked after the body; empty: those of the body."""

    @property
    def checks(self) -> tuple[Body, Body]:
        """Steps whose inputs are filled, and steps whose outputs are checked."""
        return self.reads or self.body, self.leaves or self.body


Make = Callable[["Calls"], GuidelineSide]


class Calls:
    """The collectives of one rank and cell, on buffers by name."""

    def __init__(self, world: World, cell: Cell) -> None:
        self.world, self.cell = world, cell
        self.ranks, self.rank = world.size, world.rank
        item = DTYPES[cell.dtype].itemsize
        self.size = message_bytes(cell)
        """Bytes of a vector, or of a rank's block."""
        self.block = -(-self.size // item // self.ranks) * item
        """Bytes of a rank's block of a vector, rounded up to whole elements."""
        self.vector = self.block * self.ranks
        """Bytes of the vector of such blocks."""
        self.whole = self.size * self.ranks
        """Bytes of all ranks' blocks."""

    def call(
        self, op: str, size: int, send: str = "send", recv: str = "right", chunk: int = 0, here: bool | None = None
    ) -> Step:
        """A collective of OMB's `size`.

        Args:
            op: name of the collective.
            size: bytes, as a cell has them.
            send: buffer of the input.
            recv: buffer of the result.
            chunk: number of this chunk, of several in the same buffers.
            here: whether it is in place; None: if the cell is, and the collective is one of `_IN_PLACE`.
        """
        here = self.cell.options.in_place and op in _IN_PLACE if here is None else here
        step, buffers = getattr(calls, op)(self.world, replace(self.cell.with_options(in_place=here), size=size))
        names = {"send": send, "recv": recv, "buf": recv}
        shift = {buffer.name: chunk * buffer.nbytes for buffer in buffers}

        def moved(value: Operand) -> Operand:
            if isinstance(value, Region):
                return replace(value, buffer=names[value.buffer], offset=value.offset + shift[value.buffer])
            return replace(value, buffer=names[value.buffer]) if isinstance(value, Blocks) else value

        return Step(step.op, {name: moved(value) for name, value in step.operands.items()})

    def chunks(self, op: str, parts: int, send: str, recv: str) -> Body:
        """The collective cut into equal parts, one after the other."""
        item = DTYPES[self.cell.dtype].itemsize * (self.ranks if op == "reduce_scatter_block" else 1)
        each = -(-self.size // item // parts) * item
        return tuple(self.call(op, each, send, recv, chunk) for chunk in range(parts))

    def left(self, op: str) -> GuidelineSide:
        """The collective itself."""
        return GuidelineSide(
            (self.call(op, self.vector if op.startswith("reduce_scatter") else self.size, recv="left"),)
        )

    def wide(self, root_only: bool = False) -> tuple[str, Body]:
        """A vector of all ranks' blocks with this rank's block and zeros elsewhere: its buffer, and steps that fill it.

        No copy is timed: the user's block is assumed to lie there, and the zeros stay from call to call.
        """
        here = self.cell.options.in_place and (not root_only or self.rank == self.cell.options.root)
        buffer, start = ("right" if here else "wide"), self.rank * self.size
        own = steps.allgather(Region(buffer, start, self.size), Region(buffer, 0, self.whole), self.cell.dtype)
        before, behind = Region(buffer, 0, start), Region(buffer, start + self.size, self.whole - start - self.size)
        return buffer, (own, *(steps.zero(region) for region in (before, behind) if region.nbytes))


def buffers_of(*bodies: Body) -> tuple[Buffer, ...]:
    """The buffers that steps use, each as large as they need it."""
    needed: dict[str, int] = {}
    for body in bodies:
        for node in each_node(body):
            for value in node.operands.values() if isinstance(node, Step) else ():
                if isinstance(value, (Region, Blocks)):
                    needed[value.buffer] = max(needed.get(value.buffer, 0), _end(value))
    return tuple(Buffer(name, needed[name]) for name in sorted(needed))


def _end(place: Region | Blocks) -> int:
    if isinstance(place, Region):
        return place.offset + place.nbytes
    return max((at + size for at, size in zip(place.offsets, place.sizes, strict=True)), default=0)


def gather_bcast(c: Calls) -> GuidelineSide:
    """Allgather: the root gathers all blocks and broadcasts them."""
    first = c.call("gather", c.size)
    return GuidelineSide((first, c.call("bcast", c.whole)), (first,), (c.call("allgather", c.size),))


def alltoall_of_one(c: Calls) -> GuidelineSide:
    """Allgather: every rank sends the same block to every rank, from one place."""
    out, into = Blocks("send", (c.size,) * c.ranks, (0,) * c.ranks), Blocks.packed("right", (c.size,) * c.ranks)
    result = (c.call("allgather", c.size),)
    return GuidelineSide((steps.alltoallv(out, into, c.cell.dtype),), result, result)


def sum_of_all(c: Calls) -> GuidelineSide:
    """Allgather: a sum of vectors in which each rank has its own block, and zeros elsewhere."""
    buffer, put = c.wide()
    return GuidelineSide((c.call("allreduce", c.whole, buffer),), put, (c.call("allgather", c.size),))


def sum_at_root(c: Calls) -> GuidelineSide:
    """Gather: the root gets the sum of vectors in which each rank has its own block, and zeros elsewhere."""
    buffer, put = c.wide(root_only=True)
    return GuidelineSide((c.call("reduce", c.whole, buffer),), put, (c.call("gather", c.size),))


def reduce_bcast(c: Calls) -> GuidelineSide:
    """Allreduce: the root gets the result and broadcasts it."""
    first = c.call("reduce", c.size)
    return GuidelineSide((first, c.call("bcast", c.size)), (first,), (c.call("allreduce", c.size),))


def scatter_allgather(c: Calls) -> GuidelineSide:
    """Bcast: each rank gets a block, and all collect the blocks."""
    result = (c.call("bcast", c.vector),)
    return GuidelineSide(
        (c.call("scatter", c.block, "right", "part"), c.call("allgather", c.block, "part")), result, result
    )


def uneven_allgather(c: Calls) -> GuidelineSide:
    """Bcast: an allgather to which the root alone contributes."""
    sizes = tuple(c.size if rank == c.cell.options.root else 0 for rank in range(c.ranks))
    into = Blocks.packed("right", sizes)
    call = steps.in_place(steps.allgatherv(into.block(c.rank), into, c.cell.dtype))
    result = (c.call("bcast", c.size),)
    return GuidelineSide((call,), result, result)


def halves(first: str, second: str, result: str) -> Make:
    """A reduction `result`: `first` leaves each rank a reduced block, and `second` collects the blocks."""

    def make(c: Calls) -> GuidelineSide:
        reduction = c.call(first, c.vector, recv="part")
        return GuidelineSide((reduction, c.call(second, c.block, "part")), (reduction,), (c.call(result, c.vector),))

    return make


def reduce_then(second: str, result: str) -> Make:
    """A reduce-scatter `result`: the root reduces the vector, and `second` distributes its blocks."""

    def make(c: Calls) -> GuidelineSide:
        reduction = c.call("reduce", c.vector, recv="all")
        return GuidelineSide((reduction, c.call(second, c.block, "all")), (reduction,), (c.call(result, c.vector),))

    return make


def exscan_local(c: Calls) -> GuidelineSide:
    """Scan: an exscan, to which each rank adds its own vector; rank 0 has its result already."""
    before, kind = c.call("exscan", c.size), reduction_dtype(c.cell.dtype)
    local = steps.reduce_local(Region("send", 0, c.size), Region("right", 0, c.size), kind, c.cell.options.op)
    whole = (c.call("scan", c.size),)
    return GuidelineSide((before, local), whole, whole) if c.rank else GuidelineSide((before,), whole, (before,))


def block_of(op: str, recv: str = "right") -> Make:
    """Another collective on blocks, whose result includes that of the left side."""
    return lambda c: GuidelineSide((c.call(op, c.size, recv=recv),))


def vector_of(op: str) -> Make:
    """Another reduction of the same vector, whose result includes that of the left side."""
    return lambda c: GuidelineSide((c.call(op, c.vector),))


def all_blocks(op: str) -> Make:
    """Another collective on all ranks' blocks at once."""
    return lambda c: GuidelineSide((c.call(op, c.whole),))


_INPUT = "more"
"""Input of a mock-up that moves other amounts than the collective: the two sides then share no memory."""


def larger(op: str) -> Make:
    """The same collective with twice the message."""

    def make(c: Calls) -> GuidelineSide:
        size = c.vector if op.startswith("reduce_scatter") else c.size
        return GuidelineSide((c.call(op, 2 * size, _INPUT),))

    return make


def split(op: str, parts: int) -> Make:
    """The same collective in equal parts."""
    return lambda c: GuidelineSide(c.chunks(op, parts, _INPUT, "right"))

"""Every rank sends to the next one and receives from the one before."""

from omb_py.plugin import (
    COLLECTIVE_COUNTS,
    COLLECTIVE_SIZES,
    PER_CALL,
    TWO_OR_MORE,
    Benchmark,
    Buffer,
    Cell,
    Lap,
    Program,
    Region,
    RequestSlot,
    Stage,
    World,
    body,
    message_bytes,
    steps,
)


def ring(world: World, cell: Cell) -> Program:
    """The message of `size` bytes goes one rank further."""
    size, me, n = message_bytes(cell), world.rank, world.size
    out = steps.isend(Region("send", 0, size), (me + 1) % n, cell.dtype, RequestSlot(0))
    back = steps.recv(Region("recv", 0, size), (me - 1) % n, cell.dtype)
    loop = body(Lap(), out, back, steps.wait(RequestSlot(0)), Lap("time"), steps.barrier())
    return Program((Buffer("send", size), Buffer("recv", size)), (Stage(loop),))


RING = Benchmark(
    "ring",
    "collective",
    "a message to the next rank, one from the rank before",
    ring,
    PER_CALL,
    COLLECTIVE_SIZES,
    COLLECTIVE_COUNTS,
    TWO_OR_MORE,
    timed="all",
    dtype="char",
    options=frozenset({"type", "validation", "full"}),
    bytes_total=lambda size, ranks: size * ranks,
)

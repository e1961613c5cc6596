"""Exchanges in the patterns of nccl-tests: a ring (sendrecv), and a hypercube, along each dimension in turn."""

from __future__ import annotations

from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import Buffer, Lap, Node, Program, Region, Requests, RequestSlot, Stage, body
from omb_py.engine.program.steps import irecv, isend, waitall
from omb_py.suites.shared import (
    COLLECTIVE_COUNTS,
    COLLECTIVE_SIZES,
    PER_CALL,
    POWER_OF_TWO,
    TWO_OR_MORE,
    barrier_after,
    message_bytes,
)


def sendrecv(world: World, cell: Cell) -> Program:
    """Send `size` bytes to the next rank and receive as many from the rank before, both at once."""
    size, me, n = message_bytes(cell), world.rank, world.size
    back = irecv(Region("recv", 0, size), (me - 1) % n, cell.dtype, RequestSlot(0))
    out = isend(Region("send", 0, size), (me + 1) % n, cell.dtype, RequestSlot(1))
    loop = body(Lap(), back, out, waitall(Requests(0, 2)), Lap("time"), *barrier_after(cell.options.process_sync))
    return Program((Buffer("send", size), Buffer("recv", size)), (Stage(loop),))


def hypercube(world: World, cell: Cell) -> Program:
    """Exchange 1, 2, 4, … blocks of `size` bytes with each neighbor in turn, as an allgather by doubling does.

    Unlike that allgather each step sends from memory of its own, not what earlier steps sent or received, so that
    every byte can be checked.
    """
    size, me, n = message_bytes(cell), world.rank, world.size
    nodes: list[Node] = []
    for dimension in range(n.bit_length() - 1):
        blocks = 1 << dimension
        peer = me ^ blocks
        back = Region("recv", peer // blocks * blocks * size, blocks * size)
        nodes.append(irecv(back, peer, cell.dtype, RequestSlot(0)))
        nodes.append(isend(Region("send", (blocks - 1) * size, blocks * size), peer, cell.dtype, RequestSlot(1)))
        nodes.append(waitall(Requests(0, 2)))
    loop = body(Lap(), *nodes, Lap("time"), *barrier_after(cell.options.process_sync))
    return Program((Buffer("send", (n - 1) * size), Buffer("recv", n * size)), (Stage(loop),))


BENCHMARKS = (
    Benchmark(
        "sendrecv",
        "collective",
        "a message to the next rank and one from the rank before, at once",
        sendrecv,
        PER_CALL,
        COLLECTIVE_SIZES,
        COLLECTIVE_COUNTS,
        TWO_OR_MORE,
        "all",
        "char",
        frozenset({"type", "validation", "full", "process_sync"}),
        bytes_total=lambda size, ranks: size,
        bandwidth="sendrecv",
    ),
    Benchmark(
        "hypercube",
        "collective",
        "with each neighbor in a hypercube in turn, twice as much each time",
        hypercube,
        PER_CALL,
        COLLECTIVE_SIZES,
        COLLECTIVE_COUNTS,
        POWER_OF_TWO,
        "all",
        "char",
        frozenset({"type", "validation", "full", "process_sync"}),
        bytes_total=lambda size, ranks: size * ranks,
        bandwidth="hypercube",
    ),
)

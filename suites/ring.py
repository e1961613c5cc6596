"""A ring: every rank sends to the next and receives from the one before, as nccl-tests' sendrecv does."""

from __future__ import annotations

from omb_py.engine.benchmark import Benchmark, Cell, World
from omb_py.engine.program import Buffer, Lap, Program, Region, Request, Requests, Stage, body
from omb_py.engine.steps import barrier, irecv, isend, waitall
from omb_py.suites.rules import COLLECTIVE_COUNTS, COLLECTIVE_SIZES, PER_CALL, TWO_OR_MORE, message_bytes


def sendrecv(world: World, cell: Cell) -> Program:
    """A message of `size` bytes to the next rank, one from the rank before, both at once."""
    size, me, n = message_bytes(cell), world.rank, world.size
    back = irecv(Region("recv", 0, size), (me - 1) % n, cell.dtype, Request(0))
    out = isend(Region("send", 0, size), (me + 1) % n, cell.dtype, Request(1))
    after = (barrier(),) if cell.process_sync == "barrier" else ()
    loop = body(Lap(), back, out, waitall(Requests(0, 2)), Lap("time"), *after)
    return Program((Buffer("send", size), Buffer("recv", size)), (Stage(loop),))


BENCHMARKS = (
    Benchmark(
        "sendrecv", "collective", "a message to the next rank and one from the rank before, at once", sendrecv,
        PER_CALL, COLLECTIVE_SIZES, COLLECTIVE_COUNTS, TWO_OR_MORE, "all", "char",
        frozenset({"type", "validation", "full", "process_sync"}), bytes_total=lambda size, ranks: size,
        bandwidth="sendrecv",
    ),
)  # fmt: skip

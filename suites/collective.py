"""Blocking collectives. Each iteration: the call, timed; then a barrier, not timed."""

from __future__ import annotations

from collections.abc import Callable

from omb_py.engine import steps
from omb_py.engine.benchmark import Benchmark, Cell, Sizes, World
from omb_py.engine.dtypes import reduction_dtype
from omb_py.engine.program import Buffer, Lap, Program, Region, Stage, Step, body
from omb_py.suites.rules import (
    COLLECTIVE_COUNTS,
    COLLECTIVE_SIZES,
    PER_CALL,
    REDUCTION_SIZES,
    TWO_OR_MORE,
    message_bytes,
)


def blocking(call: Step, cell: Cell, *buffers: Buffer) -> Program:
    """The loop that all blocking collectives share."""
    after = (steps.barrier(),) if cell.process_sync == "barrier" else ()
    return Program(buffers, (Stage(body(Lap(), call, Lap("time"), *after)),))


def barrier(world: World, cell: Cell) -> Program:
    """A barrier, timed."""
    return blocking(steps.barrier(), cell)


def bcast(world: World, cell: Cell) -> Program:
    """Root sends `size` bytes to all."""
    size = message_bytes(cell)
    call = steps.bcast(Region("buf", 0, size), cell.root, cell.dtype)
    return blocking(call, cell, Buffer("buf", size))


def allreduce(world: World, cell: Cell) -> Program:
    """Reduce a vector of `size` bytes; every rank gets the result."""
    size = message_bytes(cell)
    out, back = Region("send", 0, size), Region("recv", 0, size)
    call = steps.allreduce(out, back, reduction_dtype(cell.dtype), cell.op)
    return blocking(call, cell, Buffer("send", size), Buffer("recv", size))


def allgather(world: World, cell: Cell) -> Program:
    """Every rank contributes `size` bytes and gets all contributions."""
    size = message_bytes(cell)
    total = size * world.size
    call = steps.allgather(Region("send", 0, size), Region("recv", 0, total), cell.dtype)
    return blocking(call, cell, Buffer("send", size), Buffer("recv", total))


def alltoall(world: World, cell: Cell) -> Program:
    """Every rank sends `size` bytes to every rank."""
    total = message_bytes(cell) * world.size
    call = steps.alltoall(Region("send", 0, total), Region("recv", 0, total), cell.dtype)
    return blocking(call, cell, Buffer("send", total), Buffer("recv", total))


def _declare(
    program: Callable[[World, Cell], Program],
    summary: str,
    bytes_total: Callable[[int, int], int],
    bandwidth: str | None,
    sizes: Sizes | None = COLLECTIVE_SIZES,
    dtype: str = "char",
    options: frozenset[str] = frozenset({"type", "validation", "full"}),
) -> Benchmark:
    return Benchmark(
        program.__name__, "collective", summary, program, PER_CALL, sizes, COLLECTIVE_COUNTS, TWO_OR_MORE,
        "all", dtype, options, bytes_total, bandwidth,
    )  # fmt: skip


def _vector(size: int, ranks: int) -> int:
    return size


def _per_rank(size: int, ranks: int) -> int:
    return size * ranks


BENCHMARKS = (
    _declare(barrier, "time to synchronise all ranks", lambda size, ranks: 0, None, None, options=frozenset({"full"})),
    _declare(bcast, "one rank sends the same vector to all", _vector, "broadcast"),
    _declare(
        allreduce, "reduce a vector, the result on every rank", _vector, "all_reduce",
        REDUCTION_SIZES, "int32", frozenset({"type", "validation", "full", "op"}),
    ),
    _declare(allgather, "every rank gets the vectors of all ranks", _per_rank, "all_gather"),
    _declare(alltoall, "every rank sends a block to every rank", _per_rank, "alltoall"),
)  # fmt: skip

"""Blocking collectives. Each iteration: the call, timed; then a barrier, not timed."""

from __future__ import annotations

from collections.abc import Callable

from omb_py.engine import steps
from omb_py.engine.benchmark import Benchmark, Cell, Sizes, World
from omb_py.engine.dtypes import DTYPES, reduction_dtype
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


def reduce(world: World, cell: Cell) -> Program:
    """Reduce a vector of `size` bytes; root gets the result. All have room for it, as in OMB."""
    size = message_bytes(cell)
    out, back = Region("send", 0, size), Region("recv", 0, size)
    call = steps.reduce(out, back, cell.root, reduction_dtype(cell.dtype), cell.op)
    return blocking(call, cell, Buffer("send", size), Buffer("recv", size))


def reduce_scatter_block(world: World, cell: Cell) -> Program:
    """Reduce a vector of `size` bytes in all; every rank gets an equal block, the remainder is left out, as in OMB."""
    kind = reduction_dtype(cell.dtype)
    block = message_bytes(cell) // DTYPES[kind].itemsize // world.size * DTYPES[kind].itemsize
    out, back = Region("send", 0, block * world.size), Region("recv", 0, block)
    call = steps.reduce_scatter_block(out, back, kind, cell.op)
    return blocking(call, cell, Buffer("send", block * world.size), Buffer("recv", block))


def gather(world: World, cell: Cell) -> Program:
    """Root gets `size` bytes from every rank."""
    size = message_bytes(cell)
    total = size * world.size if world.rank == cell.root else 0
    call = steps.gather(Region("send", 0, size), Region("recv", 0, total), cell.root, cell.dtype)
    return blocking(call, cell, Buffer("send", size), Buffer("recv", total))


def scatter(world: World, cell: Cell) -> Program:
    """Root sends `size` bytes to every rank."""
    size = message_bytes(cell)
    total = size * world.size if world.rank == cell.root else 0
    call = steps.scatter(Region("send", 0, total), Region("recv", 0, size), cell.root, cell.dtype)
    return blocking(call, cell, Buffer("send", total), Buffer("recv", size))


def _declare(
    program: Callable[[World, Cell], Program],
    summary: str,
    bytes_total: Callable[[int, int], int],
    bandwidth: str | None,
    sizes: Sizes | None = COLLECTIVE_SIZES,
    dtype: str = "char",
    options: frozenset[str] = frozenset({"type", "validation", "full"}),
    rooted: bool = False,
) -> Benchmark:
    return Benchmark(
        program.__name__, "collective", summary, program, PER_CALL, sizes, COLLECTIVE_COUNTS, TWO_OR_MORE,
        "all", dtype, options, bytes_total, bandwidth, rooted,
    )  # fmt: skip


def _vector(size: int, ranks: int) -> int:
    return size


def _per_rank(size: int, ranks: int) -> int:
    return size * ranks


BENCHMARKS = (
    _declare(barrier, "time to synchronise all ranks", lambda size, ranks: 0, None, None, options=frozenset({"full"})),
    _declare(bcast, "one rank sends the same vector to all", _vector, "broadcast", rooted=True),
    _declare(
        allreduce, "reduce a vector, the result on every rank", _vector, "all_reduce",
        REDUCTION_SIZES, "int32", frozenset({"type", "validation", "full", "op"}),
    ),
    _declare(allgather, "every rank gets the vectors of all ranks", _per_rank, "all_gather"),
    _declare(
        reduce, "reduce a vector, the result on one rank", _vector, "reduce",
        REDUCTION_SIZES, "int32", frozenset({"type", "validation", "full", "op"}), rooted=True,
    ),
    _declare(
        reduce_scatter_block, "reduce a vector, an equal block of the result to each rank", _vector, "reduce_scatter",
        REDUCTION_SIZES, "int32", frozenset({"type", "validation", "full", "op"}),
    ),
    _declare(gather, "one rank gets the vectors of all ranks", _per_rank, "gather", rooted=True),
    _declare(scatter, "one rank sends a block to every rank", _per_rank, "scatter", rooted=True),
    _declare(alltoall, "every rank sends a block to every rank", _per_rank, "alltoall"),
)  # fmt: skip

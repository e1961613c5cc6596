"""The call of each collective; ``suites.collective.forms`` makes three benchmarks of each."""

from __future__ import annotations

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Cell, Volume, World
from omb_py.engine.program.dtypes import DTYPES, reduction_dtype
from omb_py.engine.program.language import Blocks, Buffer, Region, Step
from omb_py.suites.collective.forms import CallAndBuffers, Collective, blocking, overlapping, persistent
from omb_py.suites.shared import REDUCTION_SIZES, message_bytes, no_bytes, uneven


def _buffers(send: int, recv: int) -> tuple[Buffer, ...]:
    return Buffer("send", send), Buffer("recv", recv)


def _regions(size: int) -> tuple[Region, Region]:
    return Region("send", 0, size), Region("recv", 0, size)


def _put_in_place(call: Step, here: bool) -> Step:
    return steps.in_place(call) if here else call


def barrier(world: World, cell: Cell) -> CallAndBuffers:
    """No rank leaves before all ranks have entered."""
    return steps.barrier(), ()


def bcast(world: World, cell: Cell) -> CallAndBuffers:
    """Root sends `size` bytes to all."""
    size = message_bytes(cell)
    return steps.bcast(Region("buf", 0, size), cell.options.root, cell.dtype), (Buffer("buf", size),)


def allreduce(world: World, cell: Cell) -> CallAndBuffers:
    """Reduce a vector of `size` bytes; every rank gets the result."""
    here = cell.options.in_place
    size = message_bytes(cell)
    out, back = Region("recv" if here else "send", 0, size), Region("recv", 0, size)
    call = steps.allreduce(out, back, reduction_dtype(cell.dtype), cell.options.op)
    return _put_in_place(call, here), _buffers(size, size)


def scan(world: World, cell: Cell) -> CallAndBuffers:
    """Reduce a vector of `size` bytes over the ranks up to each."""
    size = message_bytes(cell)
    return steps.scan(*_regions(size), reduction_dtype(cell.dtype), cell.options.op), _buffers(size, size)


def exscan(world: World, cell: Cell) -> CallAndBuffers:
    """Reduce a vector of `size` bytes over the ranks before each; rank 0 gets nothing."""
    size = message_bytes(cell)
    return steps.exscan(*_regions(size), reduction_dtype(cell.dtype), cell.options.op), _buffers(size, size)


def reduce(world: World, cell: Cell) -> CallAndBuffers:
    """Reduce a vector of `size` bytes; root gets the result. Every rank has a buffer for it, as in OMB."""
    size, here = message_bytes(cell), cell.options.in_place and world.rank == cell.options.root
    out, back = Region("recv" if here else "send", 0, size), Region("recv", 0, size)
    call = steps.reduce(out, back, cell.options.root, reduction_dtype(cell.dtype), cell.options.op)
    return _put_in_place(call, here), _buffers(size, size)


def reduce_scatter(world: World, cell: Cell) -> CallAndBuffers:
    """Reduce a vector of `size` bytes, a block to each rank; the first ranks get one element of the rest, as in OMB."""
    here = cell.options.in_place
    kind, size = reduction_dtype(cell.dtype), message_bytes(cell)
    item = DTYPES[kind].itemsize
    whole, rest = divmod(size // item, world.size)
    counts = tuple(whole + (rank < rest) for rank in range(world.size))
    if cell.options.imbalance:
        counts = tuple(n // item for n in uneven(size // world.size, cell, world.size))
    size = sum(counts) * item
    out = Region("recv" if here else "send", 0, size)
    back = Region("recv", _result_at(cell, counts, world.rank) * item, counts[world.rank] * item)
    call = steps.reduce_scatter(out, back, counts, kind, cell.options.op)
    return _put_in_place(call, here), _buffers(size, size if here else back.nbytes)


def _result_at(cell: Cell, counts: tuple[int, ...], rank: int) -> int:
    """The element at which the result lies: in place MPI leaves it at the beginning, NCCL at the rank's block."""
    if not cell.options.in_place:
        return 0
    from omb_py.backends.registry import capabilities  # ranks know none otherwise

    if not capabilities(cell.backend).in_place_at_rank:
        return 0
    return sum(counts[:rank])


def _block(cell: Cell, ranks: int) -> int:
    item = DTYPES[reduction_dtype(cell.dtype)].itemsize
    return message_bytes(cell) // item // ranks * item


def _blocks(cell: Cell, ranks: int) -> Volume:
    size = _block(cell, ranks) * ranks
    return Volume(reduction_dtype(cell.dtype), size, size)


def reduce_scatter_block(world: World, cell: Cell) -> CallAndBuffers:
    """Reduce a vector of `size` bytes, an equal block to each rank; the rest is left out, as in OMB."""
    here = cell.options.in_place
    kind, block = reduction_dtype(cell.dtype), _block(cell, world.size)
    at = _result_at(cell, (block,) * world.size, world.rank)
    out, back = Region("recv" if here else "send", 0, block * world.size), Region("recv", at, block)
    call = steps.reduce_scatter_block(out, back, kind, cell.options.op)
    return _put_in_place(call, here), _buffers(block * world.size, block * world.size if here else block)


def gather(world: World, cell: Cell) -> CallAndBuffers:
    """Root gets `size` bytes from every rank."""
    size, is_root = message_bytes(cell), world.rank == cell.options.root
    here = cell.options.in_place and is_root
    total = size * world.size if is_root else 0
    out = Region("recv", world.rank * size, size) if here else Region("send", 0, size)
    call = steps.gather(out, Region("recv", 0, total), cell.options.root, cell.dtype)
    return _put_in_place(call, here), _buffers(size, total)


def gatherv(world: World, cell: Cell) -> CallAndBuffers:
    """Root gets a block from every rank: `size` bytes each, or more and less by the imbalance."""
    sizes, root = uneven(message_bytes(cell), cell, world.size), cell.options.root
    is_root = world.rank == root
    here, into = cell.options.in_place and is_root, Blocks.packed("recv", sizes)
    out = into.block(world.rank) if here else Region("send", 0, sizes[world.rank])
    call = steps.gatherv(out, into if is_root else Blocks.packed("recv", (0,) * world.size), root, cell.dtype)
    return _put_in_place(call, here), _buffers(sizes[world.rank], into.nbytes if is_root else 0)


def scatter(world: World, cell: Cell) -> CallAndBuffers:
    """Root sends `size` bytes to every rank."""
    size, is_root = message_bytes(cell), world.rank == cell.options.root
    here = cell.options.in_place and is_root
    total = size * world.size if is_root else 0
    into = Region("send", world.rank * size, size) if here else Region("recv", 0, size)
    call = steps.scatter(Region("send", 0, total), into, cell.options.root, cell.dtype)
    return _put_in_place(call, here), _buffers(total, size)


def scatterv(world: World, cell: Cell) -> CallAndBuffers:
    """Root sends a block to every rank: `size` bytes each, or more and less by the imbalance."""
    sizes, root = uneven(message_bytes(cell), cell, world.size), cell.options.root
    is_root = world.rank == root
    here, out = cell.options.in_place and is_root, Blocks.packed("send", sizes)
    into = out.block(world.rank) if here else Region("recv", 0, sizes[world.rank])
    call = steps.scatterv(out if is_root else Blocks.packed("send", (0,) * world.size), into, root, cell.dtype)
    return _put_in_place(call, here), _buffers(out.nbytes if is_root else 0, sizes[world.rank])


def allgather(world: World, cell: Cell) -> CallAndBuffers:
    """Every rank contributes `size` bytes and gets all contributions."""
    here = cell.options.in_place
    size = message_bytes(cell)
    total = size * world.size
    out = Region("recv", world.rank * size, size) if here else Region("send", 0, size)
    return _put_in_place(steps.allgather(out, Region("recv", 0, total), cell.dtype), here), _buffers(size, total)


def allgatherv(world: World, cell: Cell) -> CallAndBuffers:
    """Every rank gets a block of every rank: `size` bytes each, or more and less by the imbalance."""
    here = cell.options.in_place
    sizes = uneven(message_bytes(cell), cell, world.size)
    into = Blocks.packed("recv", sizes)
    out = into.block(world.rank) if here else Region("send", 0, sizes[world.rank])
    return _put_in_place(steps.allgatherv(out, into, cell.dtype), here), _buffers(sizes[world.rank], into.nbytes)


def alltoall(world: World, cell: Cell) -> CallAndBuffers:
    """Every rank sends `size` bytes to every rank."""
    here = cell.options.in_place
    total = message_bytes(cell) * world.size
    out = Region("recv" if here else "send", 0, total)
    return _put_in_place(steps.alltoall(out, Region("recv", 0, total), cell.dtype), here), _buffers(total, total)


def _exchange(world: World, cell: Cell) -> tuple[Blocks, Blocks, tuple[Buffer, ...]]:
    """Blocks of an exchange in which any two ranks send each other equally much, as in-place exchanges need it."""
    sizes = uneven(message_bytes(cell), cell, world.size)
    own = tuple(sizes[(world.rank + peer) % world.size] for peer in range(world.size))
    total = sum(own)
    out = Blocks.packed("recv" if cell.options.in_place else "send", own)
    return out, Blocks.packed("recv", own), _buffers(total, total)


def alltoallv(world: World, cell: Cell) -> CallAndBuffers:
    """Every rank sends a block to every rank: `size` bytes each, or more and less by the imbalance."""
    if cell.options.traffic:
        from omb_py.grammar.traffic import blocks

        matrix = blocks(cell.options.traffic, message_bytes(cell), DTYPES[cell.dtype].itemsize, world.size)
        out_sizes, in_sizes = matrix[world.rank], tuple(row[world.rank] for row in matrix)
        call = steps.alltoallv(Blocks.packed("send", out_sizes), Blocks.packed("recv", in_sizes), cell.dtype)
        return call, _buffers(sum(out_sizes), sum(in_sizes))
    out, into, buffers = _exchange(world, cell)
    return _put_in_place(steps.alltoallv(out, into, cell.dtype), cell.options.in_place), buffers


def alltoallw(world: World, cell: Cell) -> CallAndBuffers:
    """Every rank sends a block to every rank, each with its datatype; all datatypes are the same, as in OMB."""
    out, into, buffers = _exchange(world, cell)
    return _put_in_place(steps.alltoallw(out, into, cell.dtype), cell.options.in_place), buffers


def _vector(size: int, ranks: int) -> int:
    return size


def _per_rank(size: int, ranks: int) -> int:
    return size * ranks


_IN_PLACE, _ROOT, _UNEVEN, _OP = "in_place", "root", "imbalance", "op"

COLLECTIVES = (
    Collective("barrier", "time to synchronise all ranks", barrier, no_bytes, sizes=None),
    Collective(
        "bcast",
        "one rank sends the same vector to all",
        bcast,
        _vector,
        "broadcast",
        options=frozenset({_ROOT}),
    ),
    Collective(
        "reduce",
        "reduce a vector, the result on one rank",
        reduce,
        _vector,
        "reduce",
        REDUCTION_SIZES,
        "int32",
        frozenset({_OP, _IN_PLACE, _ROOT}),
    ),
    Collective(
        "allreduce",
        "reduce a vector, the result on every rank",
        allreduce,
        _vector,
        "all_reduce",
        REDUCTION_SIZES,
        "int32",
        frozenset({_OP, _IN_PLACE}),
    ),
    Collective(
        "reduce_scatter",
        "reduce a vector, a block of the result to each rank",
        reduce_scatter,
        _vector,
        "reduce_scatter",
        REDUCTION_SIZES,
        "int32",
        frozenset({_OP, _IN_PLACE, _UNEVEN}),
    ),
    Collective(
        "reduce_scatter_block",
        "reduce a vector, an equal block of the result to each rank",
        reduce_scatter_block,
        _vector,
        "reduce_scatter",
        REDUCTION_SIZES,
        "int32",
        frozenset({_OP, _IN_PLACE}),
        volume=_blocks,
    ),
    Collective(
        "gather",
        "one rank gets the vectors of all ranks",
        gather,
        _per_rank,
        "gather",
        options=frozenset({_IN_PLACE, _ROOT}),
    ),
    Collective(
        "gatherv",
        "one rank gets the vectors of all ranks, which may differ in size",
        gatherv,
        _per_rank,
        "gather",
        options=frozenset({_IN_PLACE, _ROOT, _UNEVEN}),
    ),
    Collective(
        "scatter",
        "one rank sends a block to every rank",
        scatter,
        _per_rank,
        "scatter",
        options=frozenset({_IN_PLACE, _ROOT}),
    ),
    Collective(
        "scatterv",
        "one rank sends a block to every rank, which may differ in size",
        scatterv,
        _per_rank,
        "scatter",
        options=frozenset({_IN_PLACE, _ROOT, _UNEVEN}),
    ),
    Collective(
        "allgather",
        "every rank gets the vectors of all ranks",
        allgather,
        _per_rank,
        "all_gather",
        options=frozenset({_IN_PLACE}),
    ),
    Collective(
        "allgatherv",
        "every rank gets the vectors of all ranks, which may differ in size",
        allgatherv,
        _per_rank,
        "all_gather",
        options=frozenset({_IN_PLACE, _UNEVEN}),
    ),
    Collective(
        "alltoall",
        "every rank sends a block to every rank",
        alltoall,
        _per_rank,
        "alltoall",
        options=frozenset({_IN_PLACE}),
    ),
    Collective(
        "alltoallv",
        "every rank sends a block to every rank, which may differ in size",
        alltoallv,
        _per_rank,
        "alltoall",
        options=frozenset({_IN_PLACE, _UNEVEN, "traffic"}),
    ),
    Collective(
        "alltoallw",
        "every rank sends a block to every rank, each with its datatype",
        alltoallw,
        _per_rank,
        "alltoall",
        options=frozenset({_IN_PLACE, _UNEVEN}),
    ),
)

BENCHMARKS = tuple(form(collective) for form in (blocking, overlapping, persistent) for collective in COLLECTIVES)

"""What Gloo can do and what it lacks, as data: nothing here loads PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from omb_py.engine.devices import GPU_KINDS
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.buffers import TORCH_PIP
from omb_py.engine.program.dtypes import DTYPES, reduction_dtype
from omb_py.engine.program.language import Step, walk
from omb_py.engine.program.steps import base

if TYPE_CHECKING:
    from omb_py.engine.session import Probe

LIBRARY: Final = "torch gloo"
BINDING: Final = "torch"
BUFFERS: Final = ("numpy", "torch")
"""A tensor lies in an array of NumPy (``torch.from_numpy``) or in memory of its own."""
TYPES: Final = ("char", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
"""Of the other types it says ``Invalid scalar type``. A char is an int8."""
OPS: Final = ("sum", "prod", "min", "max", "band", "bor", "bxor")
IN_PLACE_ALONE: Final = frozenset({"allreduce", "reduce"})
"""torch.distributed has no other form of these: the tensor is replaced by the result."""
_COLLECTIVES: Final = frozenset(
    (
        "barrier bcast reduce allreduce reduce_scatter reduce_scatter_block gather scatter allgather alltoall alltoallv"
    ).split()
)
STEPS: Final = (
    _COLLECTIVES
    | {f"i{op}" for op in _COLLECTIVES}
    | set("send recv isend irecv wait waitall test compute matmul flip".split())
)
FIX: Final = f"pip install 'omb-py[gloo]', or without CUDA's libraries: {TORCH_PIP}"
_INSTEAD: Final = "use --backend mpi"


def probe() -> Probe:
    """Is PyTorch there? Its metadata says so; whether it was built with Gloo shows when ranks start."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import, as what follows

    from omb_py.engine.devices.gpu import no_gpu
    from omb_py.engine.session import Probe

    reason, number = missing(), ""
    if not reason:
        try:
            number = version("torch")
        except PackageNotFoundError:  # a build without metadata
            number = "of unknown version"
    return Probe(
        "gloo",
        not reason,
        reason,
        FIX if reason else "",
        LIBRARY,
        number,
        {BINDING: reason},
        {"cpu": "", **{kind: no_gpu(kind) for kind in GPU_KINDS}},
        BUFFERS,
        {"interfaces": ", ".join(interfaces())},
    )


def missing() -> str:
    """Why Gloo cannot be used here; empty when it can."""
    return "" if find_spec("torch") else "Gloo comes with PyTorch, which is not installed"


def interfaces() -> list[str]:
    """Names of this machine's network interfaces, of which ``GLOO_SOCKET_IFNAME`` takes one or several."""
    import socket

    try:
        return [name for _, name in socket.if_nameindex()]
    except OSError:
        return []


def _steps(benchmark: Benchmark) -> Iterator[tuple[str, str]]:
    """(operation, ``window`` or empty) of everything that the benchmark's ranks do."""
    ranks = next((n for n in range(2, 17) if benchmark.ranks.admits(n)), 2)
    (size,) = benchmark.sizes_for(benchmark.dtype, (1024,))
    cell = benchmark.cell("gloo", BINDING, size)
    for rank in range(ranks):
        program = benchmark.program(World(rank, ranks), cell)
        for stage in program.stages:
            for part in (*stage.variants, stage.setup, stage.teardown):
                for node, _ in walk(part):
                    if isinstance(node, Step):
                        yield node.op, "window" if program.window else ""


def lacks(benchmark: Benchmark) -> str:
    """Why Gloo cannot do a benchmark, with what to do; empty when it can."""
    why = _lacking(benchmark)
    return f"{why}: {_INSTEAD}" if why else ""


@cache
def _lacking(benchmark: Benchmark) -> str:
    if benchmark.once or benchmark.runs:
        return ""
    if benchmark.needs.fork:
        return "PyTorch's processes must not fork"
    if benchmark.needs.thread_level == "multiple":
        return "its ranks have one thread here"
    for op, window in _steps(benchmark):
        if window:
            return "Gloo has no one-sided operations"
        if op in STEPS:
            continue
        if op.startswith(("neighbor_", "ineighbor_")):
            return "Gloo has no neighborhood collectives"
        if op.endswith("_init") or op in ("start", "startall", "free"):
            return "Gloo has no persistent operations"
        if op.startswith("comm_"):
            return "Gloo has no communicators as MPI has them"
        if base(op) in ("gatherv", "scatterv", "allgatherv"):
            return f"Gloo's {base(op)[:-1]} takes blocks of one size only"
        if base(op) == "alltoallw":
            return "Gloo has no datatypes for each block (alltoallv moves the same)"
        return f"Gloo has no {base(op)}"
    return ""


@cache
def _reduces_in_place(benchmark: Benchmark) -> bool:
    return any(base(op) in IN_PLACE_ALONE for op, _ in _steps(benchmark)) and "in_place" in benchmark.options


def fitted(benchmark: Benchmark, cell: Cell) -> Cell:
    """The cell as Gloo does it: allreduce and reduce have their in-place form alone."""
    return replace(cell, in_place=True) if _reduces_in_place(benchmark) else cell


def refuses(benchmark: Benchmark, cell: Cell) -> str:
    """Why Gloo cannot do a benchmark with these options, with what to do; empty when it can."""
    dtype = reduction_dtype(cell.dtype) if "op" in benchmark.options else cell.dtype
    if dtype in DTYPES and dtype not in TYPES:
        return f"Gloo has no type {dtype}: it takes {', '.join(TYPES)}"
    if "op" in benchmark.options and cell.op not in OPS:
        return f"Gloo has no reduction {cell.op}: it takes {', '.join(OPS)}"
    if cell.ddt:
        return "Gloo has no derived datatypes: leave out -D"
    if cell.in_place and "alltoall" in benchmark.name:
        return "Gloo's alltoall is not defined in place: leave out -l"
    if cell.process_sync == "roundtime":
        return "--process-sync roundtime needs the clocks of the mpi backend: use barrier or dissemination"
    return ""

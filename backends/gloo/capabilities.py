"""The capabilities of Gloo and its knobs, as data: nothing here loads PyTorch."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import Final

from omb_py.backends.capabilities import (
    FROM_ANYONE,
    ONE_SIDED,
    SCAN,
    SCATTER_FROM_ONE_PLACE,
    Capabilities,
    Choice,
    Inspection,
    Knob,
    LibraryKnobs,
    RankStart,
    operations,
    usable,
)
from omb_py.distribution import pip_install
from omb_py.engine.devices.registry import GPU_KINDS, EveryKind, find_kind
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.engine.program.buffers import ON_DEVICE, TORCH_PIP
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.steps import base

_DECLARED: Final = (
    (
        *("GLOO_SOCKET_IFNAME", (), "Network interfaces with commas, which are used in turn."),
        "PyTorch documentation, torch.distributed, Common environment variables",
    ),
    (
        *(
            "GLOO_DEVICE_TRANSPORT",
            ("TCP", "TCP_TLS"),
            "How bytes travel; TCP_TLS only where PyTorch was built with it: wheels are not.",
        ),
        "PyTorch 2.13, torch/csrc/distributed/c10d/GlooDeviceFactory.cpp",
    ),
)
"""Name, values, meaning, and source. Gloo chooses its algorithms by itself."""


def library_knobs() -> LibraryKnobs:
    """The declared list with the values of this environment. No library is loaded."""
    knobs = tuple(
        Knob(
            name,
            "enum" if words else "text",
            os.environ.get(name, ""),
            name,
            tuple(map(Choice, words)),
            description=meaning,
            source=source,
        )
        for name, words, meaning, source in _DECLARED
    )
    return LibraryKnobs("gloo", "Gloo", how="a declared list", knobs=knobs)


LIBRARY: Final = "torch gloo"
BINDING: Final = "torch"
BUFFERS: Final = ("numpy", "torch")
"""Memory of a tensor: an array of NumPy (``torch.from_numpy``), or PyTorch's own."""
TYPES: Final = ("char", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
"""Gloo refuses all other types (``Invalid scalar type``). A char is an int8."""
OPS: Final = ("sum", "prod", "min", "max", "band", "bor", "bxor", "avg")
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
FIX: Final = f"{pip_install('gloo')}, or without CUDA's libraries: {TORCH_PIP}"


def interfaces() -> list[str]:
    """Names of this machine's network interfaces, of which ``GLOO_SOCKET_IFNAME`` takes one or several."""
    import socket

    try:
        return [name for _, name in socket.if_nameindex()]
    except OSError:
        return []


@cache
def _explain_lack(benchmark: Benchmark, usual: Cell) -> str:
    if benchmark.once or benchmark.runs:
        return ""
    if benchmark.needs.fork:
        return "PyTorch's processes must not fork"
    if benchmark.needs.thread_level == "multiple":
        return "its ranks have one thread here"
    for op, window in operations(benchmark, usual):
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
def _reduces_in_place(benchmark: Benchmark, usual: Cell) -> bool:
    return "in_place" in benchmark.options and any(base(op) in IN_PLACE_ALONE for op, _ in operations(benchmark, usual))


class GlooCapabilities(Capabilities):
    """Whether PyTorch was built with Gloo shows when ranks start."""

    def inspect(self) -> Capabilities:
        from importlib.metadata import PackageNotFoundError, version  # slow to import, as what follows

        reason, number = _explain_missing_torch(), ""
        if not reason:
            try:
                number = version("torch")
            except PackageNotFoundError:  # a build without metadata
                number = "of unknown version"
        facts = {"interfaces": ", ".join(interfaces())}
        return replace(
            self,
            bindings={BINDING: reason},
            devices={"cpu": "", **{kind: find_kind(kind).problem() for kind in GPU_KINDS}},
            inspection=Inspection(reason, FIX if reason else "", LIBRARY, number, facts),
        )

    def missing(self) -> str:
        return f"{why}: {FIX}" if (why := _explain_missing_torch()) else ""

    def knobs(self) -> LibraryKnobs:
        return library_knobs()

    def lacks(self, benchmark: Benchmark, usual: Cell) -> str:
        why = _explain_lack(benchmark, usual)
        return f"{why}: use --backend mpi" if why else ""

    def fitted(self, benchmark: Benchmark, cell: Cell, usual: Cell) -> Cell:
        return fit_in_place(benchmark, cell, usual)

    def refuses(self, benchmark: Benchmark, cell: Cell) -> str:
        if cell.options.ddt:
            return "Gloo has no derived datatypes: leave out -D"
        if cell.options.op == "avg" and DTYPES[cell.dtype].kind == "integer" and "op" in benchmark.options:
            return "Gloo averages floats alone: -T float32, or --op sum"
        if cell.options.in_place and "alltoall" in benchmark.name:
            return "Gloo's alltoall is not defined in place: leave out -l"
        if cell.options.process_sync == "roundtime":
            return "--process-sync roundtime needs the clocks of the mpi backend: use barrier or dissemination"
        return ""


def _explain_missing_torch() -> str:
    return "" if find_spec("torch") else "Gloo comes with PyTorch, which is not installed"


def fit_in_place(benchmark: Benchmark, cell: Cell, usual: Cell) -> Cell:
    """The cell as torch.distributed does it."""
    return cell.with_options(in_place=True) if _reduces_in_place(benchmark, usual) else cell


CAPABILITIES: Final = GlooCapabilities(
    "gloo",
    bindings=usable(BINDING),
    devices=EveryKind(),
    buffers=BUFFERS,
    device_buffers=ON_DEVICE,
    title="Gloo",
    priority=10,
    dtypes=TYPES,
    ops=OPS,
    without={
        SCAN: "Gloo has no scan",
        FROM_ANYONE: "a server that answers whoever comes first needs MPI_ANY_SOURCE (mode=async answers in order)",
        ONE_SIDED: "Gloo has no one-sided operations (op=send moves the same bytes)",
        SCATTER_FROM_ONE_PLACE: "Gloo's alltoall cannot send one block to all from one place",
    },
    start=RankStart(needs_mpi=False, bound=False, pass_names=("GLOO_SOCKET_IFNAME",)),
    process_group=True,
)

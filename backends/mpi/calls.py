"""How the native binding does each step with MPI: a table of C functions and their operands by name."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from mpi4py import MPI

from omb_py.engine.dtypes import DTYPES
from omb_py.engine.memory import HostMemory
from omb_py.engine.native import Arg, Call
from omb_py.engine.program import Region, Request, Requests, Step

CALLS: Final[dict[str, tuple[str, str]]] = {
    "send": ("MPI_Send", "send count dtype peer tag comm"),
    "recv": ("MPI_Recv", "recv count dtype peer tag comm status"),
    "isend": ("MPI_Isend", "send count dtype peer tag comm request"),
    "irecv": ("MPI_Irecv", "recv count dtype peer tag comm request"),
    "wait": ("MPI_Wait", "request status"),
    "waitall": ("MPI_Waitall", "number requests status"),
    "test": ("MPI_Test", "request flag status"),
    "barrier": ("MPI_Barrier", "comm"),
    "ibarrier": ("MPI_Ibarrier", "comm request"),
    "bcast": ("MPI_Bcast", "buf count dtype root comm"),
    "allreduce": ("MPI_Allreduce", "send recv count dtype op comm"),
    "iallreduce": ("MPI_Iallreduce", "send recv count dtype op comm request"),
    "allgather": ("MPI_Allgather", "send count dtype recv count dtype comm"),
    "reduce": ("MPI_Reduce", "send recv count dtype op root comm"),
    "reduce_scatter_block": ("MPI_Reduce_scatter_block", "send recv received dtype op comm"),
    "gather": ("MPI_Gather", "send count dtype recv count dtype root comm"),
    "scatter": ("MPI_Scatter", "send received dtype recv received dtype root comm"),
    "alltoall": ("MPI_Alltoall", "send block dtype recv block dtype comm"),
}
"""step -> (function, operands). `count` counts elements of the send (or only) region, `block` of 1/ranks of it,
`received` of the receive region."""

OPS: Final[dict[str, Any]] = {"sum": MPI.SUM, "prod": MPI.PROD, "min": MPI.MIN, "max": MPI.MAX}


def datatype(name: str) -> MPI.Datatype:
    """mpi4py's datatype of one of our types."""
    found: MPI.Datatype = getattr(MPI, DTYPES[name].mpi.removeprefix("MPI_"))
    return found


def handle(thing: Any) -> int:
    """An MPI handle as the int64 that carries it: a pointer (Open MPI) or a C int (MPICH, Intel MPI)."""
    value = int(MPI._handleof(thing))
    return value - (1 << 64) if value >= 1 << 63 else value


def address_of(function: str) -> int:
    """Address of a function of the MPI library, found through the module that is linked with it."""
    return ctypes.cast(getattr(ctypes.CDLL(MPI.__file__), function), ctypes.c_void_p).value or 0


class Resolver:
    """Turns steps of one cell into C calls with addresses and handles."""

    def __init__(self, comm: MPI.Comm, memory: HostMemory, requests: int) -> None:
        self.comm, self.memory = comm, memory
        null = handle(MPI.REQUEST_NULL)
        self.request_size = MPI._sizeof(MPI.Request)
        kind = np.int64 if self.request_size == 8 else np.int32
        self.requests = np.full(max(1, requests), null, kind)
        # real status storage: MPI_STATUS_IGNORE is 0 in Open MPI and 1 in MPICH
        self.statuses = np.zeros((max(1, requests), MPI._sizeof(MPI.Status)), np.uint8)
        self.flag = np.zeros(1, np.int32)

    def __call__(self, step: Step) -> Call:
        """The C call of a step."""
        function, words = CALLS[step.op]
        return Call(address_of(function), tuple(self._operands[word](self, step) for word in words.split()))

    def region(self, region: Region) -> Arg:
        """Address of a region."""
        return Arg(self.memory.address(region.buffer) + region.offset, region.stride)

    def byte(self, step: Step) -> int:
        """Address of the byte that a ``flip`` step inverts."""
        return self.region(step["recv"]).base

    def elements(self, step: Step, parts: int = 1) -> Arg:
        """Elements in 1/`parts` of the step's send region (or its only one)."""
        region: Region = step.operands.get("send") or step.operands.get("buf") or step["recv"]  # type: ignore[assignment]
        return Arg(region.nbytes // parts // DTYPES[step["dtype"]].itemsize)

    def request(self, step: Step) -> Arg:
        """Address of a request slot, or of the first of several."""
        wanted = step.operands.get("request") or step["requests"]
        base = self.requests.ctypes.data
        if isinstance(wanted, Request):
            return Arg(base + wanted.index * self.request_size, wanted.stride * self.request_size)
        assert isinstance(wanted, Requests)
        return Arg(base + wanted.first * self.request_size)

    _operands: Final[dict[str, Callable[[Resolver, Step], Arg]]] = {
        "send": lambda self, step: self.region(step["send"]),
        "recv": lambda self, step: self.region(step["recv"]),
        "buf": lambda self, step: self.region(step["buf"]),
        "count": lambda self, step: self.elements(step),
        "block": lambda self, step: self.elements(step, self.comm.Get_size()),
        "received": lambda self, step: Arg(step["recv"].nbytes // DTYPES[step["dtype"]].itemsize),
        "dtype": lambda self, step: Arg(handle(datatype(step["dtype"]))),
        "op": lambda self, step: Arg(handle(OPS[step["op"]])),
        "peer": lambda self, step: Arg(step["peer"]),
        "root": lambda self, step: Arg(step["root"]),
        "tag": lambda self, step: Arg(step["tag"]),
        "comm": lambda self, step: Arg(handle(self.comm)),
        "request": lambda self, step: self.request(step),
        "requests": lambda self, step: self.request(step),
        "number": lambda self, step: Arg(step["requests"].count),
        "status": lambda self, step: Arg(int(self.statuses.ctypes.data)),
        "flag": lambda self, step: Arg(int(self.flag.ctypes.data)),
    }

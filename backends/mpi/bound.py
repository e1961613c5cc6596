"""How the mpi4py binding does each step: the call a Python program would write, with bound methods."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from mpi4py import MPI

from omb_py.backends.mpi.calls import OPS, datatype
from omb_py.engine.dtypes import DTYPES
from omb_py.engine.flat import Names
from omb_py.engine.memory import HostMemory
from omb_py.engine.program import Program, Region, Request, Requests, Step, request_count

METHODS: Final[dict[str, tuple[str, str]]] = {
    "send": ("Send", "send peer tag"),
    "recv": ("Recv", "recv peer tag"),
    "isend": ("Isend", "send peer tag"),
    "irecv": ("Irecv", "recv peer tag"),
    "barrier": ("Barrier", ""),
    "ibarrier": ("Ibarrier", ""),
    "bcast": ("Bcast", "buf root"),
    "allreduce": ("Allreduce", "send recv op"),
    "iallreduce": ("Iallreduce", "send recv op"),
    "allgather": ("Allgather", "send recv"),
    "alltoall": ("Alltoall", "send recv"),
    "reduce": ("Reduce", "send recv op root"),
    "reduce_scatter_block": ("Reduce_scatter_block", "send recv op"),
    "gather": ("Gather", "send recv root"),
    "scatter": ("Scatter", "send recv root"),
}
"""step -> (method of the communicator, arguments)."""


class Renderer:
    """Renders the steps of one cell as Python statements."""

    def __init__(self, comm: MPI.Comm, memory: HostMemory, program: Program) -> None:
        self.comm, self.memory = comm, memory
        self.nbytes = {buffer.name: buffer.nbytes for buffer in program.buffers}
        self.requests: list[Any] = [MPI.REQUEST_NULL] * request_count(program)
        self._buffers: dict[tuple[Region, str], Any] = {}
        self._methods = {method: getattr(comm, method) for method, _ in METHODS.values()}
        self._waitall = MPI.Request.Waitall

    def __call__(self, step: Step, names: Names, k: str) -> str:
        """One statement for a step (:data:`omb_py.engine.flat.Render`)."""
        if step.op == "flip":
            byte = self.memory.view(step["recv"].buffer, step["recv"].offset + 1)[step["recv"].offset :]
            when = "True" if step["iteration"] < 0 else f"i == {step['iteration']}"
            return f"if {when}: {names.bind(byte)}[0] ^= 255"
        if step.op == "wait":
            return f"{self.slot(step['request'], names, k)}.Wait()"
        if step.op == "test":
            return f"{self.slot(step['request'], names, k)}.Test()"
        if step.op == "waitall":
            group: Requests = step["requests"]
            part = "" if group == Requests(0, len(self.requests)) else f"[{group.first}:{group.first + group.count}]"
            return f"{names.bind(self._waitall, 'waitall')}({names.bind(self.requests, 'q')}{part})"
        method, words = METHODS[step.op]
        arguments = ", ".join(self.argument(word, step, names, k) for word in words.split())
        call = f"{names.bind(self._methods[method], method.lower())}({arguments})"
        if "request" in step.operands:
            return f"{self.slot(step['request'], names, k)} = {call}"
        return call

    def slot(self, request: Request, names: Names, k: str) -> str:
        """The element of the request list."""
        index = str(request.index)
        if k and request.stride:
            index = ("" if request.index == 0 else f"{request.index} + ") + (
                k if request.stride == 1 else f"{k} * {request.stride}"
            )
        return f"{names.bind(self.requests, 'q')}[{index}]"

    def argument(self, word: str, step: Step, names: Names, k: str) -> str:
        """One argument as source."""
        value = step[word]
        if isinstance(value, Region):
            buffer = self.buffer(value, step["dtype"])
            suffix = f"[{k}]" if k and value.stride else ""
            return names.bind(buffer, "b") + suffix
        if word == "op":
            return names.bind(OPS[value], "op")
        return str(value)

    def buffer(self, region: Region, dtype: str) -> Any:
        """What the program passes for a region; for a strided one a list, an object for each pass."""
        key = (region, dtype)
        if key not in self._buffers:
            if region.stride:
                passes = (self.nbytes[region.buffer] - region.offset) // region.stride
                self._buffers[key] = [self.message(region.at(k), dtype) for k in range(passes)]
            else:
                self._buffers[key] = self.message(region, dtype)
        return self._buffers[key]

    def message(self, region: Region, dtype: str) -> Any:
        """NumPy arrays go as they are; for bytes, and for MPI_CHAR that NumPy does not know, the type is named."""
        start, stop = region.offset, region.offset + region.nbytes
        if self.memory.kind == "numpy":
            array = self.memory.view(region.buffer, stop)[start:].view(np.dtype(DTYPES[dtype].numpy))
            return [array, datatype(dtype)] if dtype == "char" else array
        owner: Any = self.memory.owner(region.buffer)
        return [memoryview(owner)[start:stop], datatype(dtype)]

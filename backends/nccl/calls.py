"""How the native binding does each step with NCCL: its C functions, the device's, and their operands by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from omb_py.backends.nccl.library import Library
from omb_py.engine.devices import FUNCTIONS, OTHER_STREAM, Device
from omb_py.engine.devices.memory import DeviceMemory
from omb_py.engine.dtypes import DTYPES
from omb_py.engine.native import Arg, Call
from omb_py.engine.program import Region, Result, Step
from omb_py.errors import EnvironmentProblem

TYPES: Final = {
    "char": 0, "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7,
    "float64": 8, "bfloat16": 9,
}  # fmt: skip
"""Our types -> ncclDataType_t (nccl.h)."""
OPS: Final = {"sum": 0, "prod": 1, "max": 2, "min": 3}
"""Our reductions -> ncclRedOp_t (nccl.h)."""
BFLOAT16_SINCE: Final = (2, 10, 0)
CALLS: Final = {
    "allreduce": ("ncclAllReduce", "send recv count dtype op comm stream"),
    "reduce": ("ncclReduce", "send recv count dtype op root comm stream"),
    "bcast": ("ncclBroadcast", "buf buf count dtype root comm stream"),
    "allgather": ("ncclAllGather", "send recv count dtype comm stream"),
    "reduce_scatter_block": ("ncclReduceScatter", "send recv received dtype op comm stream"),
    "alltoall": ("ncclAlltoAll", "send recv block dtype comm stream"),
    "gather": ("ncclGather", "send recv count dtype root comm stream"),
    "scatter": ("ncclScatter", "send recv received dtype root comm stream"),
    "send": ("ncclSend", "send count dtype peer comm stream"),
    "recv": ("ncclRecv", "recv received dtype peer comm stream"),
    "group_start": ("ncclGroupStart", ""),
    "group_end": ("ncclGroupEnd", ""),
    "barrier": ("ncclAllReduce", "scratch scratch one char max comm stream"),
}
"""step -> (function, operands). NCCL has no barrier: a reduction of one byte does it."""
SCRATCH: Final = "barrier's byte"
"""Its buffer."""


def check_types(step: Step, library: Library) -> None:
    """Raises EnvironmentProblem when the library has no such element type or reduction."""
    dtype, op = str(step.operands.get("dtype", "char")), str(step.operands.get("op", "sum"))
    what = f"{library.name} {library.version_text}"
    if dtype not in TYPES or (dtype == "bfloat16" and library.version < BFLOAT16_SINCE):
        raise EnvironmentProblem(f"{what} has no type {dtype}: -T with one of {', '.join(TYPES)}")
    if op not in OPS:
        raise EnvironmentProblem(f"{what} has no reduction {op}: --op with one of {', '.join(OPS)}")


class Resolver:
    """Turns lowered steps into C calls.

    Args:
        library: NCCL or RCCL.
        comm: the communicator's handle.
        memory: the buffers.
        size: number of ranks.
        handles: of events and graphs, by slot, int64; read when a step runs.
    """

    def __init__(self, library: Library, comm: int, memory: DeviceMemory, size: int, handles: Any) -> None:
        self.library, self.comm, self.memory, self.size, self.handles = library, comm, memory, size, handles
        self.device: Device = memory.device
        self._other = 0
        self.results: Mapping[tuple[str, str], float] = {}
        """Laps of earlier stages."""

    def __call__(self, step: Step) -> Call:
        """The C call of a step. Raises EnvironmentProblem when the library lacks the function."""
        if step.op in CALLS:
            function, words = CALLS[step.op]
            address = self.library.address_of(function)
        elif step.op in FUNCTIONS:
            address, words = self.device.function(step.op), FUNCTIONS[step.op]
        else:
            raise EnvironmentProblem(f"backend nccl cannot do {step.op}")
        return Call(address, tuple(self._operand(word, step) for word in words.split()))

    def other_stream(self) -> int:
        """A second stream, made when first asked for."""
        self._other = self._other or self.device.new_stream()
        return self._other

    def byte(self, step: Step) -> int:
        """The host cannot invert a byte that lies on a device."""
        raise EnvironmentProblem("faults are injected into host memory only: --backend mpi or mock")

    def _operand(self, word: str, step: Step) -> Arg:
        if word in ("send", "recv", "buf"):
            return self._region(step[word])
        if word == "scratch":
            return Arg(self.memory.address(SCRATCH))
        if word == "stream":
            return Arg(self.other_stream() if step.operands.get("stream") == OTHER_STREAM else self.device.stream)
        if word == "address":
            return self._region(step["address"])
        if word in ("event", "executable") and step.op != "instantiate":
            return Arg(self._slot(step), load=8)  # made before the loop, known when it runs
        if word == "graph" and step.op == "instantiate":
            return Arg(self._slot(step) - self.handles.itemsize, load=8)
        if word in ("graph", "executable"):
            return Arg(self._slot(step))
        if word == "ns":
            ns: Result | int = step["ns"]
            return Arg(ns.of(self.results) if isinstance(ns, Result) else int(ns))
        if word in _NUMBERS:
            return Arg(_NUMBERS[word](step, self.size))
        constants = {"one": 1, "char": TYPES["char"], "max": OPS["max"], "comm": self.comm, "mask": 0xFFFFFFFF}
        return Arg(constants[word] if word in constants else int(step[word]))

    def _slot(self, step: Step) -> int:
        return int(self.handles.ctypes.data) + int(step["slot"]) * int(self.handles.itemsize)

    def _region(self, region: Region) -> Arg:
        return Arg(self.memory.address(region.buffer) + region.offset, region.stride, turn=region.turn)


def handles(slots: int) -> Any:
    """Room for handles that steps make or read."""
    return np.zeros(slots, np.int64)


def _items(region: Region, step: Step, parts: int = 1) -> int:
    return int(region.nbytes) // parts // DTYPES[step["dtype"]].itemsize


_NUMBERS: Final[Mapping[str, Callable[[Step, int], int]]] = {
    "count": lambda step, size: _items(step["send" if "send" in step.operands else "buf"], step),
    "received": lambda step, size: _items(step["recv"], step),
    "block": lambda step, size: _items(step["send"], step, size),
    "dtype": lambda step, size: TYPES[str(step["dtype"])],
    "op": lambda step, size: OPS[step["op"]],
    "root": lambda step, size: int(step["root"]),
    "peer": lambda step, size: int(step["peer"]),
}

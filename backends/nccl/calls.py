"""The native binding's NCCL calls: steps to C functions of NCCL and the device, and their operands by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.nccl.capabilities import OPS as ALL_OPS
from omb_py.backends.nccl.communicators import GROW, SCRATCH, Communicators, pointer_to
from omb_py.backends.nccl.library import Library
from omb_py.engine.devices import FUNCTIONS, OTHER_STREAM, Device
from omb_py.engine.measuring.async_timing import LANES
from omb_py.engine.native.matmul import OPERANDS, fill
from omb_py.engine.native.translate import Arg, NativeCall
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.dtypes import DTYPES, FP8
from omb_py.engine.program.groups import group_of
from omb_py.engine.program.language import Blocks, Region, Result, Step
from omb_py.engine.program.steps import MATMUL, REDUCTIONS, base
from omb_py.errors import EnvironmentProblem

TYPES: Final = {
    "char": 0,
    "int8": 0,
    "uint8": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
    "float8e4m3": 10,
    "float8e5m2": 11,
}
"""Our types -> ncclDataType_t (nccl.h)."""
OPS: Final = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}
"""Our reductions -> ncclRedOp_t (nccl.h). ``mulsum`` is made for a communicator (:meth:`.Communicators.mulsum`)."""
MULSUM: Final = "mulsum"
OPS_SINCE: Final = {"avg": (2, 10, 0), "mulsum": (2, 11, 0)}
"""Versions of NCCL from which on it has a reduction: ncclAvg, ncclRedOpCreatePreMulSum."""
TYPES_SINCE: Final = {"bfloat16": (2, 10, 0), "float8e4m3": (2, 24, 0), "float8e5m2": (2, 24, 0)}
"""Versions of NCCL from which on it has a type."""
TYPES_SINCE_OF_RCCL: Final = {**TYPES_SINCE, "float8e4m3": (2, 20, 0), "float8e5m2": (2, 20, 0)}
"""The same of RCCL, which had fp8 under the same numbers earlier (its changelog, ROCm 6.2)."""
FP8_REDUCES_SINCE: Final = (9, 0)
"""Compute capability of NVIDIA's GPUs from which on NCCL reduces fp8."""
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
    "comm_dup": ("ncclCommSplit", "comm zero rank new_comm zero"),
    "comm_split": ("ncclCommSplit", "comm color rank new_comm zero"),
    "comm_shrink": ("ncclCommShrink", "comm excluded excluded_count new_comm zero zero"),
    "comm_free": ("ncclCommDestroy", "made"),
    "put": ("ncclPutSignal", "send count dtype peer window at zero zero zero comm stream"),
    "win_post": ("ncclSignal", "peer zero zero zero comm stream"),
    "win_start": ("ncclWaitSignal", "descriptors signals comm stream"),
    "win_wait": ("ncclWaitSignal", "descriptors signals comm stream"),
}
"""step -> (function, operands). A barrier is a reduction of one byte, a duplicate a split into one."""
MADE_BY: Final = {"comm_create": "ncclCommInitRank", GROW: "ncclCommGrow"}
"""Steps that are no function of the library's alone -> the last of them: an id's way to other ranks comes before it."""
CONFIGURED: Final = frozenset({"allreduce", "reduce", "bcast", "allgather", "reduce_scatter_block"})
"""Steps whose function has a form with a configuration, ``nccl…Config``, that may name algorithms.

alltoall, gather and scatter have the form, but are sends and receives inside.
"""
BY_VARIABLE: Final = CONFIGURED | {"reduce_scatter"}
"""Steps in which NCCL_ALGO has a part: torch's reduce_scatter is NCCL's reduces."""


def check_types(step: Step, library: Library, device: Device) -> None:
    """Raises EnvironmentProblem when the library has no such element type or reduction, or the GPU lacks it."""
    dtype, op = str(step.operands.get("dtype", "char")), str(step.operands.get("op", "sum"))
    library_name = f"{library.name} {library.version_text}"
    since = TYPES_SINCE_OF_RCCL if library.name == "RCCL" else TYPES_SINCE
    if dtype not in TYPES or library.version < since.get(dtype, (0, 0, 0)):
        available = [name for name in TYPES if library.version >= since.get(name, (0, 0, 0))]
        newer = f" (it came with {'.'.join(map(str, since[dtype][:2]))})" if dtype in since else ""
        raise EnvironmentProblem(f"{library_name} has no type {dtype}{newer}: -T with one of {', '.join(available)}")
    capability = getattr(device, "capability", None)
    if dtype in FP8 and base(step.op) in REDUCTIONS and capability is not None and capability < FP8_REDUCES_SINCE:
        raise EnvironmentProblem(
            f"{device.name} has compute capability {'.'.join(map(str, capability))}, and {library.name} reduces "
            f"{dtype} from 9.0 on: -T bfloat16, or another GPU"
        )
    if library.name == "RCCL" and dtype in FP8 and op in ("prod", MULSUM):
        raise EnvironmentProblem(
            f"RCCL counts {dtype} with another bias on some GPUs (MI300), so {op} cannot be checked: --op sum"
        )
    available = [name for name in ALL_OPS if library.version >= OPS_SINCE.get(name, (0, 0, 0))]
    if op not in available:
        newer = f" (it came with {'.'.join(map(str, OPS_SINCE[op][:2]))})" if op in OPS_SINCE else ""
        raise EnvironmentProblem(
            f"{library_name} has no reduction {op}{newer}: --op with one of {', '.join(available)}"
        )


def check_algorithm(benchmark: str, ops: Collection[str], by_call: bool) -> None:
    """Raises EnvironmentProblem when an algorithm is chosen and no step of a benchmark has any."""
    if base(benchmark) == "barrier" and not by_call:
        return  # an allreduce; in other benchmarks it stands beside what is measured
    if not (CONFIGURED if by_call else BY_VARIABLE).intersection(ops):
        raise EnvironmentProblem(f"NCCL has no choice of algorithms for {benchmark}: leave algorithm out of --nccl")


def call_of(op: str, library: Library) -> tuple[str, str] | None:
    """Function and operands of a step; None where it is no call of the library."""
    return library.family.calls.get(op) or CALLS.get(op)


def check_function(step: Step, library: Library) -> None:
    """Raises EnvironmentProblem when this version of the library has no function for a step."""
    call = call_of(step.op, library)
    if function := call[0] if call else MADE_BY.get(step.op):
        library.address_of(function)


class NcclResolver:
    """Turns lowered steps into C calls.

    Args:
        comms: the communicator, or several, and the buffers.
        world: this rank, and how many there are.
        handles: of events and graphs, by slot, int64; read when a step runs.
        shift: bytes of each buffer that stand before what a call is given.
    """

    def __init__(self, library: Library, comms: Communicators, world: World, handles: Any, shift: int = 0) -> None:
        self.shift = shift
        self.library, self.comms, self.memory, self.handles = library, comms, comms.memory, handles
        self.rank, self.size = world.rank, world.size
        self.device: Device = comms.device
        self._other = 0
        self._counts: list[NDArray[np.uint64] | NDArray[np.int32]] = []
        """What calls of this cell are given the addresses of."""
        self._created = np.zeros(1, np.int64)
        """The communicator that a step has made."""
        self.results: Mapping[tuple[str, str], float] = {}
        """Laps of earlier stages."""

    def __call__(self, step: Step) -> NativeCall:
        """The C call of a step. Raises EnvironmentProblem when the library lacks the function."""
        if call := call_of(step.op, self.library):
            function, words = call
            if self.comms.config is not None and step.op in CONFIGURED:
                function, words = f"{function}Config", f"{words} config"
            address = self.library.address_of(function)
        elif step.op in MADE_BY:
            address, words = self.comms.maker(step.op, group_of(step)), "new_comm"
        elif step.op in FUNCTIONS:
            if step.op == MATMUL:
                fill(self.memory, step)
            address, words = self.device.function(step.op), FUNCTIONS[step.op]
        else:
            raise EnvironmentProblem(f"backend nccl cannot do {step.op}")
        return NativeCall(address, tuple(self.operand(word, step) for word in words.split()))

    def other_stream(self) -> int:
        """A second stream, made when first asked for."""
        self._other = self._other or self.device.new_stream()
        return self._other

    def byte(self, step: Step) -> int:
        """Address on the host of the byte that a ``flip`` step inverts."""
        return self.memory.host.address(step["recv"].buffer) + self.shift + int(step["recv"].offset)

    def operand(self, word: str, step: Step) -> Arg:
        """An operand of a C call by its name."""
        if word in ("send", "recv", "buf"):
            return self._region(step[word], self.shift)
        if word in OPERANDS:
            return self._region(step[word])
        if word in ("sent_counts", "received_counts"):
            blocks = step["send" if word == "sent_counts" else "recv"]
            return self._numbers(blocks.sizes, step)
        if word in ("sent_at", "received_at"):
            blocks = step["send" if word == "sent_at" else "recv"]
            return self._numbers([offset - blocks.offsets[0] for offset in blocks.offsets], step)
        if word == "window":
            return Arg(self.comms.window_of(step["window"].buffer))
        if word == "at":
            place: Region = step["window"]
            return Arg(self.shift + place.offset, place.stride, turn=place.turn)
        if word == "signals":
            return self._descriptor(step)
        if word in ("device", "host"):
            at, memory = step["region"], self.memory.host if word == "host" else self.memory
            return Arg(memory.address(at.buffer) + self.shift + at.offset, at.stride, turn=at.turn)
        if word == "nbytes":
            return Arg(step["region"].nbytes)
        if word == "scratch":
            return Arg(self.memory.address(SCRATCH))
        if word in ("new_comm", "made"):
            return Arg(int(self._created.ctypes.data), load=8 * (word == "made"))
        if word == "excluded":
            return self._keep(np.array(step["excluded"], np.int32))
        if word == "excluded_count":
            return Arg(len(step["excluded"]))
        if word == "color":
            return Arg(self.rank % int(step["parts"]))
        if word == "comm" and step.op == "barrier":
            return Arg(self.comms.barrier_of(group_of(step)))
        if word in ("comm", "stream") and LANES in step.operands:  # another one in each pass
            handles = self.comms.handles if word == "comm" else self.comms.streams
            return Arg(int(handles.ctypes.data), int(handles.itemsize), load=8)
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
        if word == "op" and step["op"] == MULSUM:
            operation = self.comms.mulsum(str(step["dtype"]), TYPES[str(step["dtype"])], group_of(step))
            if LANES in step.operands:
                return Arg(int(operation.ctypes.data), int(operation.itemsize), load=8)
            return Arg(int(operation[0]))
        if word in _NUMBERS:
            return Arg(_NUMBERS[word](step, len(group_of(step)) or self.size))
        if word == "comm":
            return Arg(self.comms.handle_of(group_of(step)))
        if word == "config":
            return Arg(pointer_to(self.comms.config))
        constants = {
            "zero": 0,
            "one": 1,
            "descriptors": 1,
            "char": TYPES["char"],
            "max": OPS["max"],
            "rank": self.rank,
            "mask": 0xFFFFFFFF,
        }
        return Arg(constants[word] if word in constants else int(step[word]))

    def _numbers(self, nbytes: Sequence[int], step: Step) -> Arg:
        """The address of an array of numbers of elements."""
        item = DTYPES[step["dtype"]].itemsize
        return self._keep(np.array([one // item for one in nbytes], np.uint64))

    def _descriptor(self, step: Step) -> Arg:
        """The address of an ncclWaitSignalDesc_t: number of signals, rank, index and context, an int each (nccl.h)."""
        return self._keep(np.array([int(step["signals"]), int(step["peer"]), 0, 0], np.int32))

    def _keep(self, numbers: NDArray[np.uint64] | NDArray[np.int32]) -> Arg:
        """The address of numbers that live as long as the calls that are given it."""
        self._counts.append(numbers)
        return Arg(int(numbers.ctypes.data))

    def _slot(self, step: Step) -> int:
        return int(self.handles.ctypes.data) + int(step["slot"]) * int(self.handles.itemsize)

    def _region(self, region: Region | Blocks, shift: int = 0) -> Arg:
        start = self.memory.address(region.buffer) + shift
        if isinstance(region, Blocks):  # one after the other
            return Arg(start + region.offsets[0], turn=region.turn)
        return Arg(start + region.offset, region.stride, turn=region.turn)


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

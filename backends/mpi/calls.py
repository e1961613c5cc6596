"""The native binding's MPI calls: a table from steps to C functions and their operands by name."""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from mpi4py import MPI

from omb_py.backends.mpi.rma import RMA_CALLS, OpenWindow, WindowOperands, handle
from omb_py.backends.mpi.start import missing_in
from omb_py.backends.mpi.types import OPS, datatype
from omb_py.engine.measuring.host_memory import ProgramMemory
from omb_py.engine.native.translate import Arg, NativeCall
from omb_py.engine.program.datatype_layouts import itemsize
from omb_py.engine.program.language import Blocks, Region, Step
from omb_py.engine.program.steps import MATMUL, PREFIXES, base
from omb_py.engine.samples import address_of_array

CommOf = Callable[[Step], MPI.Comm]

INT_MAX: Final = (1 << 31) - 1
IN_PLACE: Final = int(MPI.IN_PLACE)

_COLLECTIVES: Final = {
    "barrier": "",
    "bcast": "buf count dtype root",
    "reduce": "send recv count dtype op root",
    "allreduce": "send recv count dtype op",
    "reduce_scatter": "send recv counts dtype op",
    "reduce_scatter_block": "send recv received dtype op",
    "gather": "send count dtype recv count dtype root",
    "gatherv": "send count dtype recv received_counts received_displs dtype root",
    "scatter": "send received dtype recv received dtype root",
    "scatterv": "send sent_counts sent_displs dtype recv received dtype root",
    "allgather": "send count dtype recv count dtype",
    "allgatherv": "send count dtype recv received_counts received_displs dtype",
    "alltoall": "send block dtype recv block dtype",
    "alltoallv": "send sent_counts sent_displs dtype recv received_counts received_displs dtype",
    "alltoallw": "send sent_counts sent_bytes dtypes recv received_counts received_bytes dtypes",
}
"""Operands of the blocking forms, before the communicator."""
_NEIGHBORHOOD: Final = {
    "neighbor_allgather": "send count dtype recv count dtype",
    "neighbor_allgatherv": _COLLECTIVES["allgatherv"],
    "neighbor_alltoall": "send each dtype recv each dtype",
    "neighbor_alltoallv": _COLLECTIVES["alltoallv"],
    "neighbor_alltoallw": "send sent_counts sent_aints dtypes recv received_counts received_aints dtypes",
}


def _calls() -> dict[str, tuple[str, str]]:
    """step -> (function, operands): collectives in their three forms, and the rest."""
    calls = {
        "send": ("MPI_Send", "send count dtype peer tag comm"),
        "recv": ("MPI_Recv", "recv count dtype peer tag comm status"),
        "recv_any": ("MPI_Recv", "recv count dtype any_source tag comm status"),
        "recv_next": ("MPI_Recv", "recv count dtype any_source tag comm arrival"),
        "answer": ("MPI_Send", "send count dtype latest tag comm"),
        "ianswer": ("MPI_Isend", "send count dtype latest tag comm request"),
        "sendrecv": ("MPI_Sendrecv", "send count dtype target tag recv received dtype source tag comm status"),
        "sendrecv_replace": ("MPI_Sendrecv_replace", "replaced count dtype target tag source tag comm status"),
        "isend": ("MPI_Isend", "send count dtype peer tag comm request"),
        "irecv": ("MPI_Irecv", "recv count dtype peer tag comm request"),
        "send_init": ("MPI_Send_init", "send count dtype peer tag comm request"),
        "recv_init": ("MPI_Recv_init", "recv count dtype peer tag comm request"),
        "psend_init": ("MPI_Psend_init", "send partitions partition_items dtype peer tag comm info request"),
        "precv_init": ("MPI_Precv_init", "recv partitions partition_items dtype peer tag comm info request"),
        "pready": ("MPI_Pready", "partition handle"),
        "parrived": ("MPI_Parrived", "handle partition flag"),
        "tell": ("MPI_Bcast", "buf count dtype root comm"),
        "wait": ("MPI_Wait", "request status"),
        "waitall": ("MPI_Waitall", "number requests status"),
        "test": ("MPI_Test", "request flag status"),
        "start": ("MPI_Start", "request"),
        "startall": ("MPI_Startall", "number requests"),
        "free": ("MPI_Request_free", "request"),
        "comm_dup": ("MPI_Comm_dup", "comm new_comm"),
        "comm_split": ("MPI_Comm_split", "comm color rank new_comm"),
        "comm_create": ("MPI_Comm_create", "comm everyone new_comm"),
        "comm_free": ("MPI_Comm_free", "new_comm"),
        **RMA_CALLS,
    }
    calls |= {op: (f"MPI_{op.capitalize()}", "send recv count dtype op comm") for op in PREFIXES}
    calls["reduce_local"] = "MPI_Reduce_local", "send recv count dtype op"
    for op, words in {**_COLLECTIVES, **_NEIGHBORHOOD}.items():
        calls[op] = f"MPI_{op.capitalize()}", f"{words} comm"
        calls[f"i{op}"] = f"MPI_I{op}", f"{words} comm request"
        calls[f"{op}_init"] = f"MPI_{op.capitalize()}_init", f"{words} comm info request"
    return calls


CALLS: Final[dict[str, tuple[str, str]]] = _calls()
"""step -> (function, operands). `count` counts elements of the send (or only) region, `block` of 1/ranks of it,
`each` of the block of a neighbor, `received` of the receive region."""


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(MPI.__file__)


def address_of(function: str) -> int:
    """Address of a function of the MPI library. Raises EnvironmentProblem when this library does not have it."""
    try:
        pointer = getattr(_library(), function)
    except AttributeError:
        raise missing_in(MPI, function) from None
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


@cache
def source_offset() -> int:
    """Where MPI_SOURCE lies in the library's MPI_Status, in bytes: the standard names the field, not its place."""
    unlikely, status = 0x5AC3_17E9, MPI.Status()
    status.Set_source(unlikely)
    content = ctypes.string_at(MPI._addressof(status), MPI._sizeof(MPI.Status))
    return content.index(unlikely.to_bytes(ctypes.sizeof(ctypes.c_int), sys.byteorder))


class MpiResolver(WindowOperands):
    """Turns steps of one cell into C calls with addresses and handles.

    Args:
        memory: where the buffers lie.
        requests: how many request slots there are.
    """

    def __init__(self, comm_of: CommOf, memory: ProgramMemory, requests: int, window: OpenWindow | None = None) -> None:
        self.comm_of, self.memory, self.window = comm_of, memory, window
        null = handle(MPI.REQUEST_NULL)
        self.request_size = MPI._sizeof(MPI.Request)
        self.requests = array("q" if self.request_size == 8 else "i", [null]) * max(1, requests)
        # real status storage: MPI_STATUS_IGNORE is 0 in Open MPI and 1 in MPICH
        self.statuses = array("b", bytes(max(1, requests) * MPI._sizeof(MPI.Status)))
        self.arrival = array("b", bytes(MPI._sizeof(MPI.Status)))
        """Status of the last receive from whoever comes first; no other call writes it."""
        self.flag = array("i", [0])
        self.created = array("q", [0])  # a communicator's handle, of either width
        self._arrays: list[array[int]] = []
        self._groups: list[MPI.Group] = []
        self._wide = False

    def __call__(self, step: Step) -> NativeCall:
        """The C call of a step: the large-count one of MPI-4 where a count or displacement exceeds 2^31 - 1.

        Raises EnvironmentProblem when the library lacks the function.
        """
        if step.op == MATMUL:
            from omb_py.engine.native import matmul  # with NumPy

            return matmul.call(step, self.memory)
        function, words = function_of(step, self.comm_of)
        self._wide = function.endswith("_c")
        return NativeCall(address_of(function), tuple(self._operand(word, step) for word in words.split()))

    def _operand(self, word: str, step: Step) -> Arg:
        if method := getattr(self, f"_{word}", None):
            arg: Arg = method(step)
            return arg
        value = _NUMBERS[word](step, self.comm_of(step)) if word in _NUMBERS else step[word]
        if isinstance(value, int):
            return Arg(value)
        if isinstance(value, list):
            return self._array(value, "q" if self._wide or word.endswith("_aints") else "i")
        return self.region(value)

    def region(self, region: Region | Blocks) -> Arg:
        """Address of a region, or of the buffer whose blocks are displaced from its beginning."""
        base = self.memory.address(region.buffer)
        if isinstance(region, Blocks):
            return Arg(base, turn=region.turn)
        return Arg(base + region.offset, region.stride, turn=region.turn)

    def byte(self, step: Step) -> int:
        """Address of the byte that a ``flip`` step inverts."""
        return self.region(step["recv"]).base

    def _send(self, step: Step) -> Arg:
        # MPI_IN_PLACE replaces the receive buffer of the root of a scatter, the send buffer elsewhere
        if "in_place" in step.operands and base(step.op) not in ("scatter", "scatterv"):
            return Arg(IN_PLACE)
        return self.region(step["send"])

    def _recv(self, step: Step) -> Arg:
        if "in_place" in step.operands and base(step.op) in ("scatter", "scatterv"):
            return Arg(IN_PLACE)
        return self.region(step["recv"])

    def _array(self, values: Sequence[int], kind: str) -> Arg:
        self._arrays.append(array(kind, values))
        return Arg(address_of_array(self._arrays[-1]))

    def _dtypes(self, step: Step) -> Arg:
        kind = "q" if MPI._sizeof(MPI.Datatype) == 8 else "i"
        blocks = max(len(step["send"].sizes), len(step["recv"].sizes))
        return self._array([handle(datatype(step["dtype"]))] * blocks, kind)

    def _dtype(self, step: Step) -> Arg:
        return Arg(handle(datatype(step["dtype"])))

    def _op(self, step: Step) -> Arg:
        return Arg(handle(OPS[step["op"]]))

    def _any_source(self, step: Step) -> Arg:
        return Arg(MPI.ANY_SOURCE)

    def _arrival(self, step: Step) -> Arg:
        return Arg(address_of_array(self.arrival))

    def _latest(self, step: Step) -> Arg:
        """The source of the last arrival: it is known only when the step runs."""
        return Arg(address_of_array(self.arrival) + source_offset(), load=ctypes.sizeof(ctypes.c_int))

    def _comm(self, step: Step) -> Arg:
        return Arg(handle(self.comm_of(step)))

    def _new_comm(self, step: Step) -> Arg:
        return Arg(address_of_array(self.created))

    def _color(self, step: Step) -> Arg:
        return Arg(self.comm_of(step).Get_rank() % step["parts"])

    def _rank(self, step: Step) -> Arg:
        return Arg(self.comm_of(step).Get_rank())

    def _everyone(self, step: Step) -> Arg:
        self._groups.append(self.comm_of(step).Get_group())
        return Arg(handle(self._groups[-1]))

    def _info(self, step: Step) -> Arg:
        return Arg(handle(MPI.INFO_NULL))

    def _request(self, step: Step) -> Arg:
        request = step["request"]
        start = address_of_array(self.requests) + request.index * self.request_size
        return Arg(start, request.stride * self.request_size)

    def _handle(self, step: Step) -> Arg:
        """A request by value: it is known only when the step runs."""
        where = self._request(step)
        return Arg(where.base, where.stride, self.request_size)

    def _partition_items(self, step: Step) -> Arg:
        return Arg(_items(step, _sent(step), step["partitions"]))

    def _requests(self, step: Step) -> Arg:
        return Arg(address_of_array(self.requests) + step["requests"].first * self.request_size)

    def _number(self, step: Step) -> Arg:
        return Arg(step["requests"].count)

    def _status(self, step: Step) -> Arg:
        return Arg(address_of_array(self.statuses))

    def _flag(self, step: Step) -> Arg:
        return Arg(address_of_array(self.flag))


def function_of(step: Step, comm_of: CommOf) -> tuple[str, str]:
    """The C function of a step and its operands: ``MPI_Bcast_c`` where a number does not fit into a C int."""
    function, words = CALLS[step.op]
    return (f"{function}_c" if largest_count(step, comm_of) > INT_MAX else function), words


def largest_count(step: Step, comm_of: CommOf) -> int:
    """The largest number that a step passes as a count or displacement; 0 where it passes none."""
    largest = 0
    for word in CALLS[step.op][1].split():
        if word in _NUMBERS and not word.endswith("_aints"):  # an MPI_Aint is wide anyway
            numbers = _NUMBERS[word](step, comm_of(step))
            largest = max(largest, numbers if isinstance(numbers, int) else max(numbers, default=0))
    return largest


def _items(step: Step, nbytes: int, parts: int = 1) -> int:
    return nbytes // parts // itemsize(step["dtype"])


def _sent(step: Step) -> int:
    """Bytes of the send (or only) region."""
    names = ("send", "buf", "replaced", "recv")
    return int(next(step[name].nbytes for name in names if name in step.operands))


def _count_each(step: Step) -> int:
    """Elements for a neighbor. All ranks pass the same number both ways, also where they only send or only receive."""
    if step["targets"]:
        return _items(step, _sent(step), len(step["targets"]))
    return _items(step, step["recv"].nbytes, len(step["sources"]) or 1)


_NUMBERS: Final[dict[str, Callable[[Step, MPI.Comm], int | list[int]]]] = {
    "count": lambda step, comm: _items(step, _sent(step)),
    "block": lambda step, comm: _items(step, _sent(step), comm.Get_size()),
    "each": lambda step, comm: _count_each(step),
    "received": lambda step, comm: _items(step, step["recv"].nbytes),
    "counts": lambda step, comm: list(step["counts"]),
    "sent_counts": lambda step, comm: [_items(step, n) for n in step["send"].sizes],
    "sent_displs": lambda step, comm: [_items(step, n) for n in step["send"].offsets],
    "received_counts": lambda step, comm: [_items(step, n) for n in step["recv"].sizes],
    "received_displs": lambda step, comm: [_items(step, n) for n in step["recv"].offsets],
    **dict.fromkeys(("sent_bytes", "sent_aints"), lambda step, comm: list(step["send"].offsets)),
    **dict.fromkeys(("received_bytes", "received_aints"), lambda step, comm: list(step["recv"].offsets)),
}
"""Operand -> the counts or displacements to pass: one number, or one for each block."""

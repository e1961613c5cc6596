"""The mpi4py binding: each step as the call that a Python program would write, with bound methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import mpi4py
import numpy as np
from mpi4py import MPI

from omb_py.backends.mpi.calls import CALLS, CommOf, address_of, function_of
from omb_py.backends.mpi.rma import RMA_METHODS, OpenWindow, lock_type, targets
from omb_py.backends.mpi.types import OPS, datatype
from omb_py.engine.measuring.host_memory import ProgramMemory, load_torch
from omb_py.engine.native.matmul import Products
from omb_py.engine.program.datatype_layouts import derived, itemsize
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Blocks, Program, Region, Requests, RequestSlot, Step, request_count
from omb_py.engine.program.steps import COMMUNICATORS, MATMUL, base
from omb_py.engine.python_loop.loop import Names, Objects, flip_in, index_of
from omb_py.errors import EnvironmentProblem

_ON_A_REQUEST: Final = {"wait": "Wait", "test": "Test", "start": "Start", "free": "Free"}
_ON_A_PARTITION: Final = {"pready": "Pready", "parrived": "Parrived"}
_ON_REQUESTS: Final = {"waitall": MPI.Request.Waitall, "startall": MPI.Prequest.Startall}

_DIVIDED: Final = frozenset(
    {"gather", "scatter", "allgather", "alltoall", "reduce_scatter_block", "neighbor_allgather", "neighbor_alltoall"}
    | {"psend", "precv"}
)
"""Steps whose message mpi4py divides into blocks, one a rank or partition: the count is that of one block."""
_ARGUMENTS: Final[dict[str, str]] = {
    "send": "send peer tag",
    "recv": "recv peer tag",
    "recv_any": "recv any_source tag",
    "recv_next": "recv any_source tag arrival",
    "answer": "send latest tag",
    "sendrecv": "send target tag recv source tag",
    "sendrecv_replace": "replaced target tag source tag",
    "psend": "send partitions peer tag",
    "precv": "recv partitions peer tag",
    "barrier": "",
    "bcast": "buf root",
    "tell": "buf root",
    "reduce": "send recv op root",
    "allreduce": "send recv op",
    "scan": "send recv op",
    "exscan": "send recv op",
    "reduce_local": "send recv",
    "reduce_scatter": "send recv counts op",
    "reduce_scatter_block": "send recv op",
    "gather": "send recv root",
    "gatherv": "send recv root",
    "scatter": "send recv root",
    "scatterv": "send recv root",
}
"""Blocking form -> arguments; all others take `send recv`."""
UNKNOWN_TO_MPI4PY: Final = ("char", "float16", "bfloat16")
"""Types that a message has to name."""


_METHODS: Final = {"tell": "Bcast", "recv_any": "Recv", "recv_next": "Recv", "answer": "Send", "ianswer": "Isend"}


def method_of(op: str) -> str:
    """The communicator's method that does a step: ``Allreduce``, ``Iallreduce``, ``Allreduce_init``."""
    return _METHODS.get(op) or op.capitalize()


class Mpi4pyRenderer:
    """Renders the steps of one cell as Python statements."""

    def __init__(
        self, comm_of: CommOf, memory: ProgramMemory, program: Program, window: OpenWindow | None = None
    ) -> None:
        self.comm_of, self.memory, self.window = comm_of, memory, window
        self.nbytes = {buffer.name: buffer.nbytes for buffer in program.buffers}
        self._objects = Objects(self.nbytes, max(stage.copies for stage in program.stages))
        self.requests: list[MPI.Request] = [MPI.REQUEST_NULL] * request_count(program)
        self.arrival = MPI.Status()
        self.created: list[MPI.Comm] = [MPI.COMM_NULL]
        self._methods: dict[tuple[int, str], Callable[..., object]] = {}
        self._products = Products(memory)

    def __call__(self, step: Step, names: Names, k: str) -> str:
        """One statement for a step (:data:`omb_py.engine.python_loop.loop.Render`)."""
        if step.op == "flip":
            return flip_in(step, names, self.memory.view(step["recv"].buffer, self.nbytes[step["recv"].buffer]))
        if step.op in ("announce", "until"):
            start = self.memory.view(step["recv"].buffer, step["recv"].nbytes)
            integers, numbers = names.bind(start.view(np.int64), "w"), names.bind(start.view(np.float64), "f")
            if step.op == "announce":
                return f"{integers}[0] = clock() + {integers}[4]"
            moment = f"float({integers}[0])"
            return f"int({moment} - {numbers}[2] - {numbers}[1] * ({moment} - {numbers}[3]))"
        if step.op in _ON_A_REQUEST:
            return f"{self.slot(step['request'], names, k)}.{_ON_A_REQUEST[step.op]}()"
        if step.op in _ON_A_PARTITION:
            return f"{self.slot(step['request'], names, k)}.{_ON_A_PARTITION[step.op]}({step['partition']})"
        if step.op in _ON_REQUESTS:
            group: Requests = step["requests"]
            part = "" if group == Requests(0, len(self.requests)) else f"[{group.first}:{group.first + group.count}]"
            return f"{names.bind(_ON_REQUESTS[step.op], step.op)}({names.bind(self.requests, 'q')}{part})"
        if step.op in COMMUNICATORS:
            return self.communicator(step, names)
        if step.op == MATMUL:
            return self._products.text(step, names)
        if step.op in CALLS and (function := function_of(step, self.comm_of)[0]).endswith("_c"):
            address_of(function)  # mpi4py would call it: say in one line when it is not there
        if step.op in RMA_METHODS:
            call = self.one_sided(step, names, k)
        else:
            words = _ARGUMENTS.get(base(step.op), "send recv").split()
            arguments = ", ".join(self.argument(word, step, names, k) for word in words)
            call = f"{names.bind(self.method(step), step.op)}({arguments})"
        if "request" in step.operands:
            return f"{self.slot(step['request'], names, k)} = {call}"
        return call

    def one_sided(self, step: Step, names: Names, k: str) -> str:
        """A call on the window."""
        if self.window is None:
            raise ValueError("a one-sided step in a program without a window")
        method, words = RMA_METHODS[step.op]
        arguments = []
        for word in words.split():
            if word == "target":
                place: Region = step["window"]
                passes = (self.nbytes[place.buffer] - place.offset) // place.stride if place.stride else 1
                specification = targets(self.window, step, datatype(step["dtype"]), passes)
                arguments.append(names.bind(specification, "t") + (f"[{k}]" if k and place.stride else ""))
            elif word == "disp":
                arguments.append(str(self.window.bases[step["peer"]] + step["window"].offset))
            elif word == "group":
                arguments.append(names.bind(self.window.group(step["peer"]), "g"))
            elif word == "lock":
                arguments.append(str(lock_type(step)))
            elif isinstance(step[word], Region):  # with the type: origin and target must name the same
                arguments.append(self.buffer(step[word], step["dtype"], names, k, named=True))
            else:
                arguments.append(self.argument(word, step, names, k))
        key = (0, method)
        if key not in self._methods:
            self._methods[key] = getattr(self.window.win, method)
        return f"{names.bind(self._methods[key], step.op)}({', '.join(arguments)})"

    def method(self, step: Step) -> Callable[..., object]:
        """The bound method of the communicator. Raises EnvironmentProblem when mpi4py or the library lacks it."""
        if step.op == "reduce_local":
            reduce_local: Callable[..., object] = OPS[step["op"]].Reduce_local
            return reduce_local
        comm, name = self.comm_of(step), method_of(step.op)
        try:
            return self._methods.setdefault((id(comm), name), getattr(comm, name))
        except AttributeError:
            raise EnvironmentProblem(
                f"mpi4py {mpi4py.__version__} has no Comm.{name}: use --binding native or a newer mpi4py"
            ) from None

    def communicator(self, step: Step, names: Names) -> str:
        """Making a communicator, or freeing the one made last."""
        latest = f"{names.bind(self.created, 'c')}[0]"
        if step.op == "comm_free":
            return f"{latest}.Free()"
        comm = self.comm_of(step)
        method = names.bind(getattr(comm, step.op.removeprefix("comm_").capitalize()), step.op)
        if step.op == "comm_split":
            return f"{latest} = {method}({comm.Get_rank() % step['parts']}, {comm.Get_rank()})"
        return f"{latest} = {method}({names.bind(comm.Get_group(), 'g') if step.op == 'comm_create' else ''})"

    def slot(self, request: RequestSlot, names: Names, k: str) -> str:
        """The element of the request list."""
        return f"{names.bind(self.requests, 'q')}[{index_of(request, k)}]"

    def argument(self, word: str, step: Step, names: Names, k: str) -> str:
        """One argument as source."""
        if word == "any_source":
            return names.bind(MPI.ANY_SOURCE, "any_source")
        if word == "arrival":
            return names.bind(self.arrival, "arrival")
        if word == "latest":
            return f"{names.bind(self.arrival.Get_source, 'latest')}()"
        value = step[word]
        replaced = "recv" if base(step.op) in ("scatter", "scatterv") else "send"
        if word == replaced and "in_place" in step.operands:
            return names.bind(MPI.IN_PLACE, "here")
        if word == "recv" and "in_place" in step.operands and base(step.op).startswith("reduce_scatter"):
            value = step["send"]  # mpi4py wants to see the whole vector, which the result overwrites
        if isinstance(value, (Region, Blocks)):
            op = base(step.op)
            named = self.memory.kind == "array" and op in _DIVIDED
            return self.buffer(value, step["dtype"], names, k, op.endswith("w"), named)
        if word == "op":
            return names.bind(OPS[value], "op")
        if word == "counts":
            return names.bind(value, "n")
        return str(value)

    def buffer(
        self, region: Region | Blocks, dtype: str, names: Names, k: str, types: bool = False, named: bool = False
    ) -> str:
        """The source of the object that the program passes for a region.

        Vector collectives get [object, counts, displacements, type]; with `types` a type for each block. With `named` a
        message always names its type.
        """

        def copy_at(part: Region | Blocks) -> object:
            if isinstance(part, Blocks):
                return self.blocks(part, dtype, types)
            return self.message(part, dtype, named)

        return self._objects.text(region, (region, dtype, types or named), names, k, copy_at)

    def blocks(self, blocks: Blocks, dtype: str, types: bool) -> object:
        """The specification of a vector collective's buffer."""
        owner = self.memory.owner(blocks.buffer)
        content = memoryview(owner)[: self.nbytes[blocks.buffer]] if self.memory.kind != "torch" else owner
        return self.specified(content, blocks, dtype, types)

    @staticmethod
    def specified(content: object, blocks: Blocks, dtype: str, types: bool) -> list[object]:
        """The buffer of a vector collective with its counts, displacements and types."""
        item, kind = itemsize(dtype), datatype(dtype)
        counts = [n // item for n in blocks.sizes]
        if types:
            return [content, counts, list(blocks.offsets), [kind] * len(counts)]
        return [content, counts, [n // item for n in blocks.offsets], kind]

    def message(self, region: Region, dtype: str, named: bool = False) -> object:
        """The object that a program with such a buffer passes for a part of it.

        ``numpy``: the slice itself, as elements.  ``bytearray``: a slice of its memoryview and the MPI type.
        ``array``: the array object itself with count, displacement and type, since a slice of it would be a copy; where
        mpi4py takes a count for that of one block, a slice of its memoryview.
        ``torch``: the tensor's slice, which mpi4py takes through DLPack.  Types that mpi4py does not find out by
        itself (char, 16-bit floats) are named.
        """
        start, stop = region.offset, region.offset + region.nbytes
        if derived(dtype):
            view = self.memory.view(region.buffer, stop)[start:]
            return [view, datatype(dtype)]  # how many follows from the type's extent
        owner = self.memory.owner(region.buffer)
        kind = DTYPES[dtype]
        if self.memory.kind in ("numpy", "torch"):
            part = owner[start:stop]
            if self.memory.kind == "numpy":
                part = part.view(np.dtype(kind.numpy))
            elif kind.itemsize > 1:
                part = part.view(getattr(load_torch(), dtype))
            return [part, datatype(dtype)] if named or dtype in UNKNOWN_TO_MPI4PY else part
        if self.memory.kind == "array" and region.nbytes and not named and not start % kind.itemsize:
            return [owner, region.nbytes // kind.itemsize, start // kind.itemsize, datatype(dtype)]
        return [memoryview(owner)[start:stop], datatype(dtype)]

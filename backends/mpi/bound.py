"""How the mpi4py binding does each step: the call a Python program would write, with bound methods."""

from __future__ import annotations

from typing import Any, Final

import mpi4py
import numpy as np
from mpi4py import MPI

from omb_py.backends.mpi.calls import OPS, CommOf, datatype
from omb_py.backends.mpi.rma import RMA_METHODS, lock_type, targets
from omb_py.backends.mpi.windows import OpenWindow
from omb_py.engine.dtypes import DTYPES
from omb_py.engine.flat import Names
from omb_py.engine.layouts import derived, itemsize
from omb_py.engine.memory import HostMemory
from omb_py.engine.program import Blocks, Program, Region, Request, Requests, Step, request_count
from omb_py.engine.steps import COMMUNICATORS, base
from omb_py.errors import EnvironmentProblem

_ON_A_REQUEST: Final = {"wait": "Wait", "test": "Test", "start": "Start", "free": "Free"}
_ON_A_PARTITION: Final = {"pready": "Pready", "parrived": "Parrived"}
_ON_REQUESTS: Final = {"waitall": MPI.Request.Waitall, "startall": MPI.Prequest.Startall}

_ARGUMENTS: Final[dict[str, str]] = {
    "send": "send peer tag",
    "recv": "recv peer tag",
    "psend": "send partitions peer tag",
    "precv": "recv partitions peer tag",
    "barrier": "",
    "bcast": "buf root",
    "reduce": "send recv op root",
    "allreduce": "send recv op",
    "reduce_scatter": "send recv counts op",
    "reduce_scatter_block": "send recv op",
    "gather": "send recv root",
    "gatherv": "send recv root",
    "scatter": "send recv root",
    "scatterv": "send recv root",
}
"""Blocking form -> arguments; all others take `send recv`."""


def method_of(op: str) -> str:
    """The communicator's method that does a step: ``Allreduce``, ``Iallreduce``, ``Allreduce_init``."""
    return op.capitalize()


class Renderer:
    """Renders the steps of one cell as Python statements."""

    def __init__(self, comm_of: CommOf, memory: HostMemory, program: Program, window: OpenWindow | None = None) -> None:
        self.comm_of, self.memory, self.window = comm_of, memory, window
        self.nbytes = {buffer.name: buffer.nbytes for buffer in program.buffers}
        self.requests: list[Any] = [MPI.REQUEST_NULL] * request_count(program)
        self.made: list[Any] = [MPI.COMM_NULL]
        self._buffers: dict[tuple[Region | Blocks, str, bool], Any] = {}
        self._methods: dict[tuple[int, str], Any] = {}

    def __call__(self, step: Step, names: Names, k: str) -> str:
        """One statement for a step (:data:`omb_py.engine.flat.Render`)."""
        if step.op == "flip":
            byte = self.memory.view(step["recv"].buffer, step["recv"].offset + 1)[step["recv"].offset :]
            when = "True" if step["iteration"] < 0 else f"i == {step['iteration']}"
            return f"if {when}: {names.bind(byte)}[0] ^= 255"
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
                made = targets(self.window, step, datatype(step["dtype"]), passes)
                arguments.append(names.bind(made, "t") + (f"[{k}]" if k and place.stride else ""))
            elif word == "disp":
                arguments.append(str(self.window.bases[step["peer"]] + step["window"].offset))
            elif word == "group":
                arguments.append(names.bind(self.window.group(step["peer"]), "g"))
            elif word == "lock":
                arguments.append(str(lock_type(step)))
            elif isinstance(step[word], Region):  # with the type: origin and target must name the same
                buffer = self.buffer(step[word], step["dtype"], False, named=True)
                arguments.append(names.bind(buffer, "b") + (f"[{k}]" if k and step[word].stride else ""))
            else:
                arguments.append(self.argument(word, step, names, k))
        key = (0, method)
        if key not in self._methods:
            self._methods[key] = getattr(self.window.win, method)
        return f"{names.bind(self._methods[key], step.op)}({', '.join(arguments)})"

    def method(self, step: Step) -> Any:
        """The bound method of the communicator. Raises EnvironmentProblem when mpi4py or the library lacks it."""
        comm, name = self.comm_of(step), method_of(step.op)
        try:
            return self._methods.setdefault((id(comm), name), getattr(comm, name))
        except AttributeError:
            raise EnvironmentProblem(
                f"mpi4py {mpi4py.__version__} has no Comm.{name}: use --binding native or a newer mpi4py"
            ) from None

    def communicator(self, step: Step, names: Names) -> str:
        """Making a communicator, or freeing the one made last."""
        made = f"{names.bind(self.made, 'c')}[0]"
        if step.op == "comm_free":
            return f"{made}.Free()"
        comm = self.comm_of(step)
        method = names.bind(getattr(comm, step.op.removeprefix("comm_").capitalize()), step.op)
        if step.op == "comm_split":
            return f"{made} = {method}({comm.Get_rank() % step['parts']}, {comm.Get_rank()})"
        return f"{made} = {method}({names.bind(comm.Get_group(), 'g') if step.op == 'comm_create' else ''})"

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
        replaced = "recv" if base(step.op) in ("scatter", "scatterv") else "send"
        if word == replaced and "in_place" in step.operands:
            return names.bind(MPI.IN_PLACE, "here")
        if word == "recv" and "in_place" in step.operands and base(step.op).startswith("reduce_scatter"):
            value = step["send"]  # mpi4py wants to see the whole vector, which the result overwrites
        if isinstance(value, (Region, Blocks)):
            buffer = self.buffer(value, step["dtype"], base(step.op).endswith("w"))
            suffix = f"[{k}]" if k and isinstance(value, Region) and value.stride else ""
            return names.bind(buffer, "b") + suffix
        if word == "op":
            return names.bind(OPS[value], "op")
        if word == "counts":
            return names.bind(value, "n")
        return str(value)

    def buffer(self, region: Region | Blocks, dtype: str, types: bool, named: bool = False) -> Any:
        """What the program passes for a region; for a strided one a list, an object for each pass.

        Vector collectives get [object, counts, displacements, type]; with `types` a type for each block. With `named` a
        message always names its type.
        """
        key = (region, dtype, types or named)
        if key not in self._buffers:
            if isinstance(region, Blocks):
                self._buffers[key] = self.blocks(region, dtype, types)
            elif region.stride:
                passes = (self.nbytes[region.buffer] - region.offset) // region.stride
                self._buffers[key] = [self.message(region.at(k), dtype, named) for k in range(passes)]
            else:
                self._buffers[key] = self.message(region, dtype, named)
        return self._buffers[key]

    def blocks(self, blocks: Blocks, dtype: str, types: bool) -> Any:
        """The specification of a vector collective's buffer."""
        item, kind = itemsize(dtype), datatype(dtype)
        counts = [n // item for n in blocks.sizes]
        owner: Any = self.memory.owner(blocks.buffer)
        whole = memoryview(owner)[: self.nbytes[blocks.buffer]]
        if types:
            return [whole, counts, list(blocks.offsets), [kind] * len(counts)]
        return [whole, counts, [n // item for n in blocks.offsets], kind]

    def message(self, region: Region, dtype: str, named: bool = False) -> Any:
        """NumPy arrays go as they are; for bytes, and for MPI_CHAR that NumPy does not know, the type is named."""
        start, stop = region.offset, region.offset + region.nbytes
        if derived(dtype):
            view = self.memory.view(region.buffer, stop)[start:]
            return [view, datatype(dtype)]  # how many follows from the type's extent
        if self.memory.kind == "numpy":
            array = self.memory.view(region.buffer, stop)[start:].view(np.dtype(DTYPES[dtype].numpy))
            return [array, datatype(dtype)] if named or dtype == "char" else array
        owner: Any = self.memory.owner(region.buffer)
        return [memoryview(owner)[start:stop], datatype(dtype)]

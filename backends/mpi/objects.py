"""Buffer ``object``: mpi4py's lower-case methods, which pickle objects to send them and unpickle received ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from mpi4py import MPI
from mpi4py.util import pkl5
from numpy.typing import NDArray

from omb_py.backends.mpi.bound import Mpi4pyRenderer
from omb_py.backends.mpi.runners import BoundRunner
from omb_py.backends.mpi.types import OPS
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.language import Program, Region, Step
from omb_py.engine.program.pickled_objects import make, payload_of
from omb_py.engine.python_loop.loop import Names
from omb_py.engine.samples import LapTimes

if TYPE_CHECKING:
    from omb_py.backends.mpi.session import MpiSession
    from omb_py.engine.measuring.host_memory import HostMemory, ProgramMemory

_ARGUMENTS: Final[dict[str, str]] = {
    "send": "{out}, {peer}, {tag}",
    "recv": "None, {peer}, {tag}",
    "bcast": "{out}, {root}",
    "reduce": "{out}, {op}, {root}",
    "allreduce": "{out}, {op}",
    "gather": "{out}, {root}",
    "scatter": "{out}, {root}",
}
"""Step -> arguments; all others take the object alone."""
_LISTS_OUT: Final = ("alltoall", "scatter", "neighbor_alltoall")
_LISTS_IN: Final = ("alltoall", "allgather", "gather", "neighbor_allgather", "neighbor_alltoall")
_ROOT_SENDS: Final = ("bcast", "scatter")
_ROOT_RECEIVES: Final = ("gather", "reduce")


@dataclass(slots=True)
class Slot:
    """An object that a step sends or receives, and the bytes that it stands for."""

    region: Region
    parts: int
    """0: one object; else the length of a list of objects."""


@dataclass(slots=True)
class Slots:
    """The objects that the loop of a stage sends and receives; the generated source indexes `sent` and `received`."""

    out: list[Slot] = field(default_factory=list)
    into: list[Slot] = field(default_factory=list)
    sent: list[object] = field(default_factory=list)
    received: list[object] = field(default_factory=list)
    flips: list[Step] = field(default_factory=list)


class ObjectRenderer(Mpi4pyRenderer):
    """Renders the steps of one cell as calls that send and return objects."""

    def __init__(self, session: MpiSession, memory: ProgramMemory, program: Program, out_of_band: bool) -> None:
        super().__init__(session.comm_of, memory, program)
        self.session, self.slots = session, Slots()
        self._wrapped = pkl5.Intracomm(session.world) if out_of_band else None

    def __call__(self, step: Step, names: Names, k: str) -> str:
        if step.op == "flip":
            self.slots.flips.append(step)
            return "pass"
        comm = self._wrapped or self.comm_of(step)
        method = names.bind(getattr(comm, step.op), step.op)
        if step.op == "barrier":
            return f"{method}()"
        me, ranks = self.session.rank, self.session.size
        root = step.operands.get("root", me)
        out = "None"
        source = step.operands.get("send") or step.operands.get("buf")
        if isinstance(source, Region) and not (step.op in _ROOT_SENDS and root != me):
            targets = len(step.edges[1]) if step.edges else ranks
            out = f"{names.bind(self.slots.sent, 'sent')}[{len(self.slots.out)}]"
            self.slots.out.append(Slot(source, targets if step.op in _LISTS_OUT else 0))
            self.slots.sent.append(None)
        words = {**step.operands, "out": out, "op": names.bind(OPS[step["op"]], "op") if "op" in step.operands else ""}
        call = f"{method}({_ARGUMENTS.get(step.op, '{out}').format(**words)})"
        target = step.operands.get("recv") or step.operands.get("buf")
        if not isinstance(target, Region) or (step.op in _ROOT_RECEIVES and root != me):
            return call
        sources = len(step.edges[0]) if step.edges else ranks
        slot = f"{names.bind(self.slots.received, 'received')}[{len(self.slots.into)}]"
        self.slots.into.append(Slot(target, sources if step.op in _LISTS_IN else 0))
        self.slots.received.append(None)
        return f"{slot} = {call}"


class ObjectRunner(BoundRunner):
    """A flat Python loop; objects are made of the buffers' bytes before it, and turned back into bytes after it."""

    def __init__(self, session: MpiSession, program: Program, memory: HostMemory, cell: Cell) -> None:
        super().__init__(session, program, memory)
        self.cell = cell

    def begin(self) -> None:
        renderer = ObjectRenderer(self.session, self.memory_, self.program, self.cell.options.out_of_band)
        self.renderer, self.slots = renderer, renderer.slots

    def run(self, stage: int, first: int, iterations: int) -> dict[int, LapTimes | NDArray[np.int64]]:
        slots = self.slots
        for number, slot in enumerate(slots.out):
            objects = [make(self.cell.options.object_kind, part, self.cell.dtype) for part in self._parts(slot)]
            slots.sent[number] = objects if slot.parts else objects[0]
        slots.received[:] = [None] * len(slots.into)
        samples = super().run(stage, first, iterations)
        for number, slot in enumerate(slots.into):
            self._keep(slot, slots.received[number])
        for step in slots.flips:
            if step["iteration"] < 0 or first <= step["iteration"] < first + iterations:
                self._bytes(step["recv"])[:1] ^= 255
        return samples

    def notes(self) -> Mapping[str, float]:
        slots = self.slots
        every = [slot for slot in (*slots.out, *slots.into) if slot.region.nbytes]
        if not every:
            return super().notes()
        sample = make(self.cell.options.object_kind, self._parts(every[0])[0], self.cell.dtype)
        if not self.cell.options.out_of_band:
            return {**super().notes(), "pickled_bytes": float(len(MPI.pickle.dumps(sample)))}
        data, buffers = pkl5.pickle.dumps_oob(sample)
        beside = sum(buffer.nbytes for buffer in buffers)
        sizes = {"pickled_bytes": float(len(data) + beside), "out_of_band_bytes": float(beside)}
        return {**super().notes(), **sizes}

    def _bytes(self, region: Region) -> NDArray[np.uint8]:
        return self.memory(self.session.rank, region.buffer)[region.offset : region.offset + region.nbytes]

    def _parts(self, slot: Slot) -> list[NDArray[np.uint8]]:
        return np.split(self._bytes(slot.region), slot.parts) if slot.parts else [self._bytes(slot.region)]

    def _keep(self, slot: Slot, received: object) -> None:
        """Store the bytes of a received object; the spoiled bytes stay if its kind or size is wrong."""
        objects = received if slot.parts else [received]
        if not isinstance(objects, (list, tuple)) or len(objects) != max(1, slot.parts):
            return
        for part, item in zip(self._parts(slot), objects, strict=True):
            payload = payload_of(self.cell.options.object_kind, item)
            if payload is not None and payload.nbytes == part.nbytes:
                part[:] = payload

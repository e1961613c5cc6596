"""MPI on device buffers: handed to a library that takes them, else staged through the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mpi.aware import Support
from omb_py.backends.mpi.runners import NativeRunner
from omb_py.engine.benchmark import Cell, World
from omb_py.engine.devices import FUNCTIONS, Device
from omb_py.engine.devices.memory import DeviceMemory
from omb_py.engine.devices.staging import staged
from omb_py.engine.memory import HostMemory
from omb_py.engine.native import Arg, Call, Table, assemble
from omb_py.engine.program import Program, Region, Stage, Step
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from omb_py.backends.mpi.session import MpiSession


class DeviceBuffers:
    """What a session holds for buffers on a device.

    Args:
        device: where they live.
        support: what the library says of such buffers.
    """

    def __init__(self, device: Device, support: Support) -> None:
        self.device, self.support = device, support
        self.memory = DeviceMemory(device)
        self.stage = HostMemory("numpy")
        """Of staged communication what the library reads and writes."""

    def reserve(self, sizes: Mapping[str, int]) -> None:
        """Allocate buffers for a whole sweep."""
        for name, nbytes in sizes.items():
            self.memory.reserve(name, nbytes)
            if not self.support.aware:
                self.stage.reserve(name, nbytes)

    def check(self, cells: list[Cell]) -> None:
        """Raises EnvironmentProblem for what cannot be done on a device."""
        for cell in cells:
            if cell.staging == "never" and not self.support.aware:
                raise EnvironmentProblem(f"--staging never: {self.support.reason}: {self.support.fix}")
            if cell.binding != "native":
                raise EnvironmentProblem(f"--binding {cell.binding} has no device buffers here: --binding native")

    def close(self) -> None:
        """Free buffers and device."""
        self.memory.close()
        self.device.close()


class Resolver:
    """Steps of MPI through MPI's resolver, those of the device through the device.

    Args:
        buffers: where everything lies.
        mpi: MPI's resolver.
    """

    def __init__(self, buffers: DeviceBuffers, mpi: Any) -> None:
        self.buffers, self.mpi = buffers, mpi

    def __call__(self, step: Step) -> Call:
        """The C call of a step."""
        if step.op not in FUNCTIONS:
            made: Call = self.mpi(step)
            return made
        device = self.buffers.device
        return Call(device.function(step.op), tuple(self._operand(w, step) for w in FUNCTIONS[step.op].split()))

    def _operand(self, word: str, step: Step) -> Arg:
        if word == "stream":
            return Arg(self.buffers.device.stream)
        region: Region = step["region"]
        if word == "nbytes":
            return Arg(region.nbytes)
        memory: Any = self.buffers.stage if word == "host" else self.buffers.memory
        return Arg(memory.address(region.buffer) + region.offset, region.stride, turn=region.turn)


class DeviceRunner(NativeRunner):
    """Generated code that calls MPI on device buffers, or copies around each call."""

    def __init__(self, session: MpiSession, program: Program, buffers: DeviceBuffers) -> None:
        self.buffers = buffers
        way = "direct" if buffers.support.aware else "staged"
        self.marks = {"staging": way}
        made = program if buffers.support.aware else staged(program, World(session.rank, session.size, session.hosts))
        memory: Any = buffers.memory if buffers.support.aware else buffers.stage
        super().__init__(session, made, memory)

    def assemble(self, stage: Stage, results: Mapping[tuple[str, str], float], gate: Any = None) -> Table:
        """The rows of a stage's body."""
        return assemble(stage, Resolver(self.buffers, self.resolver), self.resolver.byte, results)

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        """The bytes of a buffer on the host, until the next run."""
        return self.buffers.memory.view(buffer, self._nbytes[buffer])

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        """Run iterations; see :class:`omb_py.engine.session.Runner`."""
        self.buffers.memory.hand_over()
        return super().run(stage, first, iterations)

"""MPI on device buffers: handed to a library that takes them, else staged through the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omb_py.backends.mpi.aware import Support
from omb_py.backends.mpi.runners import NativeRunner
from omb_py.engine.benchmark import Cell, World
from omb_py.engine.devices.buffers import DeviceBuffers, OnDevice, Resolver
from omb_py.engine.native import Table, assemble
from omb_py.engine.program import Program, Stage
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from omb_py.backends.mpi.session import MpiSession


def check(cells: list[Cell], support: Support) -> None:
    """Raises EnvironmentProblem for what cannot be done on a device."""
    for cell in cells:
        if cell.staging == "never" and not support.aware:
            raise EnvironmentProblem(f"--staging never: {support.reason}: {support.fix}")
        if cell.binding != "native":
            raise EnvironmentProblem(f"--binding {cell.binding} has no device buffers here: --binding native")


class DeviceRunner(OnDevice, NativeRunner):
    """Generated code that calls MPI on device buffers, or copies around each call."""

    def __init__(self, session: MpiSession, program: Program, buffers: DeviceBuffers, cell: Cell) -> None:
        self.buffers = buffers
        self.marks = buffers.marks("direct" if session.support.aware else "staged", cell)
        made = buffers.prepared(program, World(session.rank, session.size, session.hosts), cell.filler)
        super().__init__(session, made, buffers.seen)

    def assemble(self, stage: Stage, results: Mapping[tuple[str, str], float], gate: Any = None) -> Table:
        """The rows of a stage's body."""
        return assemble(stage, Resolver(self.buffers, self.resolver, results), self.resolver.byte, results)

"""MPI on device buffers: handed to a library that takes them, else staged through the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omb_py.backends.mpi import bound
from omb_py.backends.mpi.aware import Support
from omb_py.backends.mpi.runners import BoundRunner, MpiNativeRunner
from omb_py.backends.mpi.types import datatype
from omb_py.engine.devices import FUNCTIONS
from omb_py.engine.devices.buffers import DeviceBuffers, DeviceRenderer, DeviceResolver, OnDevice
from omb_py.engine.devices.memory import DeviceMemory, slice_array
from omb_py.engine.native.translate import StageTable, assemble
from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.datatype_layouts import derived
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Blocks, Program, Region, Stage
from omb_py.engine.python_loop.loop import Render
from omb_py.engine.python_loop.runners import Results
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from omb_py.backends.mpi.session import MpiSession


def check(cells: Sequence[Cell], support: Support) -> None:
    """Raises EnvironmentProblem for what cannot be done on a device."""
    for cell in cells:
        if cell.options.staging == "never" and not support.aware:
            raise EnvironmentProblem(f"--staging never: {support.reason}: {support.fix}")


class _OverMpi(OnDevice):
    """MPI called on device buffers, or with copies around each call; before either binding's runner."""

    def __init__(self, session: MpiSession, program: Program, buffers: DeviceBuffers, cell: Cell) -> None:
        self.buffers = buffers
        self._marks = buffers.marks("direct" if session.support.aware else "staged", cell)
        prepared = buffers.prepared(
            program, World(session.rank, session.size, session.hosts), cell.options.get("filler", "cpu")
        )
        super().__init__(session, prepared, buffers.seen)


class ArrayRenderer(bound.Mpi4pyRenderer):
    """Renders the steps of one cell, whose buffers are arrays of CuPy, PyTorch or Numba, or show themselves as such."""

    def blocks(self, blocks: Blocks, dtype: str, types: bool) -> object:
        content = slice_array(self.memory.owner(blocks.buffer), 0, self.nbytes[blocks.buffer], "uint8")
        return self.specified(content, blocks, dtype, types)

    def message(self, region: Region, dtype: str, named: bool = False) -> object:
        if derived(dtype):
            raise EnvironmentProblem("binding mpi4py has no derived datatypes on a device: --binding native")
        start, stop = region.offset, region.offset + region.nbytes
        named = named or dtype in bound.UNKNOWN_TO_MPI4PY
        cut = slice_array(self.memory.owner(region.buffer), start, stop, "uint8" if named else DTYPES[dtype].numpy)
        return [cut, datatype(dtype)] if named else cut


class DeviceRunner(_OverMpi, MpiNativeRunner):
    """Generated code: the library is given addresses."""

    def assembled(self, stage: Stage, results: Results, word: int) -> StageTable:
        return assemble(stage, DeviceResolver(self.buffers, self.resolver, results), self.buffers.byte, results)

    def error_text(self, code: int, label: str) -> str:
        """A step of the device returns a code of the device's library, which MPI does not know."""
        function, device = label.partition(" ")[0], self.buffers.device
        if function not in FUNCTIONS:
            return super().error_text(code, label)
        return f"{device.name}: {function} failed: {device.error_text(code, function)}"


class BoundDeviceRunner(_OverMpi, BoundRunner):
    """A flat loop of mpi4py calls: it is given the device's arrays, or staged the host's."""

    def begin(self) -> None:
        super().begin()
        if isinstance(self.memory_, DeviceMemory):
            self.renderer = ArrayRenderer(self.session.comm_of, self.memory_, self.program)

    def rendered(self, results: Results) -> Render:
        return DeviceRenderer(self.buffers, self.renderer, results)

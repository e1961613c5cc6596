"""What mpi4py is given for buffers on a device: arrays that it reads by DLPack or ``__cuda_array_interface__``."""

from __future__ import annotations

from typing import Any

from omb_py.backends.mpi.bound import UNKNOWN_TO_MPI4PY, Renderer
from omb_py.backends.mpi.calls import CommOf
from omb_py.backends.mpi.types import datatype
from omb_py.engine.devices.arrays import part
from omb_py.engine.devices.memory import DeviceMemory
from omb_py.engine.program.datatype_layouts import derived
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Blocks, Program, Region
from omb_py.errors import EnvironmentProblem


class ArrayRenderer(Renderer):
    """Renders the steps of one cell, whose buffers are arrays of CuPy, PyTorch or Numba, or show themselves as such."""

    def __init__(self, comm_of: CommOf, memory: DeviceMemory, program: Program) -> None:
        super().__init__(comm_of, memory, program)

    def blocks(self, blocks: Blocks, dtype: str, types: bool) -> Any:
        """The specification of a vector collective's buffer."""
        whole = part(self.memory.owner(blocks.buffer), 0, self.nbytes[blocks.buffer], "uint8")
        return self.specified(whole, blocks, dtype, types)

    def message(self, region: Region, dtype: str, named: bool = False) -> Any:
        """What a program that holds such an array passes for a part of it."""
        if derived(dtype):
            raise EnvironmentProblem("binding mpi4py has no derived datatypes on a device: --binding native")
        start, stop = region.offset, region.offset + region.nbytes
        named = named or dtype in UNKNOWN_TO_MPI4PY
        cut = part(self.memory.owner(region.buffer), start, stop, "uint8" if named else DTYPES[dtype].numpy)
        return [cut, datatype(dtype)] if named else cut

"""Windows of real MPI processes: made in each of the four ways, and what calls on them need."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from omb_py.backends.mpi.start import vendor
from omb_py.engine.measuring.host_memory import HostMemory
from omb_py.engine.program.language import Window
from omb_py.engine.program.rma import OF_THE_LIBRARY, WINDOWS
from omb_py.errors import EnvironmentProblem


class OpenWindow:
    """A window over all ranks of a communicator. Collective, as :meth:`close` is.

    Args:
        window: kind and buffer.
        nbytes: size of the buffer, the same on every rank.
        memory: the rank's other buffers, and this one where it is ours.
        comm: the ranks.

    Raises:
        EnvironmentProblem: the library cannot make such a window.
    """

    def __init__(self, window: Window, nbytes: int, memory: HostMemory, comm: MPI.Intracomm) -> None:
        self.comm, self.kind = comm, window.kind
        comm.Barrier()
        began = time.perf_counter_ns()
        try:
            self.win, self._attached = _make(window, nbytes, memory, comm)
        except (MPI.Exception, NotImplementedError) as error:
            name, version = vendor(MPI)
            raise EnvironmentProblem(
                f"-w {window.kind}: {WINDOWS[window.kind]} failed in {name} {version}: {error}: use another window kind"
            ) from error
        self.create_us = (time.perf_counter_ns() - began) / 1000
        """Time in µs of making it and attaching its memory."""
        self.memory = memory
        if window.kind in OF_THE_LIBRARY:
            memory_of_library: Any = self.win.tomemory()
            lent = np.frombuffer(memory_of_library, np.uint8)[:nbytes]
            lent[:] = 0
            self.memory = memory.lend(window.buffer, lent)
        base = MPI.Get_address(self._attached) if self._attached is not None else 0
        bases = np.empty(comm.Get_size(), np.int64)
        comm.Allgather(np.array([base], np.int64), bases)
        self.bases: list[int] = bases.tolist()
        """Displacement of the buffer's first byte in each rank's window: its address, where it was attached."""
        self._groups: dict[int, MPI.Group] = {}

    def group(self, rank: int) -> MPI.Group:
        """The group of one rank, of post and start."""
        if rank not in self._groups:
            everyone = self.comm.Get_group()
            self._groups[rank] = everyone.Incl([rank])
            everyone.Free()
        return self._groups[rank]

    def close(self) -> None:
        for group in self._groups.values():
            group.Free()
        self._groups.clear()
        if self._attached is not None:
            self.comm.Barrier()  # nobody still reads or writes it
            self.win.Detach(self._attached)
        self.win.Free()


def _make(
    window: Window, nbytes: int, memory: HostMemory, comm: MPI.Intracomm
) -> tuple[MPI.Win, NDArray[np.uint8] | None]:
    match window.kind:
        case "allocate":
            return MPI.Win.Allocate(nbytes, 1, comm=comm), None
        case "shared":
            return MPI.Win.Allocate_shared(nbytes, 1, comm=comm), None
        case "dynamic":
            win, attached = MPI.Win.Create_dynamic(comm=comm), memory.view(window.buffer, nbytes)
            win.Attach(attached)
            return win, attached
    return MPI.Win.Create(memory.view(window.buffer, nbytes), 1, comm=comm), None


def handle(mpi_object: Any) -> int:
    """An MPI handle as the int64 that carries it: a pointer (Open MPI) or a C int (MPICH, Intel MPI)."""
    value = int(MPI._handleof(mpi_object))
    return value - (1 << 64) if value >= 1 << 63 else value

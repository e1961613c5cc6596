"""Windows of real MPI processes, and one-sided steps for both bindings."""

from __future__ import annotations

import time
from array import array
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mpi4py import MPI

from omb_py.backends.mpi.start import vendor
from omb_py.engine.measuring.host_memory import HostMemory
from omb_py.engine.native.translate import Arg
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Region, Step, Window
from omb_py.engine.program.rma import OF_THE_LIBRARY, WINDOWS
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Handle: TypeAlias = MPI.Comm | MPI.Datatype | MPI.Group | MPI.Info | MPI.Op | MPI.Request | MPI.Win


class OpenWindow:
    """A window over all ranks of a communicator. Collective, as :meth:`close` is.

    Args:
        nbytes: size of the buffer, the same on every rank.
        memory: the rank's other buffers, and this one where it is ours.

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
            import numpy as np

            memory_of_library: Any = self.win.tomemory()
            lent = np.frombuffer(memory_of_library, np.uint8)[:nbytes]
            lent[:] = 0
            self.memory = memory.lend(window.buffer, lent)
        base = MPI.Get_address(self._attached) if self._attached is not None else 0
        bases = array("q", bytes(8 * comm.Get_size()))
        comm.Allgather(array("q", [base]), bases)
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


def handle(mpi_object: Handle) -> int:
    """An MPI handle as the int64 that carries it: a pointer (Open MPI) or a C int (MPICH, Intel MPI)."""
    value = int(MPI._handleof(mpi_object))
    return value - (1 << 64) if value >= 1 << 63 else value


_TO: Final = "peer disp count dtype"
RMA_CALLS: Final[dict[str, tuple[str, str]]] = {
    "put": ("MPI_Put", f"send count dtype {_TO} win"),
    "get": ("MPI_Get", f"recv count dtype {_TO} win"),
    "rput": ("MPI_Rput", f"send count dtype {_TO} win request"),
    "rget": ("MPI_Rget", f"recv count dtype {_TO} win request"),
    "accumulate": ("MPI_Accumulate", f"send count dtype {_TO} op win"),
    "get_accumulate": ("MPI_Get_accumulate", f"send count dtype recv count dtype {_TO} op win"),
    "fetch_and_op": ("MPI_Fetch_and_op", "send recv dtype peer disp op win"),
    "compare_and_swap": ("MPI_Compare_and_swap", "send compare recv dtype peer disp win"),
    "win_lock": ("MPI_Win_lock", "lock peer assertion win"),
    "win_unlock": ("MPI_Win_unlock", "peer win"),
    "win_lock_all": ("MPI_Win_lock_all", "assertion win"),
    "win_unlock_all": ("MPI_Win_unlock_all", "win"),
    "win_flush": ("MPI_Win_flush", "peer win"),
    "win_flush_local": ("MPI_Win_flush_local", "peer win"),
    "win_flush_all": ("MPI_Win_flush_all", "win"),
    "win_flush_local_all": ("MPI_Win_flush_local_all", "win"),
    "win_fence": ("MPI_Win_fence", "assertion win"),
    "win_post": ("MPI_Win_post", "group assertion win"),
    "win_start": ("MPI_Win_start", "group assertion win"),
    "win_complete": ("MPI_Win_complete", "win"),
    "win_wait": ("MPI_Win_wait", "win"),
}
"""step -> (function, operands), as in :data:`omb_py.backends.mpi.calls.CALLS`."""

RMA_METHODS: Final[dict[str, tuple[str, str]]] = {
    "put": ("Put", "send peer target"),
    "get": ("Get", "recv peer target"),
    "rput": ("Rput", "send peer target"),
    "rget": ("Rget", "recv peer target"),
    "accumulate": ("Accumulate", "send peer target op"),
    "get_accumulate": ("Get_accumulate", "send recv peer target op"),
    "fetch_and_op": ("Fetch_and_op", "send recv peer disp op"),
    "compare_and_swap": ("Compare_and_swap", "send compare recv peer disp"),
    "win_lock": ("Lock", "peer lock"),
    "win_unlock": ("Unlock", "peer"),
    "win_lock_all": ("Lock_all", ""),
    "win_unlock_all": ("Unlock_all", ""),
    "win_flush": ("Flush", "peer"),
    "win_flush_local": ("Flush_local", "peer"),
    "win_flush_all": ("Flush_all", ""),
    "win_flush_local_all": ("Flush_local_all", ""),
    "win_fence": ("Fence", ""),
    "win_post": ("Post", "group"),
    "win_start": ("Start", "group"),
    "win_complete": ("Complete", ""),
    "win_wait": ("Wait", ""),
}
"""step -> (method of mpi4py's Win, arguments)."""


def lock_type(step: Step) -> int:
    """MPI's number of the kind of lock."""
    return MPI.LOCK_EXCLUSIVE if "exclusive" in step.operands else MPI.LOCK_SHARED


class WindowOperands:
    """The operands of C calls on a window."""

    window: OpenWindow | None = None

    @property
    def opened(self) -> OpenWindow:
        """The window. Raises ValueError in a program without one."""
        if self.window is None:
            raise ValueError("a one-sided step in a program without a window")
        return self.window

    def _disp(self, step: Step) -> Arg:
        place: Region = step["window"]
        return Arg(self.opened.bases[step["peer"]] + place.offset, place.stride)

    def _win(self, step: Step) -> Arg:
        return Arg(handle(self.opened.win))

    def _group(self, step: Step) -> Arg:
        return Arg(handle(self.opened.group(step["peer"])))

    def _lock(self, step: Step) -> Arg:
        return Arg(lock_type(step))

    def _assertion(self, step: Step) -> Arg:
        return Arg(0)


def targets(window: OpenWindow, step: Step, datatype: MPI.Datatype, passes: int) -> object:
    """mpi4py's target specification [displacement, count, type]; of a strided place a list, one for each pass."""
    place: Region = step["window"]
    count, base = place.nbytes // DTYPES[step["dtype"]].itemsize, window.bases[step["peer"]]
    specifications = [[base + place.at(k).offset, count, datatype] for k in range(passes if place.stride else 1)]
    return specifications if place.stride else specifications[0]

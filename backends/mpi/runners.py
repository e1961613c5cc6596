"""A cell of the mpi backend, ready to run: through generated code, or through a flat loop of mpi4py calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omb_py.backends.mpi.start import missing_in, standard_abi
from omb_py.engine.program.language import Program, edges_of, request_count
from omb_py.engine.program.rma import check_hosts
from omb_py.engine.python_loop.runners import CellRunner, FlatRunner, NativeRunner
from omb_py.engine.session import StepFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omb_py.backends.mpi.rma import OpenWindow
    from omb_py.backends.mpi.session import MpiSession
    from omb_py.engine.measuring.host_memory import HostMemory
    from omb_py.engine.python_loop.loop import CompiledLoop


class MpiRunner(CellRunner):
    """Common part of both bindings: the program's window, and the times of making graph and window."""

    session: MpiSession

    def __init__(self, session: MpiSession, program: Program, memory: HostMemory) -> None:
        self.window = self._open(session, program, memory)
        if abi := standard_abi(session.mpi):
            self._marks = {**self._marks, "mpi_abi": abi}
        super().__init__(session, program, self.window.memory if self.window else memory)

    @staticmethod
    def _open(session: MpiSession, program: Program, memory: HostMemory) -> OpenWindow | None:
        window = program.window
        if window is None:
            return None
        from omb_py.backends.mpi.rma import OpenWindow

        check_hosts(window, session.hosts)
        nbytes = next(b.nbytes for b in program.buffers if b.name == window.buffer)
        return OpenWindow(window, nbytes, memory, session.world)

    def notes(self) -> Mapping[str, float]:
        edges = edges_of(self.program)
        graph = {"topology_us": self.session.topology_us(edges)} if edges is not None else {}
        return graph | ({"win_create_us": self.window.create_us} if self.window else {})

    def close(self) -> None:
        """Free the window; buffers stay for the next size."""
        if self.window:
            self.window.close()


class MpiNativeRunner(MpiRunner, NativeRunner):
    """Generated code calls the MPI library's own functions."""

    def begin(self) -> None:
        from omb_py.backends.mpi.calls import MpiResolver

        self.resolver = MpiResolver(self.session.comm_of, self.memory_, request_count(self.program), self.window)

    def error_text(self, code: int, label: str) -> str:
        """The meaning of what a step returned, which `label` describes."""
        return str(self.session.mpi.Get_error_string(code))


class BoundRunner(MpiRunner, FlatRunner):
    """A flat Python loop of mpi4py calls."""

    def begin(self) -> None:
        from omb_py.backends.mpi.bound import Mpi4pyRenderer

        self.renderer = Mpi4pyRenderer(self.session.comm_of, self.memory_, self.program, self.window)

    def execute(self, loop: CompiledLoop, first: int, iterations: int) -> NDArray[np.int64]:
        try:
            return loop.run(first, iterations)
        except NotImplementedError as error:
            raise missing_in(self.session.mpi, str(error)) from error
        except self.session.mpi.Exception as error:
            raise StepFailed(loop.failed_step(error), error.Get_error_code(), error.Get_error_string()) from error

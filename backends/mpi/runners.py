"""A cell of the mpi backend, ready to run: through generated code, or through a flat loop of mpi4py calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omb_py.backends.mpi.start import missing_in, standard_abi
from omb_py.engine.native.threads import Crew, ThreadGate, stages_of
from omb_py.engine.program.language import Program, Stage, edges_of, request_count
from omb_py.engine.program.rma import check_hosts
from omb_py.engine.python_loop.runners import CellRunner, FlatRunner
from omb_py.engine.samples import LapTimes, address_of_array
from omb_py.engine.session import StepFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omb_py.backends.mpi.rma import OpenWindow
    from omb_py.backends.mpi.session import MpiSession
    from omb_py.engine.measuring.host_memory import HostMemory
    from omb_py.engine.native.translate import Machine, StageTable
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


class NativeRunner(MpiRunner):
    """Generated code calls the MPI library's own functions."""

    def begin(self) -> None:
        from omb_py.backends.mpi.calls import MpiResolver

        self.resolver = MpiResolver(self.session.comm_of, self.memory_, request_count(self.program), self.window)

    def assemble(
        self, stage: Stage, results: Mapping[tuple[str, str], float], gate: ThreadGate | None = None
    ) -> StageTable:
        """The rows of a stage's body."""
        from omb_py.engine.native.translate import assemble

        word = address_of_array(gate.word) if gate else 0
        return assemble(stage, self.resolver, self.resolver.byte, results, word)

    def once(self, stage: Stage) -> None:
        self._execute(self.assemble(stage, {}), 0, 1)

    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        self.crew, self.laps = None, len(stage.laps)
        if stage.threads > 1:
            gate = ThreadGate()
            parts = [self.assemble(part, results, gate) for part in stages_of(stage)]
            self.crew = Crew([NativeWork(self, table, gate) for table in parts], gate)
            self.labels = self.crew.labels
            return
        self.table = self.assemble(stage, results)
        self.labels = self.table.labels
        self.session.machine.prepare(self.table)

    def _execute(self, table: StageTable, first: int, iterations: int) -> LapTimes:
        return self.execute(self.session.machine, table, first, iterations)

    def execute(self, machine: Machine, table: StageTable, first: int, iterations: int) -> LapTimes:
        samples, failed = machine.run(table, first, iterations)
        if failed:
            code = int(machine.word[3])
            raise StepFailed(failed - 1, code, self.error_text(code, table.labels[failed - 1]))
        return samples

    def error_text(self, code: int, label: str) -> str:
        """The meaning of what a step returned, which `label` describes."""
        return str(self.session.mpi.Get_error_string(code))

    def run(self, stage: int, first: int, iterations: int) -> dict[int, LapTimes | NDArray[np.int64]]:
        """Run iterations; see :class:`omb_py.engine.session.Runner`."""
        self.ready()
        if self.crew:
            return {self.session.rank: self.crew.run(first, iterations, self.laps)}
        return {self.session.rank: self._execute(self.table, first, iterations)}

    def position(self) -> tuple[int, int]:
        if self.crew:
            return self.crew.position()
        word = self.session.machine.word
        return int(word[1]), int(word[2])


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


class NativeWork:
    """A thread's part of a stage as generated code, with a watched word of its own."""

    def __init__(self, runner: NativeRunner, table: StageTable, gate: ThreadGate) -> None:
        from omb_py.engine.native.translate import Machine

        self._runner, self._table, self._gate = runner, table, gate
        self.labels = table.labels
        self._machine = Machine(runner.session.machine.wtime)
        self._machine.prepare(table)

    def run(self, first: int, iterations: int) -> LapTimes:
        """Run in the calling thread; the code waits at the gate."""
        self._gate.arrive()
        return self._runner.execute(self._machine, self._table, first, iterations)

    def position(self) -> tuple[int, int]:
        return int(self._machine.word[1]), int(self._machine.word[2])

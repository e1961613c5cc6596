"""A cell of the mpi backend, ready to run: through generated code, or through a flat loop of mpi4py calls."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mpi.start import missing_in
from omb_py.engine.memory import HostMemory
from omb_py.engine.program import Body, Host, Program, Stage, edges_of, request_count
from omb_py.engine.rma import check_hosts
from omb_py.engine.session import StepFailed
from omb_py.engine.threads import Crew, Gate, stages_of

if TYPE_CHECKING:
    from omb_py.backends.mpi.session import MpiSession
    from omb_py.backends.mpi.windows import OpenWindow
    from omb_py.engine.flat import Loop
    from omb_py.engine.native import Table


class _Runner(ABC):
    """What both bindings share."""

    def __init__(self, session: MpiSession, program: Program, memory: HostMemory) -> None:
        self.session, self.program = session, program
        self._nbytes = {b.name: b.nbytes for b in program.buffers}
        self.window = self._open(memory)
        self.memory_ = self.window.memory if self.window else memory
        self.labels: tuple[str, ...] = ()
        self.crew: Crew | None = None
        self.laps = 0

    def _open(self, memory: HostMemory) -> OpenWindow | None:
        """The program's window, made by all ranks together."""
        what = self.program.window
        if what is None:
            return None
        from omb_py.backends.mpi.windows import OpenWindow

        check_hosts(what, self.session.hosts)
        return OpenWindow(what, self._nbytes[what.buffer], memory, self.session.world)

    @abstractmethod
    def begin(self) -> None:
        """New request slots for a stage."""

    @abstractmethod
    def once(self, stage: Stage) -> None:
        """Run some steps once."""

    @abstractmethod
    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        """Make what runs the body."""

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        """The bytes of a buffer."""
        return self.memory_.view(buffer, self._nbytes[buffer])

    def enter(self, stage: int, results: Mapping[tuple[str, str], float]) -> None:
        """Run the setup, then translate the body."""
        self.begin()
        self._once(self.program.stages[stage].setup)
        self.translate(self.program.stages[stage], results)

    def leave(self, stage: int) -> None:
        """Run the stage's teardown."""
        self._once(self.program.stages[stage].teardown)

    def _once(self, nodes: Body) -> None:
        """Run setup or teardown: Python calls, and what stands between them through the binding."""
        for is_host, part in groupby(nodes, lambda node: isinstance(node, Host)):
            if is_host:
                for node in part:
                    assert isinstance(node, Host)
                    node.call(self.session)
            else:
                self.once(Stage((tuple(part),)))

    def later(self) -> None:
        """Announce the start of a round twice as far ahead: too many came late."""
        self.session.start.view(np.int64)[4] *= 2

    def notes(self) -> Mapping[str, float]:
        """How long making the graph or the window took, where there is one."""
        edges = edges_of(self.program)
        graph = {"topology_us": self.session.topology_us[edges]} if edges is not None else {}
        return graph | ({"win_create_us": self.window.create_us} if self.window else {})

    def close(self) -> None:
        """Free the window; buffers stay for the next size."""
        if self.window:
            self.window.close()


class NativeRunner(_Runner):
    """Generated code calls the MPI library's own functions."""

    def begin(self) -> None:
        """New request slots for a stage."""
        from omb_py.backends.mpi.calls import Resolver

        self.resolver = Resolver(self.session.comm_of, self.memory_, request_count(self.program), self.window)

    def assemble(self, stage: Stage, results: Mapping[tuple[str, str], float], gate: Gate | None = None) -> Table:
        """The rows of a stage's body."""
        from omb_py.engine.native import assemble

        word = int(gate.word.ctypes.data) if gate else 0
        return assemble(stage, self.resolver, self.resolver.byte, results, word)

    def once(self, stage: Stage) -> None:
        """Run some steps once."""
        self._execute(self.assemble(stage, {}), 0, 1)

    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        """Make the code of the body."""
        self.crew, self.laps = None, len(stage.laps)
        if stage.threads > 1:
            gate = Gate()
            parts = [self.assemble(part, results, gate) for part in stages_of(stage)]
            self.crew = Crew([NativeWork(self, table, gate) for table in parts], gate)
            self.labels = self.crew.labels
            return
        self.table = self.assemble(stage, results)
        self.labels = self.table.labels
        self.session.machine.prepare(self.table)

    def _execute(self, table: Table, first: int, iterations: int) -> NDArray[np.int64]:
        return self.execute(self.session.machine, table, first, iterations)

    def execute(self, machine: Any, table: Table, first: int, iterations: int) -> NDArray[np.int64]:
        """Run a table on a machine. Raises StepFailed."""
        samples: NDArray[np.int64]
        samples, failed = machine.run(table, first, iterations)
        if failed:
            code = int(machine.word[3])
            raise StepFailed(failed - 1, code, self.session.mpi.Get_error_string(code))
        return samples

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        """Run iterations; see :class:`omb_py.engine.session.Runner`."""
        if self.crew:
            return {self.session.rank: self.crew.run(first, iterations, self.laps)}
        return {self.session.rank: self._execute(self.table, first, iterations)}

    def position(self) -> tuple[int, int]:
        """(iteration, step), from the word that the code writes."""
        if self.crew:
            return self.crew.position()
        word = self.session.machine.word
        return int(word[1]), int(word[2])


class BoundRunner(_Runner):
    """A flat Python loop of mpi4py calls."""

    def begin(self) -> None:
        """New request slots for a stage."""
        from omb_py.backends.mpi.bound import Renderer

        self.renderer = Renderer(self.session.comm_of, self.memory_, self.program, self.window)

    def once(self, stage: Stage) -> None:
        """Run some steps once."""
        from omb_py.engine.flat import compile_stage

        self.execute(compile_stage(stage, self.renderer, {}), 0, 1)

    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        """Make the loop of the body."""
        from omb_py.engine.flat import compile_stage

        self.crew, self.laps = None, len(stage.laps)
        if stage.threads > 1:
            gate = Gate()
            loops = [compile_stage(part, self.renderer, results) for part in stages_of(stage)]
            self.crew = Crew([BoundWork(self, loop, gate) for loop in loops], gate)
            self.labels = self.crew.labels
            return
        self.loop = compile_stage(stage, self.renderer, results)
        self.labels = self.loop.labels
        self.thread = threading.get_ident()

    def execute(self, loop: Loop, first: int, iterations: int) -> NDArray[np.int64]:
        """Run a loop in this thread. Raises StepFailed."""
        try:
            return loop.run(first, iterations)
        except NotImplementedError as error:
            raise missing_in(self.session.mpi, str(error)) from error
        except self.session.mpi.Exception as error:
            raise StepFailed(loop.failed_step(error), error.Get_error_code(), error.Get_error_string()) from error

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        """Run iterations; see :class:`omb_py.engine.session.Runner`."""
        if self.crew:
            return {self.session.rank: self.crew.run(first, iterations, self.laps)}
        return {self.session.rank: self.execute(self.loop, first, iterations)}

    def position(self) -> tuple[int, int]:
        """(iteration, step), read from the running frame."""
        if self.crew:
            return self.crew.position()
        if not self.labels:
            return 0, 0
        return self.loop.position(self.thread)


class NativeWork:
    """A thread's part of a stage as generated code, with a watched word of its own."""

    def __init__(self, runner: NativeRunner, table: Table, gate: Gate) -> None:
        from omb_py.engine.native import Machine

        self._runner, self._table, self._gate = runner, table, gate
        self.labels = table.labels
        self._machine = Machine(runner.session.machine.wtime)
        self._machine.prepare(table)

    def run(self, first: int, iterations: int) -> NDArray[np.int64]:
        """Run in the calling thread; the code waits at the gate."""
        self._gate.arrive()
        return self._runner.execute(self._machine, self._table, first, iterations)

    def position(self) -> tuple[int, int]:
        """(iteration, step), from the word that the code writes."""
        return int(self._machine.word[1]), int(self._machine.word[2])


class BoundWork:
    """A thread's part of a stage as a Python loop."""

    def __init__(self, runner: BoundRunner, loop: Loop, gate: Gate) -> None:
        self._runner, self._loop, self._gate = runner, loop, gate
        self.labels = loop.labels
        self._thread = 0

    def run(self, first: int, iterations: int) -> NDArray[np.int64]:
        """Run in the calling thread."""
        self._thread = threading.get_ident()
        self._gate.wait()
        return self._runner.execute(self._loop, first, iterations)

    def position(self) -> tuple[int, int]:
        """(iteration, step), read from the running frame."""
        return self._loop.position(self._thread)

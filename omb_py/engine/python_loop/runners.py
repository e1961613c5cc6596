"""Common part of the runners of real processes: buffers, setup, teardown, and the loop of either kind of binding."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from omb_py.engine.native.threads import Crew, ThreadGate, Work, stages_of
from omb_py.engine.program.language import Body, Host, Program, Stage
from omb_py.engine.samples import LapTimes, address_of_array
from omb_py.engine.session import Runner, StepFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omb_py.engine.measuring.host_memory import ProgramMemory
    from omb_py.engine.native.translate import Machine, StageTable
    from omb_py.engine.python_loop.loop import CompiledLoop, Render

Results = Mapping[tuple[str, str], float]
"""(stage, lap) of earlier stages -> mean nanoseconds on this rank."""


class CellRunner(Runner, ABC):
    """A cell on one rank; implements :class:`omb_py.engine.session.Runner` but for what a stage is translated to.

    Args:
        session: whose communicator it uses.
        program: of this rank.
        memory: its buffers (:class:`~omb_py.engine.measuring.host_memory.HostMemory`, or what stands in for it).
    """

    def __init__(self, session: Any, program: Program, memory: ProgramMemory) -> None:
        self.session, self.program, self.memory_ = session, program, memory
        self._nbytes = {b.name: b.nbytes for b in program.buffers}
        self.crew: Crew | None = None
        self.laps = 0

    @abstractmethod
    def begin(self) -> None:
        """Make new request slots for a stage."""

    @abstractmethod
    def translated(self, stage: Stage, results: Results, gate: ThreadGate | None = None) -> Work:
        """What runs the body of a stage; `gate` is that of its threads."""

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        return self.memory_.view(buffer, self._nbytes[buffer])

    def enter(self, stage: int, results: Results) -> None:
        """Run the setup, then translate the body."""
        self.begin()
        self._run_once(self.program.stages[stage].setup)
        self._translate(self.program.stages[stage], results)

    def _translate(self, stage: Stage, results: Results) -> None:
        self.crew, self.laps = None, len(stage.laps)
        if stage.threads > 1:
            gate = ThreadGate()
            self.crew = Crew([self.translated(part, results, gate) for part in stages_of(stage)], gate)
            self.labels = self.crew.labels
            return
        self.loop = self.translated(stage, results)
        self.labels = self.loop.labels

    def leave(self, stage: int) -> None:
        self._run_once(self.program.stages[stage].teardown)

    def _run_once(self, nodes: Body) -> None:
        """Run setup or teardown: Python calls directly, the steps between them through the binding."""
        for is_host, part in groupby(nodes, lambda node: isinstance(node, Host)):
            if is_host:
                for node in part:
                    assert isinstance(node, Host)
                    node.call(self.session)
            else:
                self.translated(Stage((tuple(part),)), {}).run(0, 1)

    def ready(self) -> None:
        """What is done before each run."""

    def run(self, stage: int, first: int, iterations: int) -> dict[int, LapTimes | NDArray[np.int64]]:
        """Run iterations; see :class:`omb_py.engine.session.Runner`."""
        self.ready()
        if self.crew:
            return {self.session.rank: self.crew.run(first, iterations, self.laps)}
        return {self.session.rank: self.loop.run(first, iterations)}

    def position(self) -> tuple[int, int]:
        return (self.crew or self.loop).position()

    def postpone_rounds(self) -> None:
        """Announce the start of a round twice as far ahead: too many came late."""
        self.session.start.view("int64")[4] *= 2


class NativeRunner(CellRunner):
    """Generated code calls the library's own functions."""

    resolver: Any

    @abstractmethod
    def error_text(self, code: int, label: str) -> str:
        """The meaning of what a step returned, which `label` describes."""

    def assembled(self, stage: Stage, results: Results, word: int) -> StageTable:
        """The rows of a stage's body, which looks at the gate of its threads at an address, if not 0."""
        from omb_py.engine.native.translate import assemble  # not for ranks of a Python binding

        return assemble(stage, self.resolver, self.resolver.byte, results, word)

    def translated(self, stage: Stage, results: Results, gate: ThreadGate | None = None) -> Work:
        return NativeWork(self, self.assembled(stage, results, address_of_array(gate.word) if gate else 0), gate)


class NativeWork:
    """A stage, or a thread's part of one, as generated code. A thread has a watched word of its own."""

    def __init__(self, runner: NativeRunner, table: StageTable, gate: ThreadGate | None) -> None:
        self._runner, self._table, self._gate = runner, table, gate
        self.labels = table.labels
        machine: Machine = runner.session.machine
        self._machine = machine if gate is None else type(machine)(machine.wtime)
        self._machine.prepare(table)

    def run(self, first: int, iterations: int) -> LapTimes:
        """Run in the calling thread; the code waits at the gate. Raises StepFailed."""
        if self._gate:
            self._gate.arrive()
        samples, failed = self._machine.run(self._table, first, iterations)
        if failed:
            code = int(self._machine.word[3])
            raise StepFailed(failed - 1, code, self._runner.error_text(code, self.labels[failed - 1]))
        return samples

    def position(self) -> tuple[int, int]:
        return int(self._machine.word[1]), int(self._machine.word[2])


class FlatRunner(CellRunner):
    """A flat Python loop of a binding's calls."""

    renderer: Render

    def rendered(self, results: Results) -> Render:
        """The function that turns steps into source; `results` are those of earlier stages."""
        return self.renderer

    @abstractmethod
    def execute(self, loop: CompiledLoop, first: int, iterations: int) -> NDArray[np.int64]:
        """Run a loop in this thread. Raises StepFailed."""

    def translated(self, stage: Stage, results: Results, gate: ThreadGate | None = None) -> Work:
        from omb_py.engine.python_loop.loop import compile_stage  # not for ranks of the native binding

        return FlatWork(self, compile_stage(stage, self.rendered(results), results), gate)


class FlatWork:
    """A stage, or a thread's part of one, as a Python loop."""

    def __init__(self, runner: FlatRunner, loop: CompiledLoop, gate: ThreadGate | None) -> None:
        self._runner, self._loop, self._gate = runner, loop, gate
        self.labels = loop.labels
        self._thread = threading.get_ident()

    def run(self, first: int, iterations: int) -> NDArray[np.int64]:
        if self._gate:
            self._thread = threading.get_ident()
            self._gate.wait()
        return self._runner.execute(self._loop, first, iterations)

    def position(self) -> tuple[int, int]:
        return self._loop.position(self._thread) if self.labels else (0, 0)

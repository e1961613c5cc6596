"""Common part of the runners of real processes: buffers, setup, teardown, and the flat Python loop of a binding."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from omb_py.engine.native.threads import Crew, ThreadGate, stages_of
from omb_py.engine.program.language import Body, Host, Program, Stage
from omb_py.engine.session import Runner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omb_py.engine.measuring.host_memory import ProgramMemory
    from omb_py.engine.python_loop.loop import CompiledLoop, Render


class CellRunner(Runner, ABC):
    """A cell on one rank; implements :class:`omb_py.engine.session.Runner` but for running the body.

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
    def once(self, stage: Stage) -> None:
        """Run some steps once."""

    @abstractmethod
    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        """Make the code that runs the body."""

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        return self.memory_.view(buffer, self._nbytes[buffer])

    def enter(self, stage: int, results: Mapping[tuple[str, str], float]) -> None:
        """Run the setup, then translate the body."""
        self.begin()
        self._once(self.program.stages[stage].setup)
        self.translate(self.program.stages[stage], results)

    def leave(self, stage: int) -> None:
        self._once(self.program.stages[stage].teardown)

    def _once(self, nodes: Body) -> None:
        """Run setup or teardown: Python calls directly, the steps between them through the binding."""
        for is_host, part in groupby(nodes, lambda node: isinstance(node, Host)):
            if is_host:
                for node in part:
                    assert isinstance(node, Host)
                    node.call(self.session)
            else:
                self.once(Stage((tuple(part),)))

    def ready(self) -> None:
        return None

    def postpone_rounds(self) -> None:
        """Announce the start of a round twice as far ahead: too many came late."""
        self.session.start.view("int64")[4] *= 2


class FlatRunner(CellRunner):
    renderer: Render

    @abstractmethod
    def execute(self, loop: CompiledLoop, first: int, iterations: int) -> NDArray[np.int64]:
        """Run a loop in this thread. Raises StepFailed."""

    def rendered(self, results: Mapping[tuple[str, str], float]) -> Render:
        """The function that turns steps into source; `results` are those of earlier stages."""
        return self.renderer

    def once(self, stage: Stage) -> None:
        from omb_py.engine.python_loop.loop import compile_stage  # not for ranks of the native binding

        self.execute(compile_stage(stage, self.rendered({}), {}), 0, 1)

    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        from omb_py.engine.python_loop.loop import compile_stage

        self.crew, self.laps = None, len(stage.laps)
        if stage.threads > 1:
            gate = ThreadGate()
            loops = [compile_stage(part, self.rendered(results), results) for part in stages_of(stage)]
            self.crew = Crew([FlatWork(self, loop, gate) for loop in loops], gate)
            self.labels = self.crew.labels
            return
        self.loop = compile_stage(stage, self.rendered(results), results)
        self.labels = self.loop.labels
        self.thread = threading.get_ident()

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        self.ready()
        if self.crew:
            return {self.session.rank: self.crew.run(first, iterations, self.laps)}
        return {self.session.rank: self.execute(self.loop, first, iterations)}

    def position(self) -> tuple[int, int]:
        if self.crew:
            return self.crew.position()
        if not self.labels:
            return 0, 0
        return self.loop.position(self.thread)


class FlatWork:
    """A thread's part of a stage as a Python loop."""

    def __init__(self, runner: FlatRunner, loop: CompiledLoop, gate: ThreadGate) -> None:
        self._runner, self._loop, self._gate = runner, loop, gate
        self.labels = loop.labels
        self._thread = 0

    def run(self, first: int, iterations: int) -> NDArray[np.int64]:
        self._thread = threading.get_ident()
        self._gate.wait()
        return self._runner.execute(self._loop, first, iterations)

    def position(self) -> tuple[int, int]:
        return self._loop.position(self._thread)

"""A cell of the nccl backend, ready to run: the common part of all bindings, and generated code."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.nccl.calls import CALLS, MADE_BY, NcclResolver, call_of, handles
from omb_py.engine.measuring.async_timing import EXECUTABLE, GRAPH, SLOTS, TIME, uses_events
from omb_py.engine.native import opcodes
from omb_py.engine.native.translate import StageTable, assemble
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Program, Stage, steps_of
from omb_py.engine.session import Runner, StepFailed

if TYPE_CHECKING:
    from omb_py.backends.nccl.communicators import Communicators
    from omb_py.backends.nccl.session import NcclSession
    from omb_py.backends.oneccl.session import OnecclSession


LEAVES_S: Final = 1.0
"""How long a call of the library may take that does not block."""


class LoweredRunner(Runner, ABC):
    """A runner of a program that is lowered already.

    Args:
        session: whose device and memory it uses.
        comms: native communicators and their buffers; None: those made as usual.
        shift: bytes of each buffer that stand before what a call is given.
    """

    def __init__(
        self,
        session: NcclSession | OnecclSession,
        program: Program,
        marks: Mapping[str, str],
        comms: Communicators | None = None,
        shift: int = 0,
    ) -> None:
        self._shift = shift
        self.session, self.program, self._marks = session, program, marks
        self.comms = comms or session.comms
        self._nbytes = {buffer.name: buffer.nbytes for buffer in program.buffers}
        self._handles = handles(SLOTS)
        world = World(session.rank, session.size)
        self.resolver = NcclResolver(session.nccl, self.comms, world, self._handles, shift)
        self._events = False
        self.table: Any = None

    @abstractmethod
    def once(self, stage: Stage) -> None:
        """Run some steps once."""

    @abstractmethod
    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        """Make :attr:`table`, what runs the body of a stage."""

    @abstractmethod
    def execute(self, stage: Stage, table: Any, first: int, iterations: int) -> NDArray[np.int64]:
        """Run a table of a stage. Raises StepFailed."""

    @abstractmethod
    def position(self) -> tuple[int, int]:
        """(iteration, step) that runs now."""

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        return self.comms.memory.view(buffer, self._nbytes[buffer] + self._shift)[self._shift :]

    def enter(self, stage: int, results: Mapping[tuple[str, str], float]) -> None:
        program_stage = self.program.stages[stage]
        self._events = uses_events(program_stage)
        if self._events:
            self._handles[:2] = self.session.events()
        self._run_if_any(Stage((program_stage.setup,)))
        self._stage = program_stage
        self.translate(program_stage, results)
        self.labels = self.table.labels

    def leave(self, stage: int) -> None:
        self._run_if_any(Stage((self.program.stages[stage].teardown,)))
        self._destroy_graph()

    def _destroy_graph(self) -> None:
        """Destroy what the setup captured: NCCL keeps a communicator until no graph has work of it."""
        for function, slot in (("destroy_executable", EXECUTABLE), ("destroy_graph", GRAPH)):
            handle, self._handles[slot] = int(self._handles[slot]), 0
            if handle:
                self.session.device.call(function, handle)

    def _run_if_any(self, stage: Stage) -> None:
        if any(stage.variants):
            self.once(stage)

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        """Run iterations; see :class:`omb_py.engine.session.Runner`."""
        self.comms.memory.hand_over()
        if not self._events:
            return {self.session.rank: self.execute(self._stage, self.table, first, iterations)}
        # the events of an iteration are read before the next one records them again
        column = self.table.laps.index(TIME)
        parts = []
        for number in range(first, first + iterations):
            sample = self.execute(self._stage, self.table, number, 1)
            start, stop = (int(handle) for handle in self._handles[:2])
            sample[0, column] = self.session.device.elapsed_ns(start, stop)
            parts.append(sample)
        return {self.session.rank: np.concatenate(parts) if parts else np.zeros((0, len(self.table.laps)), np.int64)}

    def device_error(self, code: int, function: str) -> str:
        """The meaning of what a function of the device returned."""
        return f"{self.session.device.name}: {function} failed: {self.session.device.error_text(code, function)}"

    def close(self) -> None:
        """Destroy a graph that a failure has left; buffers stay for the next size."""
        self._destroy_graph()

    @property
    def marks(self) -> dict[str, str]:
        return {**self._marks, **self.session.tuning()}


class NcclRunner(LoweredRunner):
    """Generated code calls the library's own functions."""

    _running: tuple[StageTable, Stage] | None = None
    """The table whose code runs now, and what it was made from."""

    def once(self, stage: Stage) -> None:
        self.execute(stage, self._assemble(stage, {}), 0, 1)

    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        self.table = self._assemble(stage, results)
        self.session.machine.prepare(self.table)

    def _assemble(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> StageTable:
        self.resolver.results = results
        return assemble(stage, self.resolver, self.resolver.byte, results)

    def execute(self, stage: Stage, table: StageTable, first: int, iterations: int) -> NDArray[np.int64]:
        machine = self.session.machine
        self._running = table, stage
        try:
            times, failed = machine.run(table, first, iterations)
        finally:
            self._running = None
        self.session.raise_async(int(machine.word[2]))
        if failed:
            code = int(machine.word[3])
            op, nccl = steps_of(stage)[failed - 1].op, self.session.nccl
            of_nccl = op in MADE_BY or call_of(op, nccl) is not None
            text = nccl.error_text(code, self.comms.first) if of_nccl else self.device_error(code, op)
            raise StepFailed(failed - 1, code, text)
        return times.table()

    def revoke(self, handles: Sequence[int], enough_s: float = LEAVES_S) -> None:
        """Take communicators from the loop that runs, from another thread: its next call gets none, and fails.

        Then wait until the loop is in no call of the library, `enough_s` at most: one that blocks there waits for the
        abort.
        """
        running = self._running
        if running is None:
            return
        table, stage = running
        rows = np.frombuffer(table.rows, np.int64).reshape(-1, opcodes.WIDTH)
        operands = rows[:, opcodes.ARG0 : opcodes.STRIDE0]
        operands[np.isin(operands, handles)] = 0
        steps = steps_of(stage)
        until = time.monotonic() + enough_s
        while self._running is running and time.monotonic() < until:
            _, step = self.position()
            if not (step < len(steps) and steps[step].op in (*CALLS, *MADE_BY)):
                return
            time.sleep(0.001)

    def position(self) -> tuple[int, int]:
        word = self.session.machine.word
        return int(word[1]), int(word[2])

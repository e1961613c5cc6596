"""A cell of the nccl backend, ready to run through generated code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.nccl.calls import CALLS, Resolver, handles
from omb_py.engine.describe import steps_of
from omb_py.engine.native import Table, assemble
from omb_py.engine.program import Program, Stage
from omb_py.engine.session import StepFailed
from omb_py.engine.timing import SLOTS, TIME, uses_events

if TYPE_CHECKING:
    from omb_py.backends.nccl.session import NcclSession


class NcclRunner:
    """Implements :class:`omb_py.engine.session.Runner`; the program is lowered already.

    Args:
        session: whose communicator and device it uses.
        program: a lowered one.
        marks: what else is to be said of the row.
    """

    def __init__(self, session: NcclSession, program: Program, marks: Mapping[str, str]) -> None:
        self.session, self.program, self.marks = session, program, marks
        self._nbytes = {buffer.name: buffer.nbytes for buffer in program.buffers}
        self._handles = handles(SLOTS)
        self._resolver = Resolver(session.nccl, session.nccl_comm, session.memory, session.size, self._handles)
        self._events = False
        self.labels: tuple[str, ...] = ()

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        """The bytes of a buffer on the host, until the next run."""
        return self.session.memory.view(buffer, self._nbytes[buffer])

    def enter(self, stage: int, results: Mapping[tuple[str, str], float]) -> None:
        """Run the setup, then translate the body."""
        what = self.program.stages[stage]
        self._events = uses_events(what)
        if self._events:
            self._handles[:2] = self.session.events()
        self._once(Stage((what.setup,)))
        self._stage = what
        self._table = self._assemble(what, results)
        self.labels = self._table.labels
        self.session.machine.prepare(self._table)

    def leave(self, stage: int) -> None:
        """Run the teardown."""
        self._once(Stage((self.program.stages[stage].teardown,)))

    def _once(self, stage: Stage) -> None:
        if any(stage.variants):
            self._execute(stage, self._assemble(stage, {}), 0, 1)

    def _assemble(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> Table:
        self._resolver.results = results
        return assemble(stage, self._resolver, self._resolver.byte, results)

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        """Run iterations; see :class:`omb_py.engine.session.Runner`."""
        self.session.memory.hand_over()
        if not self._events:
            return {self.session.rank: self._execute(self._stage, self._table, first, iterations)}
        # the events of an iteration are read before the next one records them again
        column = self._table.laps.index(TIME)
        parts = []
        for number in range(first, first + iterations):
            sample = self._execute(self._stage, self._table, number, 1)
            start, stop = (int(handle) for handle in self._handles[:2])
            sample[0, column] = self.session.device.elapsed_ns(start, stop)
            parts.append(sample)
        return {self.session.rank: np.concatenate(parts) if parts else np.zeros((0, len(self._table.laps)), np.int64)}

    def _execute(self, stage: Stage, table: Table, first: int, iterations: int) -> NDArray[np.int64]:
        machine = self.session.machine
        samples: NDArray[np.int64]
        samples, failed = machine.run(table, first, iterations)
        self.session.raise_async(int(machine.word[2]))
        if failed:
            code = int(machine.word[3])
            of_nccl = steps_of(stage)[failed - 1].op in CALLS
            text = self.session.nccl.error_text(code, self.session.nccl_comm) if of_nccl else self._device_error(code)
            raise StepFailed(failed - 1, code, text)
        return samples

    def _device_error(self, code: int) -> str:
        return f"{self.session.device.name}: {self.session.device.error_text(code)}"

    def position(self) -> tuple[int, int]:
        """(iteration, step), from the word that the code writes."""
        word = self.session.machine.word
        return int(word[1]), int(word[2])

    def later(self) -> None:
        """Rounds on a common clock are not offered."""

    def notes(self) -> Mapping[str, float]:
        """Nothing further."""
        return {}

    def close(self) -> None:
        """Buffers stay for the next size."""

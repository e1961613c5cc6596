"""A cell of the ucc backend, ready to run: generated code calls the library's own functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omb_py.backends.ucc.calls import UccResolver
from omb_py.engine.native.translate import StageTable, assemble
from omb_py.engine.program.language import Stage
from omb_py.engine.python_loop.runners import CellRunner
from omb_py.engine.samples import LapTimes
from omb_py.engine.session import StepFailed

if TYPE_CHECKING:
    from omb_py.backends.ucc.session import UccSession


class UccRunner(CellRunner):
    """Implements :class:`omb_py.engine.session.Runner`."""

    session: UccSession

    def begin(self) -> None:
        self.resolver = UccResolver(self.session.ucc, self.session.teams, self.memory_, self.program)

    def once(self, stage: Stage) -> None:
        self._execute(self._assemble(stage, {}), 0, 1)

    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        self.table = self._assemble(stage, results)
        self.labels = self.table.labels
        self.session.machine.prepare(self.table)

    def run(self, stage: int, first: int, iterations: int) -> dict[int, LapTimes]:
        """Run iterations; see :class:`omb_py.engine.session.Runner`."""
        return {self.session.rank: self._execute(self.table, first, iterations)}

    def position(self) -> tuple[int, int]:
        word = self.session.machine.word
        return int(word[1]), int(word[2])

    def _assemble(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> StageTable:
        return assemble(stage, self.resolver, self.resolver.byte, results)

    def _execute(self, table: StageTable, first: int, iterations: int) -> LapTimes:
        machine = self.session.machine
        times, failed = machine.run(table, first, iterations)
        if failed:
            code = int(machine.word[3])
            raise StepFailed(failed - 1, code, self.session.ucc.error_text(code))
        return times

"""A cell of the gloo backend, ready to run as a flat Python loop of torch.distributed calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.gloo.bound import Renderer
from omb_py.backends.gloo.errors import first_line, peers_speak_first
from omb_py.engine.program.language import Program
from omb_py.engine.python_loop.loop import Loop
from omb_py.engine.python_loop.runners import FlatRunner
from omb_py.engine.session import StepFailed
from omb_py.errors import EnvironmentProblem


class GlooRunner(FlatRunner):
    """Implements :class:`omb_py.engine.session.Runner`."""

    def __init__(self, session: Any, program: Program, memory: Any) -> None:
        if program.window is not None:
            raise EnvironmentProblem("Gloo has no one-sided operations: use --backend mpi")
        super().__init__(session, program, memory)

    def begin(self) -> None:
        session: Any = self.session
        self.renderer = Renderer(session.rank, session.size, self.memory_, self.program, session.groups)

    def execute(self, loop: Loop, first: int, iterations: int) -> NDArray[np.int64]:
        try:
            with peers_speak_first():
                return loop.run(first, iterations)
        except (RuntimeError, ValueError) as error:
            raise StepFailed(loop.failed_step(error), 0, first_line(error)) from error

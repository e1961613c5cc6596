"""``python -m tests.support.patient WORD…``: omb-py whose ``--timeout`` counts from the first cell of a launch.

However long a busy machine takes to start ranks, only what a test does to them runs into the limit.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from omb_py.__main__ import main
from omb_py.orchestrate.supervision import supervisor

PATIENT = "tests.support.patient"


def wait_for_a_cell() -> None:
    """Let the clock of each supervisor stand still until its launch has a cell."""
    real = supervisor.Supervisor.__init__

    def patient(self: supervisor.Supervisor, *words: Any, handlers: supervisor.Handlers, **more: Any) -> None:
        begun.clear()

        def cell(message: Any) -> None:
            begun.set()
            handlers.cell(message)

        real(self, *words, handlers=replace(handlers, cell=cell), **more)

    begun = threading.Event()
    # a supervisor counts no more than two turns of its loop at once, so that it does not see the clock leap
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() * begun.is_set())
    patch.object(supervisor, "time", clock).start()
    patch.object(supervisor.Supervisor, "__init__", patient).start()


if __name__ == "__main__":
    wait_for_a_cell()
    main()

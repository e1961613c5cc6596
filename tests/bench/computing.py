"""Processes that compute beside a bench: the load of its machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_COMPUTE = "import os\nbench = os.getppid()\nwhile os.getppid() == bench: pass"  # a bench that is killed leaves nothing


@contextmanager
def beside(processes: int) -> Iterator[None]:
    """Keep so many processes computing."""
    started = [subprocess.Popen([sys.executable, "-c", _COMPUTE]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()

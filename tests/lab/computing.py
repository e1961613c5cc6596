"""Processes that compute beside a bench: the load of its machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_COMPUTE = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"
"""Ends with the bench whose process number it is given, also when that is killed."""


@contextmanager
def beside(processes: int) -> Iterator[None]:
    """Keep so many processes computing."""
    started = [subprocess.Popen([sys.executable, "-c", _COMPUTE, str(os.getpid())]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()

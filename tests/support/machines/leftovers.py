"""Finding processes that a test started, however they were started: by a variable that all of them inherit."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

MARK = "OMB_PY_TEST_MARK"
"""Set to a new value in each pytest process."""


def processes_marked(mark: str, patience_s: float = 0.0) -> dict[int, str]:
    """Other living processes with this mark, number -> command line; asked again until `patience_s` have passed."""
    return processes_with(f"{MARK}={mark}", patience_s)


def processes_with(variable: str, patience_s: float = 0.0) -> dict[int, str]:
    """The same by any variable, as ``NAME=VALUE``."""
    deadline = time.monotonic() + patience_s
    while True:
        found = dict(_marked(variable.encode()))
        if not found or time.monotonic() >= deadline:
            return found
        time.sleep(0.05)


def end(processes: dict[int, str]) -> None:
    """Kill processes by number."""
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _marked(wanted: bytes) -> list[tuple[int, str]]:
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if words:  # a zombie has no command line: it is dead, only not yet reaped
                    found.append((int(folder.name), words))
    return found

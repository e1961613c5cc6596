"""Shared memory that communication libraries leave in /dev/shm when their ranks are killed: memory until a reboot."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

_FOLDER = "/dev/shm/"
_NAMES = ("mpich_shm_", "sm_segment.", "vader_segment.", "Intel_MPI_")
"""How MPICH, Open MPI 5 and 4, and Intel MPI name their segments; nothing else is ever touched."""


def segments(pid: int) -> set[str]:
    """The library's segments that a process has mapped now; empty when it is gone or not ours to look at."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return set()
    # A name that the library has removed already stands there as "... (deleted)".
    paths = {line.split(maxsplit=5)[5] for line in maps.splitlines() if _FOLDER in line}
    return {
        path for path in paths if path.startswith(tuple(_FOLDER + name for name in _NAMES)) and os.path.exists(path)
    }


def remove(paths: Iterable[str]) -> None:
    """Remove segments; those that are gone are no error."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)

"""Shared memory segments in /dev/shm, which a killed rank's library leaves behind until a reboot."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

_FOLDER = "/dev/shm/"
_NAMES = ("mpich_shm_", "sm_segment.", "vader_segment.", "Intel_MPI_")
"""Name prefixes of MPICH, Open MPI 5 and 4, and Intel MPI. No other file is ever touched."""


def segments(pid: int) -> set[str]:
    """Paths of the library's segments that a process has mapped; empty when it is gone or not ours to inspect."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return set()
    # A segment that the library has removed already is listed as "... (deleted)".
    paths = {line.split(maxsplit=5)[5] for line in maps.splitlines() if _FOLDER in line}
    return {
        path for path in paths if path.startswith(tuple(_FOLDER + name for name in _NAMES)) and os.path.exists(path)
    }


def remove(paths: Iterable[str]) -> None:
    """Remove segments. A segment that is gone already is no error."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)

"""Host memory of a rank: what the user's program would hold (`numpy` or `bytearray`), kept between sizes."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from omb_py.errors import UsageError, nearest

BUFFERS = ("numpy", "bytearray")


class HostMemory:
    """Named buffers that grow and are reused, so that all sizes of a sweep use the same pages, as in OMB.

    A ``numpy`` buffer starts on a page boundary, as OMB's do; a ``bytearray`` where Python puts it.
    """

    def __init__(self, kind: str) -> None:
        if kind not in BUFFERS:
            raise UsageError(f"unknown buffer {kind!r}: {nearest(kind, BUFFERS)}")
        self.kind = kind
        self._owners: dict[str, NDArray[np.uint8] | bytearray] = {}
        self._views: dict[str, NDArray[np.uint8]] = {}

    def reserve(self, name: str, nbytes: int) -> None:
        """Make buffer `name` at least `nbytes` large, touched and filled with ones (sends) or zeros."""
        nbytes = max(1, nbytes)
        if name in self._views and self._views[name].nbytes >= nbytes:
            return
        fill = 1 if name.startswith("send") else 0
        if self.kind == "bytearray":
            owner: NDArray[np.uint8] | bytearray = bytearray(nbytes)
            view = np.frombuffer(owner, np.uint8)
        else:
            owner = np.empty(nbytes + mmap.PAGESIZE, np.uint8)
            start = -owner.ctypes.data % mmap.PAGESIZE
            view = owner[start : start + nbytes]
        view[:] = fill
        self._owners[name], self._views[name] = owner, view

    def view(self, name: str, nbytes: int) -> NDArray[np.uint8]:
        """The first `nbytes` bytes of a reserved buffer, writable."""
        return self._views[name][:nbytes]

    def owner(self, name: str) -> NDArray[np.uint8] | bytearray:
        """The object that the user's program would hold."""
        return self._owners[name] if self.kind == "bytearray" else self._views[name]

    def lend(self, name: str, view: NDArray[np.uint8]) -> HostMemory:
        """These buffers, and one more (or instead) that somebody else has allocated, not kept for the next size."""
        other = HostMemory(self.kind)
        other._owners, other._views = {**self._owners, name: view}, {**self._views, name: view}
        return other

    def address(self, name: str) -> int:
        """Where the buffer starts."""
        return int(self._views[name].ctypes.data)


def available_bytes() -> int:
    """Memory that this process may still take, in bytes: the machine's, or its control group's if less."""
    free = 1 << 62
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
                break
    except OSError:
        free = os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            free = min(free, int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):  # no such control group, or "max"
            continue
    return max(0, free)

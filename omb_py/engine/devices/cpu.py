"""The host as a device: everything happens at once."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.devices.callbacks import Callbacks
from omb_py.engine.measuring.host_memory import available_bytes


def open_device(kind: str, rank: int) -> CpuDevice:
    """Host memory, the same for every local rank."""
    return CpuDevice()


class CpuDevice:
    """Host memory. What other devices do later on a stream has happened here when the call returns."""

    kind, index, name, stream = "cpu", 0, "host", 0

    def __init__(self) -> None:
        self._memory: dict[int, NDArray[np.uint8]] = {}
        self._events: list[int] = []
        self._callbacks = Callbacks(
            synchronise=lambda stream: None,
            copy_in=lambda to, source, nbytes, stream: ctypes.memmove(to, source, nbytes),
            copy_out=lambda to, source, nbytes, stream: ctypes.memmove(to, source, nbytes),
            fill=lambda to, value, nbytes, stream: ctypes.memset(to, value, nbytes),
            record=self._record,
        )

    def allocate(self, nbytes: int) -> int:
        """Memory of the host."""
        memory = np.zeros(max(1, nbytes), np.uint8)
        self._memory[memory.ctypes.data] = memory
        return int(memory.ctypes.data)

    def allocate_managed(self, nbytes: int) -> int:
        """Memory of the host: it needs no moving."""
        return self.allocate(nbytes)

    def allocate_mapped(self, nbytes: int) -> int:
        """Memory of the host."""
        return self.allocate(nbytes)

    def free(self, address: int) -> None:
        """Give memory back."""
        del self._memory[address]

    def event(self) -> int:
        """A place for a time."""
        self._events.append(0)
        return len(self._events) - 1

    def _record(self, event: int, stream: int) -> None:
        self._events[event] = time.perf_counter_ns()

    def elapsed_ns(self, start: int, stop: int) -> int:
        """Time between two recorded events."""
        return self._events[stop] - self._events[start]

    def new_stream(self) -> int:
        """There is one order only."""
        return 0

    def memory_left(self) -> int:
        """Bytes that may still be allocated."""
        return available_bytes()

    def clocks(self) -> Mapping[str, int]:
        """Not known."""
        return {}

    def identity(self) -> str:
        """There is one."""
        return "host"

    def function(self, name: str) -> int:
        """Address of a function."""
        return self._callbacks.address(name, self.kind)

    def call(self, name: str, *operands: int) -> None:
        """Call a function."""
        self._callbacks.call(name, self.kind, operands)

    def error_text(self, code: int) -> str:
        """The text of the last error."""
        return self._callbacks.last_error

    def attach(self, library: Any) -> None:
        """Nothing to introduce."""

    def close(self) -> None:
        """Forget all memory."""
        self._memory.clear()

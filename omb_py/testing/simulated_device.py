"""A device that is not there: host memory behind streams that really are asynchronous.

Each stream is a thread that runs what was enqueued, in order and *later*: an idle stream waits a while before it
begins.  Whoever reads a result or reuses a buffer without synchronising therefore gets wrong data, as on a GPU, only
reliably.  Times on it mean nothing.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.devices.callbacks import DeviceFunctions, store
from omb_py.engine.devices.kind import DeviceKind
from omb_py.engine.native.matmul import multiply_at
from omb_py.errors import EnvironmentProblem

DEVICES_VARIABLE: Final = "OMB_PY_SIM_DEVICES"
"""Variable with the number of devices of a machine; 8 where it is not set."""
DELAY_VARIABLE: Final = "OMB_PY_SIM_DELAY_US"
"""Variable with the time in µs that an idle stream waits before it begins; 200 where it is not set. With ``inf`` it
waits until somebody synchronises with it, however busy the machine is."""
MEMORY_BYTES: Final = 1 << 30
GATE_S: Final = 3.0
"""Seconds for which a stream may be held back."""
ATTACH: Final = "omb_py_attach_device"
"""A library with this symbol is given the address of ``launch_host``, where it enqueues its work, and that of
``retain(stream, function, argument)``: where the stream is captured, 1, and the function is called once neither the
graph nor what launches it is there any more (as CUDA does with the user objects of a graph); else 0."""

Job = Callable[[], object]
_HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_RETAIN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class Captured:
    """Recorded work, which a graph and what launches it share."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.when_gone: list[Job] = []
        self.handles = 0

    def drop(self) -> None:
        """One handle less; with the last one the work is gone."""
        self.handles -= 1
        if not self.handles:
            for job in self.when_gone:
                job()


class Stream:
    """A queue and the thread that works it off."""

    def __init__(self, delay_s: float) -> None:
        self.captured: Captured | None = None
        """The work that is being recorded instead of run."""
        self.error = ""
        """The first error; it stays, as it does on a GPU."""
        self._delay_s = delay_s
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._running = False
        self._over = False
        self._awaited = 0
        """How many wait until all is done."""
        self._thread = threading.Thread(target=self._work, name="omb-stream", daemon=True)
        self._thread.start()

    def put(self, *jobs: Job) -> None:
        """Enqueue work, or record it."""
        if self.captured is not None:
            self.captured.jobs.extend(jobs)
            return
        with self._changed:
            self._jobs.extend(jobs)
            self._changed.notify_all()

    def synchronise(self) -> None:
        """Wait until all is done. Raises RuntimeError with what went wrong, and while work is being recorded."""
        if self.captured is not None:
            raise RuntimeError("a stream cannot be synchronised while it is captured")
        with self._changed:
            self._awaited += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._jobs and not self._running)
            self._awaited -= 1
        if self.error:
            raise RuntimeError(self.error)

    def busy(self) -> bool:
        """Whether anything is enqueued or runs."""
        with self._changed:
            return bool(self._jobs) or self._running

    def close(self) -> None:
        """End the thread; what has not begun is not run."""
        with self._changed:
            self._jobs.clear()
            self._over = True
            self._changed.notify_all()
        self._thread.join(timeout=5)

    def _work(self) -> None:
        while True:
            with self._changed:
                idle = not self._jobs
                self._changed.wait_for(lambda: bool(self._jobs) or self._over)
                if self._over:
                    return
                self._running = True
            if idle and self._delay_s and self._delay_s < math.inf:
                time.sleep(self._delay_s)
            with self._changed:
                if idle and self._delay_s == math.inf:
                    self._changed.wait_for(lambda: self._awaited > 0 or self._over)
                job = self._jobs.popleft() if self._jobs else None
            try:
                if job is not None:
                    job()
            except Exception as error:
                self.error = self.error or f"{type(error).__name__}: {error}"
            with self._changed:
                self._running = False
                self._changed.notify_all()


class SimulatedDevice:
    """One simulated device.

    Args:
        delay_us: how long an idle stream waits before it begins; None: :data:`DELAY_VARIABLE`, else 200.
    """

    kind = "sim"
    cache_bytes = 0

    def __init__(self, index: int = 0, delay_us: float | None = None) -> None:
        self.index, self.name = index, "simulated device"
        wait = float(os.environ.get(DELAY_VARIABLE, "200")) if delay_us is None else delay_us
        self._delay_s = wait / 1e6
        self._streams: list[Stream] = []
        self._events: list[int] = []
        self._graphs: dict[int, Captured] = {}
        self._executables: dict[int, Captured] = {}
        self._last_handle = 0
        self._memory: dict[int, NDArray[np.uint8]] = {}
        self._mapped: dict[int, NDArray[np.uint8]] = {}
        """Memory of the host, which takes nothing from the device."""
        self.resides: dict[int, int] = {}
        """Managed memory -> the device where it is, -1: on the host."""
        self._callbacks = DeviceFunctions(
            synchronise=lambda stream: self._find_stream(stream).synchronise(),
            copy_in=self._copy,
            copy_out=self._copy,
            fill=self._fill,
            record=self._record,
            begin_capture=self._begin_capture,
            end_capture=self._end_capture,
            instantiate=lambda where, graph, flags: self._add_handle(
                self._executables, where, _find_captured(self._graphs, graph)
            ),
            launch=lambda executable, stream: self._find_stream(stream).put(
                *_find_captured(self._executables, executable).jobs
            ),
            destroy_graph=lambda graph: _find_captured(self._graphs, graph, pop=True).drop(),
            destroy_executable=lambda executable: _find_captured(self._executables, executable, pop=True).drop(),
            store=store,
            wait_value=self._wait,
            launch_host=self._launch_host,
            prefetch=self._prefetch,
            matmul=lambda *operands: self._find_stream(operands[-1]).put(lambda: multiply_at(*operands[:-1])),
            spin=lambda ns, stream: self._find_stream(stream).put(lambda: time.sleep(ns / 1e9)),
        )
        self._retained = _RETAIN(self._retain)
        self.stream = self.new_stream()

    def allocate(self, nbytes: int) -> int:
        if nbytes > self.memory_left():
            raise EnvironmentProblem(f"the simulated device has {self.memory_left()} B left, not {nbytes}: smaller -m")
        return _allocate(self._memory, nbytes)

    def allocate_managed(self, nbytes: int) -> int:
        address = self.allocate(nbytes)
        self.resides[address] = self.index
        return address

    def allocate_mapped(self, nbytes: int) -> int:
        return _allocate(self._mapped, nbytes)

    def free(self, address: int) -> None:
        if self.busy():
            raise EnvironmentProblem(
                "device sim: memory is given back while work is enqueued: a synchronise is missing"
            )
        del (self._mapped if address in self._mapped else self._memory)[address]
        self.resides.pop(address, None)

    def busy(self) -> bool:
        """Whether anything is enqueued on any stream."""
        return any(stream.busy() for stream in self._streams)

    def new_stream(self) -> int:
        """A stream with a thread of its own. Further streams begin at once: they overtake the first where they may.

        Of a device that waits until somebody synchronises all of them wait.
        """
        self._streams.append(Stream(0.0 if self._streams and self._delay_s < math.inf else self._delay_s))
        return len(self._streams)  # 0 is no handle: a forgotten one is found out

    @property
    def streams(self) -> range:
        """The handles of all streams."""
        return range(1, len(self._streams) + 1)

    def event(self) -> int:
        self._events.append(0)
        return len(self._events)

    def elapsed_ns(self, start: int, stop: int) -> int:
        first, last = self._events[start - 1], self._events[stop - 1]
        if not first or not last:
            raise EnvironmentProblem("device sim: an event is read before it has happened: a synchronise is missing")
        return last - first

    def memory_left(self) -> int:
        return MEMORY_BYTES - sum(memory.nbytes for memory in self._memory.values())

    def clocks(self) -> Mapping[str, int]:
        return {}

    def identity(self) -> str:
        return f"sim:{self.index}"

    def function(self, name: str) -> int:
        return self._callbacks.address(name, self.kind)

    def call(self, name: str, *operands: int) -> None:
        self._callbacks.call(name, self.kind, operands)

    def error_text(self, code: int, function: str) -> str:
        return self._callbacks.last_error

    def attach(self, library: object) -> None:
        if hasattr(library, ATTACH):
            getattr(library, ATTACH)(ctypes.c_void_p(self.function("launch_host")), self._retained)

    def close(self) -> None:
        for stream in self._streams:
            stream.close()

    # the functions that loops call

    def _find_stream(self, stream: int) -> Stream:
        if not 1 <= stream <= len(self._streams):
            raise ValueError(f"no stream {stream}")
        return self._streams[stream - 1]

    def _copy(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self._find_stream(stream).put(lambda: ctypes.memmove(to, source, nbytes))

    def _fill(self, to: int, value: int, nbytes: int, stream: int) -> None:
        self._find_stream(stream).put(lambda: ctypes.memset(to, value, nbytes))

    def _prefetch(self, address: int, nbytes: int, where: int, stream: int) -> None:
        """Move pages; while they travel they hold other bytes, so that a reader that does not wait is found out."""
        if address not in self.resides:
            raise ValueError("only managed memory can be brought elsewhere")
        kept = ctypes.create_string_buffer(nbytes)

        def leave() -> None:
            ctypes.memmove(kept, address, nbytes)
            ctypes.memset(address, 0xA5, nbytes)

        def arrive() -> None:
            ctypes.memmove(address, kept, nbytes)
            self.resides[address] = where

        leave()
        self._find_stream(stream).put(arrive)

    def _record(self, event: int, stream: int) -> None:
        def record() -> None:
            self._events[event - 1] = time.perf_counter_ns()

        if self._find_stream(stream).captured is None:
            self._events[event - 1] = 0
        self._find_stream(stream).put(record)

    def _launch_host(self, stream: int, function: int, argument: int) -> None:
        call = _HOST_FUNCTION(function)
        self._find_stream(stream).put(lambda: call(argument))

    def _begin_capture(self, stream: int, mode: int) -> None:
        self._find_stream(stream).captured = Captured()

    def _end_capture(self, stream: int, where: int) -> None:
        captured = self._find_stream(stream).captured
        if captured is None:
            raise RuntimeError("the stream is not captured")
        self._find_stream(stream).captured = None
        self._add_handle(self._graphs, where, captured)

    def _add_handle(self, handles: dict[int, Captured], where: int, captured: Captured) -> None:
        self._last_handle += 1
        handles[self._last_handle] = captured
        captured.handles += 1
        _store(where, self._last_handle)

    def _retain(self, stream: int, function: int, argument: int | None) -> int:
        captured = self._find_stream(stream).captured
        if captured is None:
            return 0
        call = _HOST_FUNCTION(function)
        captured.when_gone.append(lambda: call(argument))
        return 1

    def _wait(self, stream: int, address: int, value: int, flags: int, mask: int) -> None:
        def wait() -> None:
            word = ctypes.c_uint32.from_address(address)
            deadline = time.monotonic() + GATE_S
            while word.value < value:
                if time.monotonic() > deadline:
                    raise RuntimeError("the gate never opened: a synchronise is missing")
                time.sleep(0.00005)

        self._find_stream(stream).put(wait)


def _allocate(memory: dict[int, NDArray[np.uint8]], nbytes: int) -> int:
    held = np.full(max(1, nbytes), 0xA5, np.uint8)
    memory[held.ctypes.data] = held
    return int(held.ctypes.data)


def _find_captured(handles: dict[int, Captured], handle: int, pop: bool = False) -> Captured:
    """The captured work of a handle. Raises ValueError where it is not one, or not any more."""
    if handle not in handles:
        raise ValueError(f"no graph {handle}: it was destroyed, or never made")
    return handles.pop(handle) if pop else handles[handle]


def _store(address: int, value: int, kind: Any = ctypes.c_int64) -> None:
    kind.from_address(address).value = value


class SimulatedKind(DeviceKind):
    """As many devices as :data:`DEVICES_VARIABLE` says."""

    def count(self) -> int:
        return int(os.environ.get(DEVICES_VARIABLE, "8"))

    def open(self, index: int) -> SimulatedDevice:
        return SimulatedDevice(index)


KIND: Final = SimulatedKind("sim", plain_arrays=True)

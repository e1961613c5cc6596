"""Host memory of a rank: the objects that a user's program would hold (array, bytearray, …), kept between sizes."""

from __future__ import annotations

import ctypes
import mmap
import os
from array import array
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from omb_py.engine.program.buffers import MEMORY, TORCH_PIP
from omb_py.errors import EnvironmentProblem, UsageError, nearest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROOT = ""
"""What stands before absolute paths, in tests."""
_HUGE_FROM = 1 << 22
"""NumPy asks for huge pages for arrays of so many bytes."""


def load_torch() -> ModuleType:
    """PyTorch, which is optional. Raises EnvironmentProblem with the line that installs it."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise EnvironmentProblem(f"--buffer torch needs PyTorch ({error}): {TORCH_PIP}") from None


class ProgramMemory(Protocol):
    """Named buffers of a program, wherever they lie."""

    kind: str

    def view(self, name: str, nbytes: int) -> NDArray[np.uint8]:
        """The first `nbytes` bytes of a buffer, on the host and writable."""

    def owner(self, name: str) -> Any:
        """The object that the user's program would hold."""

    def address(self, name: str) -> int:
        """Address at which a buffer starts."""


def reserve(memories: dict[str, HostMemory], kind: str, sizes: Mapping[str, int]) -> None:
    """Make buffers of a kind at least so large, in the memory of this kind among those that a session keeps.

    Raises UsageError, EnvironmentProblem: as :class:`HostMemory`.
    """
    if kind not in memories:
        memories[kind] = HostMemory(kind)
    for name, nbytes in sizes.items():
        memories[kind].reserve(name, nbytes)


class HostMemory:
    """Named buffers that grow and are reused, so that all sizes of a sweep use the same pages, as in OMB.

    A ``numpy`` or ``torch`` buffer starts on a page boundary, as OMB's do; a ``bytearray`` or ``array`` where Python
    puts it.  Raises UsageError for an unknown kind, EnvironmentProblem for ``torch`` without PyTorch.
    """

    def __init__(self, kind: str) -> None:
        if kind not in MEMORY:
            raise UsageError(f"unknown buffer {kind!r}: {nearest(kind, MEMORY)}")
        self.kind = kind
        self._torch = load_torch() if kind == "torch" else None
        self._owners: dict[str, Any] = {}
        """The memory as it was allocated."""
        self._places: dict[str, tuple[int, int]] = {}
        """Address and size of each buffer."""
        self._views: dict[str, NDArray[np.uint8]] = {}
        """Arrays of NumPy over buffers, of those that were asked for."""

    def reserve(self, name: str, nbytes: int) -> None:
        """Make buffer `name` at least `nbytes` large, touched and filled with ones (sends) or zeros."""
        nbytes = max(1, nbytes)
        if name in self._places and self._places[name][1] >= nbytes:
            return
        owner, address = self._allocate(nbytes)
        ctypes.memset(address, 1 if name.startswith("send") else 0, nbytes)
        self._owners[name], self._places[name] = owner, (address, nbytes)
        self._views.pop(name, None)

    def _allocate(self, nbytes: int) -> tuple[Any, int]:
        """(what holds the memory, its address). An array of NumPy is made of it when a program wants one."""
        if self._torch is not None:
            tensor = self._torch.empty(nbytes + mmap.PAGESIZE, dtype=self._torch.uint8)
            start = -tensor.data_ptr() % mmap.PAGESIZE
            part = tensor[start : start + nbytes]
            return part, part.data_ptr()
        if self.kind == "array":
            elements = array("B", bytes(1)) * nbytes
            return elements, elements.buffer_info()[0]
        plain = bytearray(nbytes) if self.kind == "bytearray" else mmap.mmap(-1, nbytes)
        if isinstance(plain, mmap.mmap) and nbytes >= _HUGE_FROM:
            with suppress(AttributeError, OSError):  # a kernel without them
                plain.madvise(mmap.MADV_HUGEPAGE)
        return plain, ctypes.addressof(ctypes.c_char.from_buffer(plain))

    def view(self, name: str, nbytes: int) -> NDArray[np.uint8]:
        """The first `nbytes` bytes of a reserved buffer, writable."""
        if name not in self._views:
            import numpy as np

            owner, whole = self._owners[name], self._places[name][1]
            self._views[name] = owner.numpy() if self._torch is not None else np.frombuffer(owner, np.uint8, whole)
        return self._views[name][:nbytes]

    def owner(self, name: str) -> Any:
        """The object that the user's program would hold: ndarray, bytearray, array.array or torch.Tensor, of bytes."""
        return self.view(name, self._places[name][1]) if self.kind == "numpy" else self._owners[name]

    def lend(self, name: str, view: NDArray[np.uint8]) -> HostMemory:
        """These buffers with `view`, memory allocated elsewhere, as buffer `name`; it is not kept for the next size."""
        extended = HostMemory(self.kind)
        extended._owners, extended._views = {**self._owners, name: view}, {**self._views, name: view}
        extended._places = {**self._places, name: (int(view.ctypes.data), view.nbytes)}
        return extended

    def address(self, name: str) -> int:
        return self._places[name][0]


_LEARNT = (32 << 20) - (64 << 10)
"""The largest block, less its head and a few pages, that glibc's malloc learns from: DEFAULT_MMAP_THRESHOLD_MAX."""


def settle_heap() -> None:
    """Let this process keep what it frees, as one does that has worked for a while.

    glibc's malloc gives large blocks back to the kernel when they are freed, until one has taught it a higher limit
    (mallopt(3), M_MMAP_THRESHOLD). So a library that allocates in each call pays for page faults or does not, by what
    the process happened to do before. Limits set in the environment (``MALLOC_MMAP_THRESHOLD_``,
    ``MALLOC_TRIM_THRESHOLD_``) stay, and other allocators are not touched.
    """
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    libc.free(libc.malloc(_LEARNT))


def available_bytes() -> int:
    """Memory that this process may still take, in bytes: the machine's, or its control group's if less."""
    free = 1 << 62
    try:
        with open(f"{_ROOT}/proc/meminfo") as lines:
            free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except StopIteration:
        pass
    except OSError:
        free = os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            with open(_ROOT + limit) as most, open(_ROOT + used) as now:
                free = min(free, int(most.read()) - int(now.read()))
        except (OSError, ValueError):  # no such control group, or "max"
            continue
    return max(0, free)

"""Named buffers on a device, their mirrors on the host, which checks write and read; and arrays that hold them.

A mirror is there from when it is first asked for, so without checks there is none.
Whoever asks for one owns the bytes until the next run: :meth:`DeviceMemory.view` brings the device's bytes to the
host, :meth:`DeviceMemory.hand_over` takes what was handed out back to the device. Arrays of CuPy, PyTorch and Numba
show their address as ``__cuda_array_interface__`` does (CuPy and PyTorch on AMD GPUs, too).
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.devices import GATE, Device
from omb_py.engine.devices.registry import find_kind
from omb_py.engine.measuring.host_memory import HostMemory
from omb_py.errors import EnvironmentProblem

_PIP: Final = {
    "cupy": "pip install cupy-cuda13x (or cupy-cuda12x, cupy-rocm-7-0)",
    "torch": "PyTorch with the GPU's libraries (pytorch.org says from where)",
    "numba": "pip install numba-cuda",
}


class CudaArrayInterface(TypedDict):
    """Version 3 of the interface by which arrays of a GPU show themselves."""

    shape: tuple[int, ...]
    typestr: str
    data: tuple[int, bool]
    """Address, and whether it may only be read."""
    version: int
    strides: tuple[int, ...] | None


class DeviceArray(Protocol):
    """An array of a GPU, as CuPy, PyTorch and Numba show theirs."""

    __cuda_array_interface__: CudaArrayInterface


class PlainArray:
    """Elements at an address of a device as an array of a GPU shows itself."""

    def __init__(self, address: int, nbytes: int, dtype: str = "uint8") -> None:
        kind = np.dtype(dtype)
        self.__cuda_array_interface__: CudaArrayInterface = {
            "shape": (nbytes // kind.itemsize,),
            "typestr": kind.str,
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


def _cupy(nbytes: int, index: int) -> Any:
    cupy = import_module("cupy")
    with cupy.cuda.Device(index):
        return cupy.empty(nbytes, cupy.uint8)


def _torch(nbytes: int, index: int) -> Any:
    torch = import_module("torch")
    return torch.empty(nbytes, dtype=torch.uint8, device=f"cuda:{index}")


def _numba(nbytes: int, index: int) -> Any:
    cuda = import_module("numba.cuda")
    cuda.select_device(index)
    return cuda.device_array(nbytes, np.uint8)


_MAKERS: Final[Mapping[str, Callable[[int, int], DeviceArray]]] = {"cupy": _cupy, "torch": _torch, "numba": _numba}


def array(kind: str, device: Device, nbytes: int) -> DeviceArray:
    """An array of `nbytes` bytes on a device.

    Args:
        nbytes: its size in bytes, at least 1.

    Raises:
        EnvironmentProblem: the package is missing, does not know the device, or there is not enough memory.
    """
    if find_kind(device.kind).plain_arrays:
        return PlainArray(device.allocate(nbytes), nbytes)
    try:
        memory: DeviceArray = _MAKERS[kind](nbytes, device.index)
        address_of(memory)
    except ImportError as error:
        raise EnvironmentProblem(f"--buffer {kind} needs a package ({error}): {_PIP[kind]}") from None
    except Exception as error:  # each package has classes of its own
        raise EnvironmentProblem(
            f"--buffer {kind}: no {nbytes} B on {device.name} ({type(error).__name__}: {error}): "
            f"a smaller -m, or {_PIP[kind]}"
        ) from None
    return memory


def address_of(owner: DeviceArray) -> int:
    """Address at which an array starts on its device."""
    return int(owner.__cuda_array_interface__["data"][0])


def slice_array(owner: Any, start: int, stop: int, dtype: str) -> Any:
    """The bytes `start` to `stop` of an array of bytes, as elements of NumPy's type `dtype`."""
    if isinstance(owner, PlainArray):
        return PlainArray(address_of(owner) + start, stop - start, dtype)
    cut = owner[start:stop]
    if hasattr(cut, "data_ptr"):  # a tensor
        return cut.view(getattr(import_module("torch"), dtype))
    return cut.view(np.dtype(dtype))


class Mirrors(HostMemory):
    """Host memory beside the buffers of a device, each made when it is first asked for."""

    def __init__(self, places: Mapping[str, tuple[int, int]]) -> None:
        super().__init__("numpy")
        self._mirrored = places

    def view(self, name: str, nbytes: int) -> NDArray[np.uint8]:
        self.reserve(name, self._mirrored[name][1])
        return super().view(name, nbytes)

    def address(self, name: str) -> int:
        self.reserve(name, self._mirrored[name][1])
        return super().address(name)


class StagingMemory(HostMemory):
    """Host memory that a device reads and writes by itself: through pageable memory its copies would take longer."""

    def __init__(self, device: Device) -> None:
        super().__init__("numpy")
        self._device = device

    def reserve(self, name: str, nbytes: int) -> None:
        if name in self._places and self._places[name][1] < nbytes:
            self._free(name)
        super().reserve(name, nbytes)

    def _allocate(self, nbytes: int) -> tuple[ctypes.Array[ctypes.c_ubyte], int]:
        whole = max(nbytes, mmap.PAGESIZE)  # HIP gives a word in memory of another kind
        address = self._device.allocate_mapped(whole)
        return (ctypes.c_ubyte * whole).from_address(address), address

    def _free(self, name: str) -> None:
        self._device.call("synchronise", self._device.stream)
        self._views.pop(name, None)
        del self._owners[name]
        self._device.free(self._places.pop(name)[0])

    def close(self) -> None:
        for name in list(self._places):
            self._free(name)


class DeviceMemory:
    """Buffers that grow and are reused over a sweep, as ``HostMemory`` does on the host.

    Args:
        device: where they live.
        managed: host and device both use them.
        array: whose arrays hold them, one of :data:`omb_py.engine.program.buffers.ON_DEVICE`, or empty.
    """

    kind = "device"

    def __init__(self, device: Device, managed: bool = False, array: str = "") -> None:
        self.device, self._array = device, array
        self._managed = managed
        self._owners: dict[str, DeviceArray] = {}
        """The arrays that hold the buffers, where they are arrays."""
        self._places: dict[str, tuple[int, int]] = {}
        self.host = Mirrors(self._places)
        self._lent: dict[str, int] = {}
        """Bytes of each mirror that have been handed out since the last :meth:`hand_over`."""

    def reserve(self, name: str, nbytes: int) -> None:
        nbytes = max(1, nbytes)
        if name in self._places:
            address, size = self._places[name]
            if size >= nbytes:
                return
            self._synchronise()
            # forgotten first: if there is no memory for the larger buffer, the old one is gone as well
            del self._places[name]
            self._lent.pop(name, None)
            self._free(name, address)
        if name == GATE:  # the host has it as well, so there is no mirror
            self._places[name] = self.device.allocate_mapped(nbytes), nbytes
            return
        self._places[name] = address, _ = self._allocate(name, nbytes), nbytes
        # as memory of the host begins
        self.device.call("fill", address, 1 if name.startswith("send") else 0, nbytes, self.device.stream)
        self._synchronise()

    def _allocate(self, name: str, nbytes: int) -> int:
        if self._array:
            self._owners[name] = array(self._array, self.device, nbytes)
            return address_of(self._owners[name])
        return self.device.allocate_managed(nbytes) if self._managed else self.device.allocate(nbytes)

    def _free(self, name: str, address: int) -> None:
        owner = self._owners.pop(name, None)
        if owner is None or isinstance(owner, PlainArray):
            self.device.free(address)

    def address(self, name: str) -> int:
        """Address at which the buffer starts on the device."""
        return self._places[name][0]

    def owner(self, name: str) -> DeviceArray:
        """The array of bytes that the user's program would hold; a :class:`PlainArray` for memory of no package."""
        owner = self._owners.get(name)
        return PlainArray(*self._places[name]) if owner is None else owner  # an array has no truth value

    def view(self, name: str, nbytes: int) -> NDArray[np.uint8]:
        """The first `nbytes` bytes, on the host and writable until the next :meth:`hand_over`."""
        mirror = self.host.view(name, nbytes)
        fresh = self._lent.get(name, 0)
        if fresh < nbytes:
            missing = mirror[fresh:]
            self.device.call(
                "copy_out", missing.ctypes.data, self.address(name) + fresh, missing.nbytes, self.device.stream
            )
            self._synchronise()
            self._lent[name] = nbytes
        return mirror

    def hand_over(self) -> None:
        """Copy the mirrors that were handed out to the device; afterwards the device's bytes count."""
        for name, nbytes in self._lent.items():
            mirror = self.host.address(name)
            self.device.call("copy_in", self.address(name), mirror, nbytes, self.device.stream)
        if self._lent:
            self._synchronise()
        self._lent.clear()

    def _synchronise(self) -> None:
        self.device.call("synchronise", self.device.stream)

    def close(self) -> None:
        for name, (address, _) in self._places.items():
            self._free(name, address)
        self._places.clear()
        self._lent.clear()

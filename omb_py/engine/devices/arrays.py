"""Device memory as the user's program would hold it: arrays of CuPy, PyTorch or Numba, seen through one interface.

All three show their address as ``__cuda_array_interface__`` does (CuPy and PyTorch on AMD GPUs, too).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

import numpy as np

from omb_py.engine.devices import Device
from omb_py.engine.devices.registry import find_kind
from omb_py.errors import EnvironmentProblem

_PIP: Final = {
    "cupy": "pip install cupy-cuda13x (or cupy-cuda12x, cupy-rocm-7-0)",
    "torch": "PyTorch with the GPU's libraries (pytorch.org says from where)",
    "numba": "pip install numba-cuda",
}


class PlainArray:
    """Elements at an address of a device as an array of a GPU shows itself (version 3 of the interface)."""

    def __init__(self, address: int, nbytes: int, dtype: str = "uint8") -> None:
        kind = np.dtype(dtype)
        self.__cuda_array_interface__ = {
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


_MAKERS: Final[Mapping[str, Callable[[int, int], Any]]] = {"cupy": _cupy, "torch": _torch, "numba": _numba}


def array(kind: str, device: Device, nbytes: int) -> Any:
    """An array of `nbytes` bytes on a device.

    Args:
        kind: one of :data:`omb_py.engine.program.buffers.ON_DEVICE`.
        device: the device that holds it.
        nbytes: its size in bytes, at least 1.

    Raises:
        EnvironmentProblem: the package is missing, does not know the device, or there is not enough memory.
    """
    if find_kind(device.kind).plain_arrays:
        return PlainArray(device.allocate(nbytes), nbytes)
    try:
        memory = _MAKERS[kind](nbytes, device.index)
        address_of(memory)
    except ImportError as error:
        raise EnvironmentProblem(f"--buffer {kind} needs a package ({error}): {_PIP[kind]}") from None
    except Exception as error:  # each package has classes of its own
        raise EnvironmentProblem(
            f"--buffer {kind}: no {nbytes} B on {device.name} ({type(error).__name__}: {error}): "
            f"a smaller -m, or {_PIP[kind]}"
        ) from None
    return memory


def address_of(owner: Any) -> int:
    """Address at which an array starts on its device."""
    return int(owner.__cuda_array_interface__["data"][0])


def part(owner: Any, start: int, stop: int, dtype: str) -> Any:
    """The bytes `start` to `stop` of an array of bytes, as elements of NumPy's type `dtype`."""
    if isinstance(owner, PlainArray):
        return PlainArray(address_of(owner) + start, stop - start, dtype)
    cut = owner[start:stop]
    if hasattr(cut, "data_ptr"):  # a tensor
        return cut.view(getattr(import_module("torch"), dtype))
    return cut.view(np.dtype(dtype))

"""Named buffers on a device, each with a mirror on the host, which checks write and read.

Whoever asks for a mirror owns the bytes until the next run: :meth:`DeviceMemory.view` brings the device's bytes to the
host, :meth:`DeviceMemory.hand_over` takes what was handed out back to the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.devices import GATE, Device
from omb_py.engine.devices.arrays import PlainArray, address_of, array
from omb_py.engine.measuring.host_memory import HostMemory


class DeviceMemory:
    """Buffers that grow and are reused over a sweep, as ``HostMemory`` does on the host."""

    kind = "device"
    """Args of the constructor: the device; managed: host and device both use it; array: whose arrays hold the buffers,
    one of :data:`omb_py.engine.program.buffers.ON_DEVICE`, or empty."""

    def __init__(self, device: Device, managed: bool = False, array: str = "") -> None:
        self.device, self._array = device, array
        self._managed = managed
        self._owners: dict[str, Any] = {}
        """The arrays that hold the buffers, where they are arrays."""
        self.host = HostMemory("numpy")
        """The mirrors; when communication is staged, the memory that the library sees."""
        self._places: dict[str, tuple[int, int]] = {}
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
        self.host.reserve(name, nbytes)
        self._places[name] = self._allocate(name, nbytes), nbytes
        self._lent[name] = nbytes
        self.hand_over()

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

    def owner(self, name: str) -> Any:
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

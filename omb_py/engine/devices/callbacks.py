"""Python functions as C functions of int64 operands, which generated code can call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from omb_py.engine.devices import FUNCTIONS
from omb_py.errors import EnvironmentProblem

FAILED = 1


def store(address: int, value: int) -> None:
    """Write a word of 32 bits on the host, at once."""
    ctypes.c_uint32.from_address(address).value = value


class DeviceFunctions:
    """The functions of a device that is written in Python, by the names of :data:`~omb_py.engine.devices.FUNCTIONS`."""

    def __init__(self, **functions: Callable[..., object]) -> None:
        self.last_error = ""
        self._functions = {}
        for name, function in functions.items():
            kinds = [ctypes.c_int64] * len(FUNCTIONS[name].split())
            self._functions[name] = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(self._guarded(function))

    def _guarded(self, function: Callable[..., object]) -> Callable[..., int]:
        def guarded(*operands: int) -> int:
            try:
                function(*operands)
            except Exception as error:  # an exception cannot pass through C
                self.last_error = str(error)
                return FAILED
            return 0

        return guarded

    def address(self, name: str, kind: str) -> int:
        """Address of a function. Raises EnvironmentProblem when the device has none of that name."""
        if name not in self._functions:
            raise EnvironmentProblem(f"--device {kind} has no {name}: choose another --timing or --device")
        return ctypes.cast(self._functions[name], ctypes.c_void_p).value or 0

    def call(self, name: str, kind: str, operands: tuple[int, ...]) -> None:
        self.address(name, kind)
        if self._functions[name](*operands):
            raise EnvironmentProblem(f"device {kind}: {name} failed: {self.last_error}")

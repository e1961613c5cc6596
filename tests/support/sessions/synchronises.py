"""Leaving out one synchronise, as a careless change of the code would."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from omb_py.engine.devices.memory import DeviceMemory
from omb_py.engine.native.translate import NativeCall
from omb_py.engine.program.language import Step

OF_MEMORY = {"handed over": "hand_over", "free": "reserve", "read": "view"}
"""Waiting of :class:`DeviceMemory` -> the method that waits."""
_NOTHING = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)


@contextmanager
def left_out(which: str, resolver: Any) -> Iterator[None]:
    """While it holds, one synchronise is not done; `resolver` is the class that resolves steps of the backend."""
    usual, resolve = DeviceMemory._synchronise, resolver.__call__

    def synchronise(self: DeviceMemory) -> None:
        if sys._getframe(1).f_code.co_name != OF_MEMORY.get(which):
            usual(self)

    def call(self: Any, step: Step, *of_a_loop: Any) -> Any:
        if step.op == "synchronise" and step["why"] == which:
            return "pass" if of_a_loop else NativeCall(ctypes.cast(_NOTHING, ctypes.c_void_p).value or 0, ())
        return resolve(self, step, *of_a_loop)

    with patch.object(DeviceMemory, "_synchronise", synchronise), patch.object(resolver, "__call__", call):
        yield

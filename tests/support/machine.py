"""Running small native programs whose steps call C functions of the test's choice instead of MPI."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.native.translate import Arg, Machine, NativeCall, StageTable, assemble
from omb_py.engine.program.language import Node, Stage, Step, body

LIBC = ctypes.CDLL(None)


def libc(name: str) -> int:
    """Address of a function of the C library."""
    return ctypes.cast(getattr(LIBC, name), ctypes.c_void_p).value or 0


class Recorder:
    """A C function that notes its operands and returns what it is told: 0, or what `answer` gives for them."""

    def __init__(self, arity: int, answer: Callable[..., int] = lambda *args: 0) -> None:
        self.calls: list[tuple[int, ...]] = []

        def called(*args: int) -> int:
            self.calls.append(args)
            return answer(*args)

        self._keep = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * arity)(called)
        self.address = ctypes.cast(self._keep, ctypes.c_void_p).value or 0


def call(address: int, *args: int | Arg) -> Step:
    """A step that calls the function at `address`."""
    operands = tuple(arg if isinstance(arg, Arg) else Arg(arg) for arg in args)
    return Step("call", {"address": address, "args": operands})  # type: ignore[dict-item]


def resolve(step: Step) -> NativeCall:
    """The resolver of steps that :func:`call` made."""
    return NativeCall(step["address"], step["args"])


def table(stage: Stage, results: Any = None, address: int = 0) -> StageTable:
    """Assemble a stage; `address` is where a flip strikes."""
    return assemble(stage, resolve, lambda step: address, results or {})


def run(machine: Machine, nodes: Sequence[Node], iterations: int = 1, first: int = 0) -> NDArray[np.int64]:
    """Run a body and return its laps; fails when a step failed."""
    samples, failed = machine.run(table(Stage(body(*nodes))), first, iterations)
    assert failed == 0, f"step {failed - 1} returned {machine.word[3]}"
    return samples.table()

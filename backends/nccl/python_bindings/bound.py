"""A cell of the nccl backend as a flat Python loop: the common part of the Python bindings."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.nccl.runner import LoweredRunner
from omb_py.engine.devices import FUNCTIONS
from omb_py.engine.native.translate import Arg, NativeCall
from omb_py.engine.program.language import Program, Stage, Step
from omb_py.engine.python_loop.loop import CompiledLoop, Names, Objects, compile_stage, flip_in
from omb_py.engine.session import StepFailed

if TYPE_CHECKING:
    from omb_py.backends.nccl.calls import NcclResolver
    from omb_py.backends.nccl.session import NcclSession


class DeviceFailed(Exception):
    """A function of the device's library returned an error."""


def failed(code: int) -> None:
    """Raises DeviceFailed."""
    raise DeviceFailed(code)


class Binding:
    """A communicator that a Python package has made, and the renderer of its calls."""

    name: str
    statements: type[Statements]
    """The renderer of the steps of a cell."""
    comm: Any
    """The package's communicator."""
    version: str
    """Version of the package."""
    library_version: str
    """Version of the NCCL that it has loaded."""

    def has(self, op: str) -> bool:
        """Whether step `op` is one call here, although another version or binding needs several."""
        return False

    def async_error(self) -> tuple[int, str] | None:
        """The error that an operation met after its call had returned."""
        return None

    def abort(self) -> None:
        """End everything that still runs, and free the communicator."""
        self.comm.abort()

    def destroy(self) -> None:
        """Free the communicator."""
        self.comm.destroy()


class Statements:
    """Renders steps as Python statements (:data:`omb_py.engine.python_loop.loop.Render`): here those of the device.

    The device's own C functions are called through ctypes, whatever the binding.
    """

    def __init__(self, session: NcclSession, program: Program, resolver: NcclResolver, binding: Binding) -> None:
        self.session, self.resolver, self.binding = session, resolver, binding
        nbytes = {buffer.name: buffer.nbytes for buffer in program.buffers}
        self.objects = Objects(nbytes, max(stage.copies for stage in program.stages))
        self._handles = (ctypes.c_int64 * len(resolver.handles)).from_buffer(resolver.handles)
        self._functions: dict[tuple[int, int], object] = {}

    def prepared(self, stage: Stage) -> Stage:
        """The stage as this binding writes it."""
        return stage

    def __call__(self, step: Step, names: Names, k: str) -> str:
        if step.op == "flip":
            return flip_in(step, names, self.resolver.memory.host.view(step["recv"].buffer, sys.maxsize))
        if step.op not in FUNCTIONS:
            return self.communication(step, names, k)
        call = self.resolver(step)
        words = ", ".join(self.number(arg, names, k) for arg in call.args)
        return f"if e := {names.bind(self._function(call), step.op)}({words}): {names.bind(failed, 'failed')}(e)"

    def communication(self, step: Step, names: Names, k: str) -> str:
        """One statement for a step of the communication library."""
        raise NotImplementedError

    def number(self, arg: Arg, names: Names, k: str) -> str:
        """The source of an operand."""
        if arg.load:
            place = (arg.base - ctypes.addressof(self._handles)) // 8
            return f"{names.bind(self._handles, 'h')}[{place}]"
        moved = f" + {k} * {arg.stride}" if k and arg.stride else ""
        return f"{arg.base}{moved}" + (f" + c * {arg.turn}" if arg.turn else "")

    def _function(self, call: NativeCall) -> object:
        key = call.address, len(call.args)
        if key not in self._functions:
            kinds = [ctypes.c_int64] * len(call.args)
            self._functions[key] = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(call.address)
        return self._functions[key]


class NcclBoundRunner(LoweredRunner):
    """A flat Python loop of a binding's calls."""

    def __init__(self, session: NcclSession, program: Program, marks: Mapping[str, str], binding: Binding) -> None:
        super().__init__(session, program, marks)
        self.binding = binding
        self.statements = binding.statements(session, program, self.resolver, binding)
        self.thread = threading.get_ident()
        self._loop: CompiledLoop | None = None

    def once(self, stage: Stage) -> None:
        self.execute(stage, self.translated(stage, {}), 0, 1)

    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        self._loop = self.table = self.translated(stage, results)

    def translated(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> CompiledLoop:
        """The loop of a body."""
        self.resolver.results = results
        return compile_stage(self.statements.prepared(stage), self.statements, results)

    def execute(self, stage: Stage, table: CompiledLoop, first: int, iterations: int) -> NDArray[np.int64]:
        self._loop = table
        try:
            samples = table.run(first, iterations)
        except DeviceFailed as error:
            code, step = int(error.args[0]), table.failed_step(error)
            function = table.labels[step].partition(" ")[0]
            raise StepFailed(step, code, self.device_error(code, function)) from error
        except Exception as error:  # each package has its own class
            step = table.failed_step(error)
            self.session.raise_async(step)
            raise StepFailed(step, 0, f"{self.binding.version}: {_first_line(error)}") from error
        self.session.raise_async(0)
        return samples

    def position(self) -> tuple[int, int]:
        return self._loop.position(self.thread) if self._loop else (0, 0)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0] or type(error).__name__

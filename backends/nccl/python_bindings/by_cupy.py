"""Binding ``cupy``: the methods of ``cupy.cuda.nccl.NcclCommunicator``, which take addresses and counts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from omb_py.backends.nccl.calls import CALLS
from omb_py.backends.nccl.communicators import environment_of
from omb_py.backends.nccl.family import NCCL
from omb_py.backends.nccl.library import version_of
from omb_py.backends.nccl.python_bindings.bound import Binding, Statements
from omb_py.engine.program.language import Program, Step
from omb_py.engine.python_loop.loop import Names
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from omb_py.backends.nccl.calls import NcclResolver
    from omb_py.backends.nccl.options import Settings
    from omb_py.backends.nccl.session import NcclSession

METHODS: Final = {
    "allreduce": "allReduce",
    "reduce": "reduce",
    "bcast": "broadcast",
    "allgather": "allGather",
    "reduce_scatter_block": "reduceScatter",
    "send": "send",
    "recv": "recv",
    "barrier": "allReduce",
}
"""step -> method. Their operands are the C functions', without the communicator."""
GROUPS: Final = {"group_start": "groupStart", "group_end": "groupEnd"}


def why_unavailable() -> str:
    """Why CuPy offers no NCCL, with what to do: it hides the error of the import that failed."""
    try:
        import_module("cupy_backends.cuda.libs.nccl")
    except ImportError as error:
        return f"CuPy finds no NCCL ({error}): pip install nvidia-nccl-cu13 (or -cu12, as the driver)"
    return "this CuPy was built without NCCL"


class CupyStatements(Statements):
    """``allReduce(address, address, count, type, reduction, stream)``."""

    def __init__(self, session: NcclSession, program: Program, resolver: NcclResolver, binding: CupyBinding) -> None:
        super().__init__(session, program, resolver, binding)
        self._methods = {op: getattr(binding.comm, method) for op, method in METHODS.items()}
        self._methods |= {op: getattr(binding.nccl, function) for op, function in GROUPS.items()}

    def communication(self, step: Step, names: Names, k: str) -> str:
        words = [word for word in CALLS[step.op][1].split() if word != "comm"]
        numbers = (self.number(self.resolver.operand(word, step), names, k) for word in words)
        return f"{names.bind(self._methods[step.op], step.op)}({', '.join(numbers)})"


class CupyBinding(Binding):
    """A communicator of CuPy's, made together with all other ranks. Raises EnvironmentProblem."""

    name, statements = "cupy", CupyStatements

    def __init__(self, session: NcclSession, settings: Settings) -> None:
        self.nccl: object = import_module("cupy.cuda.nccl")
        self._library = session.nccl
        if not getattr(self.nccl, "available", True):
            raise EnvironmentProblem(f"binding cupy: {why_unavailable()}, or --binding native")
        # bytes since CuPy 14, a tuple of integers before: passed on as it is
        unique = session.share(self.nccl.get_unique_id() if session.rank == 0 else None)
        try:
            with environment_of(settings):
                self.comm = self.nccl.NcclCommunicator(session.size, unique, session.rank)
        except RuntimeError as error:
            raise EnvironmentProblem(f"NcclCommunicator failed: {error}: NCCL_DEBUG=WARN says more") from None
        self.version = f"cupy {import_module('cupy').__version__}"
        self.library_version = ".".join(map(str, version_of(int(self.nccl.get_version()))))

    def async_error(self) -> tuple[int, str] | None:
        try:
            self.comm.check_async_error()
        except KeyError as error:  # CuPy has no name for NCCL's newer codes
            code = int(error.args[0])
            if code == NCCL.in_progress:
                return None
        except RuntimeError as error:
            code = int(getattr(error, "status", 1))
        else:
            return None
        return code, f"{self.version}: {self._library.error_text(code)}"

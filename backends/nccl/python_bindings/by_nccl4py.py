"""Binding ``nccl4py``: the methods of ``nccl.core.Communicator``, which take CuPy's arrays."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from omb_py.backends.nccl.calls import OPS
from omb_py.backends.nccl.communicators import SCRATCH, environment_of
from omb_py.backends.nccl.lower import NEWER
from omb_py.backends.nccl.options import POLICIES
from omb_py.backends.nccl.python_bindings.bound import Binding, Statements
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Program, Region, Step
from omb_py.engine.python_loop.loop import Names
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from omb_py.backends.nccl.calls import NcclResolver
    from omb_py.backends.nccl.options import Settings
    from omb_py.backends.nccl.session import NcclSession

METHODS: Final = {
    "allreduce": ("allreduce", "send recv op"),
    "reduce": ("reduce", "send recv op root"),
    "bcast": ("broadcast", "buf buf root"),
    "allgather": ("allgather", "send recv"),
    "reduce_scatter_block": ("reduce_scatter", "send recv op"),
    "alltoall": ("alltoall", "send recv"),
    "gather": ("gather", "send recv root"),
    "scatter": ("scatter", "send recv root"),
    "send": ("send", "send peer"),
    "recv": ("recv", "recv peer"),
    "barrier": ("allreduce", "scratch scratch max"),
}
"""step -> (method, arguments before ``stream=``). Counts and types follow from the arrays."""
GROUPS: Final = ("group_start", "group_end")
NEWER_SINCE: Final = (2, 28)


class Nccl4pyStatements(Statements):
    """``allreduce(array, array, SUM, stream=…)``."""

    binding: Nccl4pyBinding

    def __init__(self, session: NcclSession, program: Program, resolver: NcclResolver, binding: Nccl4pyBinding) -> None:
        super().__init__(session, program, resolver, binding)
        core, comm = binding.core, binding.comm
        self._ops = {op: getattr(core, op.upper()) for op in OPS}
        self._methods = {op: getattr(comm, method) for op, (method, _) in METHODS.items() if hasattr(comm, method)}
        self._methods |= {op: getattr(core, op) for op in GROUPS}

    def communication(self, step: Step, names: Names, k: str) -> str:
        call = names.bind(self._methods[step.op], step.op)
        if step.op in GROUPS:
            return f"{call}()"
        words = [self._word(word, step, names, k) for word in METHODS[step.op][1].split()]
        return f"{call}({', '.join(words)}, stream={self.session.device.stream})"

    def _word(self, word: str, step: Step, names: Names, k: str) -> str:
        if word in ("op", "max"):
            return names.bind(self._ops["max" if word == "max" else step["op"]], "op")
        if word in ("root", "peer"):
            return str(step[word])
        region = Region(SCRATCH, 0, 1) if word == "scratch" else step[word]
        dtype = "char" if word == "scratch" else str(step["dtype"])
        return self.objects.text(region, (region, dtype), names, k, lambda at: self._array(at, dtype))

    def _array(self, region: Region, dtype: str) -> object:
        memory = self.session.memory
        return self.binding.array(memory.address(region.buffer) + region.offset, region.nbytes, dtype, memory)


class Nccl4pyBinding(Binding):
    """A communicator of nccl4py's, made together with all other ranks. Raises EnvironmentProblem."""

    name, statements = "nccl4py", Nccl4pyStatements

    def __init__(self, session: NcclSession, settings: Settings) -> None:
        try:
            self.core: Any = import_module("nccl.core")
        except ImportError as error:
            raise EnvironmentProblem(
                f"binding nccl4py cannot be imported ({error}): pip install nccl4py[cu13]"
            ) from None
        self._cupy: Any = import_module("cupy")
        unique = session.share(bytes(self.core.get_unique_id()) if session.rank == 0 else None)
        try:
            unique_id = self.core.UniqueId.from_bytes(unique)
            with environment_of(settings):
                self.comm = self.core.Communicator.init(
                    session.size, session.rank, unique_id, config=self.config(settings)
                )
        except Exception as error:  # of its bindings' own class
            raise EnvironmentProblem(f"Communicator.init failed: {error}: NCCL_DEBUG=WARN says more") from None
        self.version = f"nccl4py {self.core.__version__}"
        loaded = self.core.get_version().libnccl
        self.library_version = str(loaded.version) if loaded else "of unknown version"

    def config(self, settings: Settings) -> Any:
        """The communicator's configuration; None where NCCL's own holds."""
        values: dict[str, Any] = {"min_ctas": settings.min_ctas, "max_ctas": settings.limit}
        if settings.cta_policy:
            values["cta_policy"] = self.core.CTAPolicy(POLICIES.index(settings.cta_policy))
        values = {name: value for name, value in values.items() if value or name == "cta_policy"}
        return self.core.NCCLConfig(**values) if values else None

    def has(self, op: str) -> bool:
        """alltoall, gather and scatter, where the library is new enough."""
        number = tuple(int(part) for part in self.library_version.split(".")[:2] if part.isdigit())
        return op in NEWER and number >= NEWER_SINCE and hasattr(self.comm, METHODS[op][0])

    def array(self, address: int, nbytes: int, dtype: str, owner: object) -> Any:
        """A CuPy array of `dtype` over `nbytes` bytes of memory that `owner` keeps."""
        memory = self._cupy.cuda.UnownedMemory(address, max(1, nbytes), owner)
        kind = DTYPES[dtype]
        return self._cupy.ndarray((nbytes // kind.itemsize,), kind.numpy, self._cupy.cuda.MemoryPointer(memory, 0))

    def async_error(self) -> tuple[int, str] | None:
        code = int(self.comm.get_async_error())
        if code in (0, 7):  # success, in progress
            return None
        return code, f"{self.version}: {self.core.get_error_string(code)}: {self.comm.get_last_error()}"

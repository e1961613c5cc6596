"""A team of UCC with all ranks of a launch, on host memory, and the runner of its cells."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from omb_py import __version__
from omb_py.backends.nccl.plane import PlaneSession, plane_without_mpi
from omb_py.backends.ucc.calls import UccResolver
from omb_py.backends.ucc.library import NAME, Teams, load
from omb_py.engine.measuring.host_memory import HostMemory, reserve
from omb_py.engine.native.translate import Machine
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.language import Program
from omb_py.engine.python_loop.runners import NativeRunner
from omb_py.engine.rank.link import LaunchSpec
from omb_py.engine.rank.node_name import node_name


class UccRunner(NativeRunner):
    """A cell, ready to run: generated code calls the library's own functions."""

    session: UccSession

    def begin(self) -> None:
        self.resolver = UccResolver(self.session.ucc, self.session.teams, self.memory_, self.program)

    def error_text(self, code: int, label: str) -> str:
        return self.session.ucc.error_text(code)


class UccSession(PlaneSession):
    """All processes of the launch as one team. What UCC exchanges until then goes over the control plane."""

    backend, library = "ucc", NAME
    binding_version = f"omb-py {__version__}"
    _runner: UccRunner | None = None

    def __init__(self, spec: LaunchSpec) -> None:
        began = time.perf_counter_ns()
        self._meet(plane_without_mpi(spec))  # an MPI may have a UCX of its own, and a process has one
        self.ucc = load()
        self.hosts: tuple[str, ...] = tuple(self.share(self.gather(node_name(spec))))
        self.library_version = self.ucc.version
        self.teams = Teams(self.ucc, self.rank, self.size, self._everybodys)
        self.started = {"init": {self.rank: (time.perf_counter_ns() - began) / 1000}}
        self._memory: dict[str, HostMemory] = {}
        self.machine = Machine()

    def _everybodys(self, own: bytes) -> Sequence[bytes]:
        return self.share(self.gather(own))

    def reserve(self, kind: str, sizes: Mapping[str, int]) -> None:
        reserve(self._memory, kind, sizes)

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> UccRunner:
        program = programs[self.rank]
        self.reserve(cell.buffer, {buffer.name: buffer.nbytes for buffer in program.buffers})
        self.teams.make(self.groups_of_all(program))
        self._runner = UccRunner(self, program, self._memory[cell.buffer])
        return self._runner

    def close(self) -> None:
        self._runner = None
        self._plane.barrier()
        self.teams.close()
        self.ucc.close()
        self._plane.close()

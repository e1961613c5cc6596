"""A communicator of oneCCL ranks on host memory: NCCL's calls, done when they return."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from omb_py import __version__
from omb_py.backends.nccl.calls import check_function
from omb_py.backends.nccl.communicators import Communicators
from omb_py.backends.nccl.library import load
from omb_py.backends.nccl.lower import lowered
from omb_py.backends.nccl.options import Settings
from omb_py.backends.nccl.plane import PlaneSession, plane
from omb_py.backends.nccl.runner import NcclRunner
from omb_py.backends.oneccl.lower import DIRECT, HostLowering
from omb_py.engine.devices.buffers import HereMemory
from omb_py.engine.devices.registry import HOST
from omb_py.engine.native.translate import Machine
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import Program, all_steps
from omb_py.engine.rank.link import LaunchSpec
from omb_py.engine.rank.node_name import node_name

MEANT: Mapping[str, str] = {"0": "calling thread", "1": "worker threads"}
"""Values of CCL_WORKER_OFFLOAD -> who does the work."""


@contextmanager
def kept_from_stdout() -> Iterator[None]:
    """Keep what the library prints when it starts off stdout, where a table may be.

    Its warnings are about variables that are set here, so they are dropped unless the user asks for them; all else goes
    to stderr.
    """
    before = os.dup(1)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 1)
        try:
            yield
        finally:
            ctypes.CDLL(None).fflush(None)
            os.dup2(before, 1)
            os.close(before)
            said.seek(0)
            lines = said.read().decode(errors="replace").splitlines(keepends=True)
            wanted = "CCL_LOG_LEVEL" in os.environ
            sys.stderr.writelines(line for line in lines if wanted or "|CCL_WARN|" not in line)


class HostBuffers(HereMemory):
    """Buffers that the library reads and writes where they are."""

    @property
    def host(self) -> HostBuffers:
        """What a device has as mirrors."""
        return self


class NoStream:
    """The place of a device for calls on the host: they take no stream."""

    kind = HOST
    stream = 0

    def new_stream(self) -> int:
        """No stream, for a further communicator too."""
        return 0


class OnecclSession(PlaneSession):
    """All processes of the launch as one communicator; the library is loaded before they meet."""

    backend = "oneccl"
    binding_version = f"omb-py {__version__}"
    _runner: NcclRunner | None = None

    def __init__(self, spec: LaunchSpec) -> None:
        with kept_from_stdout():
            self.nccl = load(HOST)
        self.device: Any = NoStream()
        began = time.perf_counter_ns()
        self._meet(plane())
        self.hosts: tuple[str, ...] = tuple(self.share(self.gather(node_name(spec))))
        self.library, self.library_version = self.nccl.name, self.nccl.version_text
        self.comms = Communicators(self, memory=HostBuffers("numpy"))
        with kept_from_stdout():
            self.comms.make()
        self.started = {"init": {self.rank: (time.perf_counter_ns() - began) / 1000}}
        self.machine = Machine()

    def limited(self, settings: Settings) -> Settings:
        """The settings as they are: no rank shares a GPU."""
        return settings

    def check_cells(self, cells: Sequence[Cell], benchmarks: Mapping[str, Benchmark]) -> None:
        world = World(self.rank, self.size, self.hosts)
        for cell in cells:
            benchmark = benchmarks[cell.benchmark]
            if benchmark.once:
                continue
            for step in all_steps(self._lowered(benchmark.program(world, cell))[0]):
                check_function(step, self.nccl)

    def _lowered(self, program: Program) -> tuple[Program, str]:
        world = World(self.rank, self.size, self.hosts)
        return lowered(program, world, DIRECT.__contains__, HostLowering)

    def reserve(self, kind: str, sizes: Mapping[str, int]) -> None:
        for name, nbytes in sizes.items():
            self.comms.memory.reserve(name, nbytes)

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> NcclRunner:
        program = programs[self.rank]
        self.reserve(cell.buffer, {buffer.name: buffer.nbytes for buffer in program.buffers})
        translated, calls = self._lowered(program)
        self.comms.make_groups(self.groups_of_all(translated))
        word = os.environ.get("CCL_WORKER_OFFLOAD", "1")
        marks = {"ccl_worker": MEANT.get(word, word)} | ({"calls": calls} if calls else {})
        self._runner = NcclRunner(self, translated, marks, self.comms)
        return self._runner

    def events(self) -> tuple[int, int]:
        """No events: nothing is timed on a device."""
        return 0, 0

    def tuning(self) -> dict[str, str]:
        """No log is read."""
        return {}

    def raise_async(self, step: int) -> None:
        """Nothing fails after a call has returned."""

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()
        self._plane.barrier()
        self._runner = None
        self.comms.destroy()
        self._plane.close()

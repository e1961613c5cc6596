"""A communicator of NCCL ranks, one device each."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omb_py import __version__
from omb_py.backends.nccl.calls import SCRATCH, check_types
from omb_py.backends.nccl.library import SHARED_GPU_SINCE, Library, load
from omb_py.backends.nccl.lower import lowered
from omb_py.backends.nccl.plane import plane
from omb_py.backends.nccl.runner import NcclRunner
from omb_py.engine.benchmark import Benchmark, Cell, World
from omb_py.engine.devices import local_rank, open_device, place_of
from omb_py.engine.devices.filler import on_device
from omb_py.engine.devices.memory import DeviceMemory
from omb_py.engine.native import Machine
from omb_py.engine.program import Program, Step, walk
from omb_py.engine.session import OneRank, StepFailed
from omb_py.engine.timing import captured
from omb_py.errors import EnvironmentProblem

LOOK_S: Final = 0.2
"""How often the library is asked for errors that came after a call had returned."""


class NcclSession(OneRank):
    """Implements :class:`omb_py.engine.session.Session`.

    The device is chosen first, by the launcher's local rank, before MPI or NCCL start.
    """

    backend, binding, thread_level = "nccl", "native", "single"
    binding_version = f"omb-py {__version__}"

    def __init__(self, spec: Mapping[str, Any]) -> None:
        kind, share = str(spec.get("device") or "cuda"), bool(spec.get("share_device"))
        self.nccl: Library = load(kind)
        self.device = open_device(kind, local_rank(), share)
        self.device.attach(self.nccl.handle)
        began = time.perf_counter_ns()
        self._plane = plane()
        self.size, self.rank = self._plane.size, self._plane.rank
        self.local: tuple[int, ...] = (self.rank,)
        mine = place_of(self.device, self.rank, socket.gethostname())
        self.places: list[dict[str, Any]] = self.share(self._plane.gather(mine))
        """Which device each rank has."""
        self.hosts: tuple[str, ...] = tuple(str(place["host"]) for place in self.places)
        self.device_name: str = self.device.name
        self.ranks_per_device = _crowd(self.places)
        self.library, self.library_version = self.nccl.name, self.nccl.version_text
        self._prepare(share)
        unique: bytes = self.share(self.nccl.unique_id() if self.rank == 0 else None)
        self.nccl_comm = self.nccl.init_rank(self.size, unique, self.rank)
        init_us = (time.perf_counter_ns() - began) / 1000
        self.started: Mapping[str, Mapping[int, float]] = {"init": {self.rank: init_us}}
        self.memory = DeviceMemory(self.device)
        self.memory.reserve(SCRATCH, 1)
        self.machine = Machine()
        self._events: tuple[int, int] | None = None
        self._runner: NcclRunner | None = None
        self._failed: tuple[int, str] | None = None
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, name="omb-nccl-errors", daemon=True)
        self._watch.start()

    def _prepare(self, share: bool) -> None:
        """Several ranks on one device: refuse, or set what NCCL wants for it."""
        if self.ranks_per_device == 1:
            return
        if not share:
            raise EnvironmentProblem(
                f"{self.ranks_per_device} ranks would share {self.device.name}: fewer ranks, or --share-device "
                "(rows are labelled)"
            )
        if self.device.kind == "cuda":
            os.environ.update(shared_gpu(self.nccl.version, self.rank))

    def check_cells(self, cells: Sequence[Cell], benchmarks: Mapping[str, Benchmark]) -> None:
        """Raises EnvironmentProblem, on every rank alike and before anything is allocated, for what NCCL lacks."""
        world = World(self.rank, self.size, self.hosts)
        for cell in cells:
            benchmark = benchmarks[cell.benchmark]
            if benchmark.once:
                continue
            program, _ = lowered(benchmark.program(world, cell), world, self.nccl.has)
            for stage in program.stages:
                for part in (stage.setup, *stage.variants, stage.teardown):
                    for node, _ in walk(part):
                        if isinstance(node, Step):
                            check_types(node, self.nccl)

    def memory_left(self) -> int:
        """Bytes of the device that this rank may take."""
        return self.device.memory_left() // self.ranks_per_device

    def reserve(self, kind: str, sizes: Mapping[str, int]) -> None:
        """Allocate buffers for a whole sweep."""
        for name, nbytes in sizes.items():
            self.memory.reserve(name, nbytes)

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> NcclRunner:
        """Allocate, lower and translate the program of this rank."""
        program = on_device(programs[self.rank], cell.filler)
        self.reserve("", {buffer.name: buffer.nbytes for buffer in program.buffers})
        made, grouped = lowered(program, World(self.rank, self.size, self.hosts), self.nccl.has)
        if cell.timing == "graph":
            made = replace(made, stages=tuple(captured(stage) for stage in made.stages))
        filler = {} if cell.filler == "cpu" else {"filler": cell.filler}
        marks = filler | {"timing_mode": cell.timing or "isolated", "ranks_per_device": str(self.ranks_per_device)}
        if grouped:
            marks["calls"] = "grouped ncclSend and ncclRecv"
        self._runner = NcclRunner(self, made, marks)
        return self._runner

    def events(self) -> tuple[int, int]:
        """Two events, made once."""
        if self._events is None:
            self._events = self.device.event(), self.device.event()
        return self._events

    def raise_async(self, step: int) -> None:
        """Raises StepFailed when the library has met an error after a call had returned."""
        if self._failed is not None:
            code, text = self._failed
            raise StepFailed(step, code, text)

    def _look(self) -> None:
        """Find errors that no call returns; aborting lets a synchronise that waits for a dead peer return."""
        while not self._over.wait(LOOK_S):
            code = self.nccl.async_error(self.nccl_comm)
            if code:
                self._failed = code, self.nccl.error_text(code, self.nccl_comm)
                self.nccl.abort(self.nccl_comm)
                return

    def barrier(self) -> None:
        """Wait for all ranks, on the host."""
        self._plane.barrier()

    def maximum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise maximum over ranks."""
        return self._plane.maximum(values)

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise sum over ranks."""
        return self._plane.total(values)

    def gather(self, value: Any) -> list[Any]:
        """One object of each rank, on rank 0."""
        return self._plane.gather(value)

    def share(self, value: Any) -> Any:
        """Rank 0's object, everywhere."""
        return self._plane.share(value)

    def skew(self, kind: str = "barrier") -> float | None:
        """Not measured: NCCL has no barrier of its own."""
        return None

    def close(self) -> None:
        """Free the communicator, the buffers and the device."""
        self._over.set()
        self._watch.join()
        self._plane.barrier()
        if self._failed is None:
            self.nccl.destroy(self.nccl_comm)
        self.memory.close()
        self.device.close()
        self._plane.close()


def shared_gpu(version: tuple[int, int, int], rank: int) -> dict[str, str]:
    """Variables by which NCCL lets ranks share a GPU: its own switch, or before 2.30 a machine of its own for each.

    Where the user has set one, that stays.
    """
    if version >= SHARED_GPU_SINCE:
        wanted = {"NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_NVLS_ENABLE": "0", "NCCL_MAX_CTAS": "2"}
    else:
        wanted = {"NCCL_HOSTID": f"omb-py-{rank}"}
    return {name: os.environ.get(name, value) for name, value in wanted.items()}


def _crowd(places: Sequence[Mapping[str, Any]]) -> int:
    """The most ranks that have the same device."""
    devices = [(place["host"], place["identity"]) for place in places]
    return max(devices.count(device) for device in devices)

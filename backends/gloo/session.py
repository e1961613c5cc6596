"""A process group of Gloo, one rank a process."""

from __future__ import annotations

import gc
import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from omb_py.backends.gloo.capabilities import FIX, LIBRARY, interfaces
from omb_py.backends.gloo.errors import first_line, peers_speak_first
from omb_py.backends.gloo.rendezvous import WORKING, rank_and_size, store
from omb_py.backends.mpi.clocks import measured_skew
from omb_py.engine.devices import Device
from omb_py.engine.devices.registry import open_device
from omb_py.engine.measuring.host_memory import HostMemory, reserve
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.groups import Group
from omb_py.engine.program.language import Program, Step
from omb_py.engine.rank.launcher_variables import local_rank
from omb_py.engine.rank.link import LaunchSpec
from omb_py.engine.rank.node_name import node_name
from omb_py.engine.rank.plain_values import decode, encode
from omb_py.engine.rank.start_times import now_ns, process_start_ns
from omb_py.engine.samples import Values, returned
from omb_py.engine.session import Session, T
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

    from omb_py.backends.gloo.runner import GlooRunner
    from omb_py.engine.devices.buffers import DeviceBuffers


def load() -> ModuleType:
    """torch.distributed with Gloo. Raises EnvironmentProblem."""
    try:
        import torch.distributed as dist
    except ImportError as error:
        raise EnvironmentProblem(f"Gloo comes with PyTorch, which cannot be imported ({error}): {FIX}") from None
    if not dist.is_available() or not dist.is_gloo_available():
        raise EnvironmentProblem(f"this PyTorch was built without Gloo: {FIX}")
    return dist


class GlooSession(Session):
    """All processes of the launch as one group, and a second group for the engine's own traffic."""

    backend, binding = "gloo", "torch"
    _runner: GlooRunner | None = None

    def __init__(self, spec: LaunchSpec) -> None:
        self.dist = load()
        import torch

        self.torch = torch
        self.rank, self.size = rank_and_size(os.environ, int(spec.get("ranks") or 1))
        kind = str(spec.get("device") or "cpu")
        device = open_device(kind, local_rank(os.environ)) if kind != "cpu" else None
        began = time.perf_counter_ns()
        self._join(spec)
        init_us = (time.perf_counter_ns() - began) / 1000
        with peers_speak_first():
            self.dist.barrier()
        hello_us = (now_ns() - (spec.get("launched_at") or process_start_ns())) / 1000
        self.comm = self.traffic = GlooTraffic(self.dist, torch, self.rank)
        self.local: tuple[int, ...] = (self.rank,)
        self.started: Mapping[str, Mapping[int, float]] = {"init": {self.rank: init_us}, "hello": {self.rank: hello_us}}
        host = node_name(spec)
        self.hosts: tuple[str, ...] = tuple(self.share(self.gather(host)))
        self.thread_level: str = spec.get("thread_level") or "funneled"
        self.library, self.library_version = LIBRARY, str(torch.__version__)
        self.library_string = f"Gloo of torch {torch.__version__} over TCP"
        self.binding_version = f"torch {torch.__version__}"
        self._memory: dict[str, HostMemory] = {}
        self.groups: dict[Group, dist.ProcessGroup] = {}
        """Process groups of some ranks, made when a program needs them."""
        placement, share = str(spec.get("placement") or ""), bool(spec.get("share_device"))
        self.buffers = self._make_device_buffers(device, placement, share) if device else None

    def _make_device_buffers(self, device: Device, placement: str, share: bool = False) -> DeviceBuffers:
        from omb_py.backends.gloo.devices import check_torch
        from omb_py.engine.devices.buffers import DeviceBuffers, crowd, places_of
        from omb_py.engine.devices.placement import place_of_rank

        check_torch(device)
        self.device_name, self.cache_bytes = device.name, device.cache_bytes
        self.places = places_of(self, device, share, self.hosts[self.rank])
        self.device_note = "Gloo moves what is on a device through host memory: copies are part of the time"
        word = place_of_rank(placement, self.rank, self.size)
        return DeviceBuffers(device, False, placement, word, crowd(self.places))

    def _join(self, spec: LaunchSpec) -> None:
        meeting = store(self.rank, self.size, spec, os.environ)
        try:
            self.dist.init_process_group("gloo", rank=self.rank, world_size=self.size, store=meeting, timeout=WORKING)
        except (RuntimeError, ValueError) as error:
            chosen = os.environ.get("GLOO_SOCKET_IFNAME")
            hint = f"GLOO_SOCKET_IFNAME={chosen}" if chosen else "GLOO_SOCKET_IFNAME chooses one"
            raise EnvironmentProblem(
                f"Gloo cannot connect the ranks: {first_line(error)} (interfaces of {socket.gethostname()}: "
                f"{', '.join(interfaces())}; {hint})"
            ) from error

    def reserve(self, kind: str, sizes: Mapping[str, int]) -> None:
        if self.buffers:
            self.buffers.reserve(kind, sizes)
            return
        reserve(self._memory, kind, sizes)

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> GlooRunner:
        program = programs[self.rank]
        self._make_groups(self.groups_of_all(program))
        self.reserve(cell.buffer, {b.name: b.nbytes for b in program.buffers})
        if self.buffers:
            from omb_py.backends.gloo.devices import GlooDeviceRunner

            self._runner = GlooDeviceRunner(self, program, self.buffers, cell)
        else:
            from omb_py.backends.gloo.runner import GlooRunner

            self._runner = GlooRunner(self, program, self._memory[cell.buffer])
        return self._runner

    def _make_groups(self, groups: Sequence[Group]) -> None:
        """Process groups of some ranks: torch.distributed wants all ranks to make each, in one order.

        Its way for the members alone hangs where groups overlap.
        """
        for group in groups:
            if group not in self.groups:
                self.groups[group] = self.dist.new_group(list(group), timeout=WORKING)

    def comm_of(self, step: Step) -> None:
        """Every step runs on the group of all ranks."""
        return None

    def barrier(self) -> None:
        with peers_speak_first():
            self.dist.barrier(self.comm.group)

    def guard(self) -> AbstractContextManager[None]:
        return peers_speak_first()

    def maximum(self, values: Values) -> Values:
        return self.comm.reduced(values, self.dist.ReduceOp.MAX)

    def total(self, values: Values) -> Values:
        return self.comm.reduced(values, self.dist.ReduceOp.SUM)

    def gather(self, value: T) -> list[T]:
        return self.traffic.gather(value)

    def share(self, value: T) -> T:
        return self.traffic.bcast(value)

    def skew(self, kind: str = "barrier") -> float:
        return measured_skew(self, kind)

    def close(self) -> None:
        """Leave both groups, and end their threads.

        A group's threads live as long as anything refers to it. One that lets go of a finished operation's tensor while
        the interpreter is ending would abort the process, so nothing may refer to a group after this.
        """
        if self.buffers:
            self.buffers.close()
        self._runner = None
        self.groups.clear()
        self.comm.group = None
        self.dist.destroy_process_group()
        gc.collect()


class GlooTraffic:
    """The engine's own messages, on a group of their own: they never meet the benchmark's."""

    def __init__(self, dist: ModuleType, torch: ModuleType, rank: int) -> None:
        self.dist, self.torch, self.rank = dist, torch, rank
        self.group = dist.new_group(timeout=WORKING)

    def reduced(self, values: Values, op: dist.ReduceOp) -> Values:
        """Reduce `values` element-wise over ranks."""
        result = np.array(values)
        if result.size:
            with peers_speak_first():
                self.dist.all_reduce(self.torch.from_numpy(result), op, self.group)
        return returned(values, result)

    def gather(self, value: T) -> list[T]:
        """One value of each rank on rank 0, elsewhere an empty list.

        As JSON in tensors of one size: PyTorch's gather_object would unpickle what comes over the network.
        """
        data = encode(value)
        sizes = self.torch.zeros(self.dist.get_world_size(), dtype=self.torch.int64)
        sizes[self.rank] = len(data)
        with peers_speak_first():
            self.dist.all_reduce(sizes, group=self.group)
            padded = self.torch.zeros(int(sizes.max()), dtype=self.torch.uint8)
            padded[: len(data)] = self._tensor(data)
            parts = [self.torch.empty_like(padded) for _ in sizes] if self.rank == 0 else None
            self.dist.gather(padded, parts, 0, self.group)
        if parts is None:
            return []
        return [decode(part[:size].numpy().tobytes()) for part, size in zip(parts, sizes.tolist(), strict=True)]

    def bcast(self, value: T) -> T:
        """Rank 0's value."""
        data = encode(value) if self.rank == 0 else b""
        size = self.torch.tensor([len(data)], dtype=self.torch.int64)
        with peers_speak_first():
            self.dist.broadcast(size, 0, self.group)
            box = self._tensor(data) if self.rank == 0 else self.torch.empty(int(size), dtype=self.torch.uint8)
            self.dist.broadcast(box, 0, self.group)
        return value if self.rank == 0 else decode(box.numpy().tobytes())

    def _tensor(self, data: bytes) -> torch.Tensor:
        tensor: torch.Tensor = self.torch.from_numpy(np.frombuffer(data, np.uint8).copy())
        return tensor

    def send(self, value: int, rank: int, tag: int) -> None:
        """A number to a rank."""
        self.dist.send(self.torch.tensor([value]), rank, self.group, tag)

    def recv(self, source: int, tag: int) -> int:
        """The number that a rank sent."""
        box = self.torch.zeros(1, dtype=self.torch.int64)
        self.dist.recv(box, source, self.group, tag)
        return int(box[0])

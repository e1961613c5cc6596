"""A communicator of real MPI processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import mpi4py

from omb_py.backends import mpi_values
from omb_py.backends.mpi.runners import BoundRunner, MpiNativeRunner
from omb_py.backends.mpi.start import allow_forks, initialise, initialise_session, thread_level, vendor
from omb_py.engine.measuring.host_memory import HostMemory
from omb_py.engine.measuring.process_sync import START, START_BYTES
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.engine.program.buffers import OBJECT
from omb_py.engine.program.groups import Group, duplicate_of, duplicates_of, group_of, groups_of
from omb_py.engine.program.language import Edges, Program, Step
from omb_py.engine.program.requirements import types_of
from omb_py.engine.rank.link import LaunchSpec
from omb_py.engine.rank.node_name import node_name
from omb_py.engine.rank.start_times import now_ns, process_start_ns
from omb_py.engine.session import Session
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from mpi4py import MPI

    from omb_py.backends.mpi.aware import Support
    from omb_py.backends.mpi.tools.interface import Counters
    from omb_py.engine.devices import Device
    from omb_py.engine.devices.buffers import DeviceBuffers
    from omb_py.engine.native.translate import Machine

_NAP_S = 5e-4


class MpiSession(mpi_values.MpiAgreement, Session):
    """The world communicator, one rank a process."""

    backend = "mpi"
    _runner: MpiNativeRunner | BoundRunner | None = None
    _proved: Support | None = None
    """What the library does with buffers of the device, where this rank has asked."""

    def __init__(self, spec: LaunchSpec) -> None:
        if spec.get("fork"):
            allow_forks()
        kind = str(spec.get("device") or "cpu")
        # before MPI: some libraries look for the current device when they start
        device = None if kind == "cpu" else self._open_device(kind)
        level = spec.get("thread_level") or "funneled"
        self._session: MPI.Session | None = None
        self.world: MPI.Intracomm
        if spec.get("session"):
            self.mpi, self._session, self.world, init_us = initialise_session(level)
        else:
            self.mpi, init_us = initialise(level)
            self.world = self.mpi.COMM_WORLD
        self.world.Barrier()
        hello_us = (now_ns() - (spec.get("launched_at") or process_start_ns())) / 1000
        # the engine's own traffic: its tags can never meet the benchmark's. After a session it has a world of its own,
        # and needs MPI_COMM_WORLD for it
        initialise(level)
        self.comm = self.mpi.COMM_WORLD.Dup()
        self.traffic = mpi_values.MpiTraffic(self.comm)
        self.size: int = self.world.Get_size()
        self.rank: int = self.world.Get_rank()
        self.local: tuple[int, ...] = (self.rank,)
        self.started: Mapping[str, Mapping[int, float]] = {"init": {self.rank: init_us}, "hello": {self.rank: hello_us}}
        host = node_name(spec)
        self.hosts: tuple[str, ...] = tuple(self.share(self.gather(host)))
        self.thread_level = thread_level(self.mpi)
        self.library, self.library_version = vendor(self.mpi)
        self.standard = ".".join(map(str, self.mpi.Get_version()))
        self.binding_version = f"mpi4py {mpi4py.__version__}"
        self._memory: dict[str, HostMemory] = {}
        placement, share = str(spec.get("placement") or ""), bool(spec.get("share_device"))
        self.buffers = self._make_device_buffers(device, placement, share) if device else None
        self._machine: Machine | None = None
        self._counters: Counters | None = None
        self._graphs: dict[tuple[str, Edges], MPI.Intracomm] = {}
        self._groups: dict[Group, MPI.Intracomm] = {}
        self._duplicates: dict[tuple[Group, int], MPI.Intracomm] = {}
        self._topology_us: dict[tuple[str, Edges], float] = {}
        """Time in µs that this rank took to make the communicator of a graph."""
        self._neighborhood = ""

    def _open_device(self, kind: str) -> Device:
        """The device of this rank. It may admit one process, so whether MPI takes its buffers is asked before."""
        from omb_py.backends.mpi.aware import answer_at_once, probe  # ranks on host memory load none of it
        from omb_py.engine.devices.registry import open_device
        from omb_py.engine.rank.launcher_variables import local_rank

        local = local_rank(os.environ)
        if local == 0 and answer_at_once("", kind) is None:
            self._proved = probe(kind)
        return open_device(kind, local)

    def _make_device_buffers(self, device: Device, placement: str, share: bool = False) -> DeviceBuffers:
        from omb_py.backends.mpi.aware import Support, answer_at_once
        from omb_py.engine.devices.buffers import DeviceBuffers, crowd, places_of
        from omb_py.engine.devices.placement import place_of_rank

        self.places = places_of(self, device, share, self.hosts[self.rank])
        answer = answer_at_once(self.library, device.kind) or self._proved
        of_nodes = [one for one in self.gather(asdict(answer) if answer else None) if one]
        # one node that stages is enough: its peers would send to what it has on the host
        of_all = self.share(next((one for one in of_nodes if not one["aware"]), next(iter(of_nodes), None)))
        self.support = support = Support(**of_all) if of_all else Support(False, "", "no rank has asked the library")
        self.device_name, self.cache_bytes = device.name, device.cache_bytes
        self.device_note = "" if support.aware else f"staged through host memory: {support.reason}: {support.fix}"
        word = place_of_rank(placement, self.rank, self.size)
        return DeviceBuffers(device, support.aware, placement, word, crowd(self.places))

    def check_cells(self, cells: Sequence[Cell], benchmarks: Mapping[str, Benchmark]) -> None:
        if self.buffers:
            from omb_py.backends.mpi.devices import check

            check(cells, self.support)

    def lacks(self, programs: Iterable[Program]) -> str:
        """Why this library cannot run one of these programs: it has no such type; empty where it can."""
        from omb_py.backends.mpi.types import datatype

        for name in (name for program in programs for name in types_of(program)):
            try:
                datatype(name)
            except EnvironmentProblem as problem:
                return str(problem)
        return ""

    @property
    def machine(self) -> Machine:
        """The machine that runs native programs, loaded when first used."""
        if self._machine is None:
            from omb_py.backends.mpi.calls import address_of
            from omb_py.engine.native.translate import Machine

            self._machine = Machine(address_of("MPI_Wtime"))
        return self._machine

    def reserve(self, kind: str, sizes: Mapping[str, int]) -> None:
        if self.buffers:
            self.buffers.reserve(kind, sizes)
            return
        if kind not in self._memory:  # objects are made of bytes that lie in arrays
            self._memory[kind] = HostMemory("numpy" if kind == OBJECT else kind)
        memory = self._memory[kind]
        for name, nbytes in sizes.items():
            memory.reserve(name, nbytes)

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> MpiNativeRunner | BoundRunner:
        program = programs[self.rank]
        # ranks make a graph together: the edges of this rank alone may be those of an earlier one
        self._neighborhood = cell.options.get("neighborhood", "")  # a program of the engine has no options
        for group in groups_of(program):
            self._group_comm(group)
        for group, number in duplicates_of(program):
            self._duplicate(group, number)
        self.reserve(cell.buffer, {b.name: b.nbytes for b in program.buffers if not b.library})
        if self.buffers:
            from omb_py.backends.mpi.devices import BoundDeviceRunner, DeviceRunner

            runner = DeviceRunner if cell.binding == "native" else BoundDeviceRunner
            self._runner = runner(self, program, self.buffers, cell)
            return self._runner
        memory = self._memory[cell.buffer]
        if cell.buffer == OBJECT:
            from omb_py.backends.mpi.objects import ObjectRunner

            self._runner = ObjectRunner(self, program, memory, cell)
        else:
            self._runner = (MpiNativeRunner if cell.binding == "native" else BoundRunner)(self, program, memory)
        if cell.options.process_sync == "roundtime" and any(b.name == START for b in program.buffers):
            self.start = memory.view(START, START_BYTES)
            self.synchronise(cell.binding)
        return self._runner

    def synchronise(self, binding: str) -> None:
        """Learn the common clock anew, by the clock that a binding's laps read; write it where the loop reads it."""
        from omb_py.backends.mpi.clocks import announced_ahead, synchronise

        clock = time.perf_counter_ns if binding != "native" else lambda: int(self.mpi.Wtime() * 1e9)
        model = synchronise(self.comm, clock)
        self.start.view("float64")[1:4] = model.slope, model.intercept, model.origin
        self.start.view("int64")[4] = announced_ahead(self.comm, clock)

    def comm_of(self, step: Step) -> MPI.Intracomm:
        """The communicator of a step: the world, its group's, or for a neighborhood collective the one of its graph."""
        group, number = group_of(step), duplicate_of(step)
        if number:
            return self._duplicate(group, number)
        if group:
            return self._group_comm(group)
        edges = step.edges
        if edges is None:
            return self.world
        graph = self._neighborhood, edges
        if graph not in self._graphs:
            began = time.perf_counter_ns()
            # reorder would give ranks other numbers than those that the program names
            self._graphs[graph] = self.world.Create_dist_graph_adjacent(*edges, reorder=False)
            self._topology_us[graph] = (time.perf_counter_ns() - began) / 1000
        return self._graphs[graph]

    def topology_us(self, edges: Edges) -> float:
        """Time that it took to make the communicator of the present neighborhood, in µs."""
        return self._topology_us[self._neighborhood, edges]

    def _group_comm(self, group: Group) -> MPI.Intracomm:
        """The communicator of some ranks, which make it together."""
        if group not in self._groups:
            some = self.world.Get_group().Incl(group)
            self._groups[group] = self.world.Create_group(some)
            some.Free()
        return self._groups[group]

    def _duplicate(self, group: Group, number: int) -> MPI.Intracomm:
        """A duplicate of the communicator of some ranks, or of all, which make it together."""
        if (group, number) not in self._duplicates:
            self._duplicates[group, number] = (self._group_comm(group) if group else self.world).Dup()
        return self._duplicates[group, number]

    def settle(self) -> None:
        """Wait for all ranks and answer their accesses; in MPI_Barrier Intel MPI looks at these every 25 µs only."""
        self.comm.Ibarrier().Wait()

    def sleeping_barrier(self) -> None:
        """Wait for all ranks asleep: ranks that wait long would otherwise take a core from the others."""
        request = self.comm.Ibarrier()
        while not request.Test():
            time.sleep(_NAP_S)

    def counted(self, names: Sequence[str]) -> Mapping[str, float]:
        if self._counters is None:
            from omb_py.backends.mpi.tools.interface import Counters

            self._counters = Counters(self.mpi, self.library, names, self.world)
        return self._counters.read()

    def skew(self, kind: str = "barrier") -> float:
        from omb_py.backends.mpi.clocks import measured_skew

        return measured_skew(self, kind)

    def close(self) -> None:
        """Finalise MPI, if this session initialised it or not: nothing may follow."""
        for comm in (*self._graphs.values(), *self._duplicates.values(), *self._groups.values()):
            comm.Free()
        self.comm.Free()
        if self.buffers:
            self.buffers.close()
        if self._session is not None:
            self.world.Free()
            self._session.Finalize()
        if not self.mpi.Is_finalized():
            self.mpi.Finalize()

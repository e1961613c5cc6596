"""A communicator of NCCL ranks, one device each."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from omb_py import __version__
from omb_py.backends.nccl.calls import call_of, check_algorithm, check_function, check_types
from omb_py.backends.nccl.capabilities import (
    NATIVE,
    explain_missing,
    lacks_groups,
    lacks_settings,
    lacks_step,
    lacks_type,
    one_sided,
)
from omb_py.backends.nccl.communicators import (
    SCRATCH,
    Communicators,
    RegisteredMemory,
    allocates,
    barrier_apart,
    check,
    of_communicator,
    peers_of,
    per_call,
)
from omb_py.backends.nccl.library import (
    MEMORY_STATS,
    SHARED_GPU_SINCE,
    Library,
    built_for,
    check_cuda,
    load,
    loaded_file,
)
from omb_py.backends.nccl.log import TuningLog, chosen
from omb_py.backends.nccl.lower import lowered
from omb_py.backends.nccl.options import Settings, changed, settings_of
from omb_py.backends.nccl.plane import PlaneSession, plane
from omb_py.backends.nccl.runner import LoweredRunner, NcclRunner
from omb_py.engine.devices.buffers import crowd, places_of
from omb_py.engine.devices.gpu import driver_version
from omb_py.engine.devices.placement import on_device, spoiled
from omb_py.engine.devices.registry import open_device
from omb_py.engine.measuring.async_timing import captured
from omb_py.engine.native.translate import Machine
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.groups import groups_of
from omb_py.engine.program.language import Program, all_steps
from omb_py.engine.rank.launcher_variables import local_rank
from omb_py.engine.rank.link import LaunchSpec
from omb_py.engine.rank.node_name import node_name
from omb_py.engine.session import StepFailed
from omb_py.errors import EnvironmentProblem
from omb_py.grammar.json_values import JsonObject

if TYPE_CHECKING:
    from omb_py.backends.nccl.python_bindings.bound import Binding
    from omb_py.engine.devices.memory import DeviceMemory

SHARED_CTAS: Final = 2
"""CTAs of a communicator whose ranks share a GPU: the kernels of all of them must run at once."""
LOOK_S: Final = 0.2
"""Seconds between two looks for errors that came after a call had returned."""


class NcclSession(PlaneSession):
    """Implements :class:`omb_py.engine.session.Session`.

    The device is chosen first, by the launcher's local rank, before MPI or NCCL start.
    """

    backend = "nccl"
    _runner: LoweredRunner | None = None
    _barriers_count = False
    """Whether the one-byte reductions in NCCL's log are what the cell measures."""
    binding_version = f"omb-py {__version__}"

    def __init__(self, spec: LaunchSpec) -> None:
        kind = str(spec.get("device") or "cuda")
        os.environ.update(kept_from_stdout(os.environ))
        self.nccl: Library = load(kind)
        if kind == "cuda":
            check_cuda(built_for(loaded_file(self.nccl.path)), driver_version(), self.nccl.path)
        self.device = open_device(kind, local_rank(os.environ))
        self.device.attach(self.nccl.handle)
        began = time.perf_counter_ns()
        self._meet(plane())
        host = node_name(spec)
        self.places = places_of(self, self.device, bool(spec.get("share_device")), host)
        """The device of each rank."""
        self.hosts: tuple[str, ...] = tuple(str(place["host"]) for place in self.places)
        self.device_name: str = self.device.name
        self.cache_bytes = self.device.cache_bytes
        self.ranks_per_device = crowd(self.places)
        self.device_note = note_of_cores(len(os.sched_getaffinity(0)))
        self.library, self.library_version = self.nccl.name, self.nccl.version_text
        if self.ranks_per_device > 1 and kind == "cuda":
            os.environ.update(shared_gpu(self.nccl.version, self.rank, spec.get("cells") or ()))
        self._log = TuningLog() if self.rank == 0 and _wants_log(spec) else None
        if self._log:  # NCCL reads them once, when it is first called
            os.environ.update(self._log.variables)
        self.comms = Communicators(self)
        self._native: dict[tuple[Settings, int, bool], Communicators] = {(Settings(), 0, False): self.comms}
        self._bound: dict[tuple[str, Settings], Binding] = {}
        self._watched: list[Communicators | Binding] = [self.comms]
        self._in_use: list[Communicators] = []
        self._holding = self.comms
        """The communicators that have buffers now."""
        self._sizes: dict[str, int] = {}
        """The buffers of the largest cells."""
        self._one_sided: set[str] = set()
        """Benchmarks that write into memory of other ranks, whose buffers are windows."""
        self._left = [self.device.memory_left()]
        """Bytes of the device that were free before communicators were made, before buffers, and before calls."""
        self._start_us = (time.perf_counter_ns() - began) / 1000
        self.machine = Machine()
        self._events: tuple[int, int] | None = None
        self._failed: tuple[int, str] | None = None
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, name="omb-nccl-errors", daemon=True)
        self._watch.start()

    def limited(self, settings: Settings) -> Settings:
        """The settings of a communicator: with few CTAs where ranks share a GPU and no setting limits them."""
        switched = self.device.kind == "cuda" and self.nccl.version >= SHARED_GPU_SINCE
        if self.ranks_per_device == 1 or not switched or settings.max_ctas:
            return settings
        return replace(settings, max_ctas=max(SHARED_CTAS, settings.min_ctas))

    @property
    def memory(self) -> DeviceMemory:
        return self.comms.memory

    def check_cells(self, cells: Sequence[Cell], benchmarks: Mapping[str, Benchmark]) -> None:
        """Raises EnvironmentProblem, on every rank alike and before anything is allocated, for what NCCL lacks.

        Then makes the communicators that these cells need besides the usual one.
        """
        for cell in cells:
            settings = settings_of(cell.settings)
            check(settings, self.nccl)
            if why := explain_missing(cell.binding, self.device.kind) or lacks_settings(cell.binding, cell.settings):
                raise EnvironmentProblem(why)
            if cell.binding == "torch" and cell.options.timing == "graph":
                raise EnvironmentProblem("binding torch has no --timing graph here: --binding native")
        self._one_sided.update(name for name, benchmark in benchmarks.items() if one_sided(benchmark))
        self._in_use = list({id(comms): comms for comms in map(self._communicators, cells)}.values())
        self._left[1:] = [self.device.memory_left()]
        world = World(self.rank, self.size, self.hosts)
        for cell in cells:
            benchmark = benchmarks[cell.benchmark]
            if benchmark.once:
                continue
            program, _ = lowered(benchmark.program(world, cell), world, self._has(cell))
            settings, ops = settings_of(cell.settings), set[str]()
            for step in all_steps(program):
                ops.add(step.op)
                check_types(step, self.nccl, self.device)
                if cell.binding == NATIVE:
                    check_function(step, self.nccl)
                dtype = str(step.operands.get("dtype", "char"))
                if why := lacks_type(cell.binding, dtype) or lacks_step(cell.binding, step.op):
                    raise EnvironmentProblem(why)
            if groups_of(program) and (why := lacks_groups(cell.binding, cell.settings)):
                raise EnvironmentProblem(why)
            if settings.algorithm:
                check_algorithm(benchmark.name, ops, cell.binding == NATIVE and per_call(settings, self.nccl))

    def _communicators(self, cell: Cell) -> Communicators:
        """The buffers of a cell, and its communicators: made with all other ranks when asked first."""
        if cell.binding != NATIVE:
            self._binding(cell)
            return self.comms
        settings = of_communicator(settings_of(cell.settings))
        if cell.benchmark in self._one_sided:
            settings = replace(settings, registration="window")
        apart = barrier_apart(cell.benchmark, settings, self.nccl)
        key = settings, peers_of(cell.benchmark, settings, self.nccl), apart
        if key not in self._native:
            self._native[key] = Communicators(self, *key)
            self._watched.append(self._native[key])
        began = time.perf_counter_ns()
        self._native[key].make()
        self._note_start(began)
        return self._native[key]

    def _binding(self, cell: Cell) -> Binding:
        key = cell.binding, of_communicator(settings_of(cell.settings))
        if key not in self._bound:
            if cell.binding == "torch":  # a process has one default group: of other settings it is made anew
                for previous in [key for key in self._bound if key[0] == "torch"]:
                    self._watched.remove(self._bound[previous])
                    self._bound.pop(previous).destroy()
            began = time.perf_counter_ns()
            self._bound[key] = _make_binding(cell.binding, self, self.limited(key[1]))
            self._note_start(began)
            self._watched.append(self._bound[key])
        return self._bound[key]

    def _note_start(self, began: int) -> None:
        """Note the time until the first communicator existed."""
        took = self._start_us + (time.perf_counter_ns() - began) / 1000
        self.started = self.started or {"init": {self.rank: took}}

    def _has(self, cell: Cell) -> Callable[[str], bool]:
        if cell.binding != NATIVE:
            return self._binding(cell).has
        return lambda op: (call := call_of(op, self.nccl)) is not None and self.nccl.has(call[0])

    def memory_left(self) -> int:
        return self.device.memory_left() // self.ranks_per_device

    def reserve(self, kind: str, sizes: Mapping[str, int]) -> None:
        for name, nbytes in sizes.items():
            self._sizes[name] = max(self._sizes.get(name, 0), nbytes)
        self._hold(self._in_use[0] if self._in_use else self.comms, self._sizes)
        self._left[2:] = [self.device.memory_left()]

    def memory_used(self) -> Mapping[str, int]:
        left = [*self._left, self.device.memory_left()]
        if len(left) < 4:
            return {}
        counted = [one for comms in self._in_use for one in comms.memory_counted()]
        own = [sum(one.get(word, 0) for one in counted) for word in MEMORY_STATS]
        used = self.maximum(np.array([*(before - after for before, after in pairwise(left)), *own], float))
        words = ("communicators", "buffers", "calls", *(MEMORY_STATS if used[-1] else ()))
        return dict(zip(words, map(int, used), strict=False))

    def _hold(self, comms: Communicators, sizes: Mapping[str, int]) -> None:
        """Give communicators their buffers. Those of others are given back: together they may not fit."""
        if comms is not self._holding:
            self._holding.memory.close()
            self._holding = comms
        for name, nbytes in (*{SCRATCH: 1, **self._sizes}.items(), *sizes.items()):
            comms.memory.reserve(name, nbytes)

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> LoweredRunner:
        program, comms = (
            on_device(spoiled(programs[self.rank]), cell.options.get("filler", "cpu")),
            self._communicators(cell),
        )
        shift = settings_of(cell.settings).unaligned * DTYPES[cell.dtype].itemsize
        self._hold(comms, {buffer.name: buffer.nbytes + shift for buffer in program.buffers})
        translated, calls = lowered(program, World(self.rank, self.size, self.hosts), self._has(cell))
        if groups := self.groups_of_all(translated):
            comms.make_groups(groups)
        if cell.options.timing == "graph":
            # in place, what is launched again changes its own result
            replays = 1 if cell.distinct else settings_of(cell.settings).replays
            translated = replace(translated, stages=tuple(captured(stage, replays) for stage in translated.stages))
        filler = {} if cell.options.get("filler", "cpu") == "cpu" else {"filler": cell.options.get("filler", "cpu")}
        marks = filler | {
            "timing_mode": cell.options.timing or "isolated",
            "ranks_per_device": str(self.ranks_per_device),
        }
        marks |= {f"nccl_{key}": value for key, value in changed(settings_of(cell.settings)).items()}
        if settings_of(cell.settings).method != "usual":
            marks["allocated_by"] = "ncclMemAlloc" if allocates(comms.settings, self.nccl) else "device"
            marks["max_p2p_peers"] = str(comms.peers or "all")
        if isinstance(comms.memory, RegisteredMemory) and (windows := comms.memory.windows()):
            marks["windows"] = windows
        if self._log:  # what it costs is in every row of this process
            marks["nccl_log"] = "tuning"
        if settings_of(cell.settings).algorithm:
            by_call = cell.binding == NATIVE and per_call(settings_of(cell.settings), self.nccl)
            marks["algorithm_by"] = "call" if by_call else "NCCL_ALGO"
        if calls:
            marks["calls"] = calls
        self.tuning()  # what was written before is about other cells
        self._barriers_count = cell.benchmark == "barrier" or (cell.benchmark == "allreduce" and cell.size == 1)
        if cell.binding == NATIVE:
            self._runner = NcclRunner(self, translated, marks, comms, shift)
        else:
            from omb_py.backends.nccl.python_bindings.bound import NcclBoundRunner

            bound = self._binding(cell)
            marks |= {"binding_version": bound.version, "library_version": bound.library_version}
            self._runner = NcclBoundRunner(self, translated, marks, bound)
        return self._runner

    def tuning(self) -> dict[str, str]:
        """The choices that NCCL's log reports for the calls since the last time; empty without a log."""
        return chosen(self._log.new(), self._barriers_count) if self._log else {}

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
            for watched in tuple(self._watched):
                met = watched.async_error()
                if met:
                    self._failed = met
                    if isinstance(watched, Communicators) and isinstance(self._runner, NcclRunner):
                        watched.abort(self._runner.revoke)
                    else:
                        watched.abort()
                    return

    def close(self) -> None:
        if self._runner is not None:  # before the watch is over, which may be aborting: that waits for graphs, too
            self._runner.close()
        self._over.set()
        self._watch.join()
        self._plane.barrier()
        self._runner = None
        if self._failed is None:
            for watched in reversed(self._watched):
                watched.destroy()
        if self._log:
            self._log.close()
        self.device.close()
        self._plane.close()


def _make_binding(binding: str, session: NcclSession, settings: Settings) -> Binding:
    """The communicator of a Python binding, made by all ranks together. Raises EnvironmentProblem."""
    if binding == "cupy":
        from omb_py.backends.nccl.python_bindings.by_cupy import CupyBinding

        return CupyBinding(session, settings)
    if binding == "nccl4py":
        from omb_py.backends.nccl.python_bindings.by_nccl4py import Nccl4pyBinding

        return Nccl4pyBinding(session, settings)
    from omb_py.backends.nccl.python_bindings.by_torch import TorchBinding

    return TorchBinding(session, settings)


def _wants_log(spec: LaunchSpec) -> bool:
    return any(settings_of(cell.get("settings") or "").log == "tuning" for cell in spec.get("cells") or ())


def kept_from_stdout(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that keep NCCL's own lines off stdout, where a table may be: clusters often set NCCL_DEBUG for all."""
    talks = environ.get("NCCL_DEBUG") and not environ.get("NCCL_DEBUG_FILE")
    return {"NCCL_DEBUG_FILE": "/dev/stderr"} if talks else {}


def note_of_cores(cores: int) -> str:
    """What a launcher that binds a rank to one core does to NCCL, whose proxy thread then waits for the rank's turn."""
    if cores > 1:
        return ""
    return "each rank has one core, which NCCL's proxy shares with the rank that spins there: bind to several, or none"


def shared_gpu(version: tuple[int, int, int], rank: int, cells: Sequence[JsonObject] = ()) -> dict[str, str]:
    """Variables by which NCCL lets ranks share a GPU: its switch, or before 2.30 another host id for each rank.

    A variable that the user has set stays. NCCL_MAX_CTAS is set only for a binding whose communicators take no
    configuration, since NCCL puts it above all configurations of the process.

    Raises:
        EnvironmentProblem: such a binding runs beside cells that choose their own CTAs.
    """
    if version >= SHARED_GPU_SINCE:
        variables = {"NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_NVLS_ENABLE": "0"}
        used = dict.fromkeys(str(cell.get("binding") or NATIVE) for cell in cells)
        without = [name for name in used if lacks_settings(name, f"max_ctas={SHARED_CTAS}")]
        all_settings = [settings_of(str(cell.get("settings") or "")) for cell in cells]
        if without and any(settings.min_ctas or settings.max_ctas for settings in all_settings):
            raise EnvironmentProblem(
                f"binding {without[0]} on a shared GPU needs NCCL_MAX_CTAS, which NCCL puts above what --nccl says of "
                "CTAs: measure them one after the other"
            )
        if without:
            variables["NCCL_MAX_CTAS"] = str(SHARED_CTAS)
    else:
        # where GPUs of several machines are one NVLink domain, it would find the same GPU twice there
        variables = {"NCCL_HOSTID": f"omb-py-{rank}", "NCCL_MNNVL_ENABLE": "0"}
    return {name: os.environ.get(name, value) for name, value in variables.items()}

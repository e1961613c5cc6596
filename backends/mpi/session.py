"""A communicator of real MPI processes."""

from __future__ import annotations

import os
import socket
import threading
import time
import warnings
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mpi4py
import numpy as np
from numpy.typing import NDArray

from omb_py.engine.benchmark import Cell
from omb_py.engine.buffers import OBJECT
from omb_py.engine.memory import HostMemory
from omb_py.engine.program import Body, Edges, Host, Program, Stage, Step, edges_of, request_count
from omb_py.engine.rma import check_hosts
from omb_py.engine.session import StepFailed
from omb_py.engine.sync import START, START_BYTES
from omb_py.engine.threads import Crew, Gate, stages_of
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from omb_py.backends.mpi.windows import OpenWindow
    from omb_py.engine.flat import Loop
    from omb_py.engine.native import Table

LEVELS = ("single", "funneled", "serialized", "multiple")


def initialise(level: str) -> tuple[Any, float]:
    """Load MPI and initialise it at a thread level, unless the program already did.

    Returns:
        the MPI module, and how long MPI_Init_thread took in µs (0 when it was called before).
    """
    mpi4py.rc.initialize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise EnvironmentProblem(
            f"no MPI library can be loaded ({error}); install one: pip install 'omb-py[mpich]'"
        ) from error
    if not MPI.Is_initialized():
        with warnings.catch_warnings():
            # mpi4py suspects a foreign launcher; we count the ranks of the world and say it in one line
            warnings.filterwarnings("ignore", "suspicious MPI execution environment", RuntimeWarning)
            began = time.perf_counter_ns()
            MPI.Init_thread(LEVELS.index(level))
            return MPI, (time.perf_counter_ns() - began) / 1000
    return MPI, 0.0


def process_start_ns() -> int:
    """When this process started, in ns of the epoch, to a hundredth of a second. (proc_pid_stat(5): field 22.)"""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    boot = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return boot + ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def allow_forks() -> None:
    """Tell libraries that pin memory, which look when they start, that this process will fork."""
    for name in ("RDMAV_FORK_SAFE", "IBV_FORK_SAFE"):
        os.environ.setdefault(name, "1")


class MpiSession:
    """The world communicator, one rank a process."""

    backend = "mpi"

    def __init__(self, spec: Mapping[str, Any]) -> None:
        if spec.get("fork"):
            allow_forks()
        self.mpi, init_us = initialise(spec.get("thread_level") or "funneled")
        self.world = self.mpi.COMM_WORLD
        self.world.Barrier()
        hello_us = (time.time_ns() - (spec.get("launched_at") or process_start_ns())) / 1000
        self.comm = self.world.Dup()  # the engine's own traffic: its tags can never meet the benchmark's
        self.size: int = self.world.Get_size()
        self.rank: int = self.world.Get_rank()
        self.local: tuple[int, ...] = (self.rank,)
        self.started: Mapping[str, Mapping[int, float]] = {"init": {self.rank: init_us}, "hello": {self.rank: hello_us}}
        self.hosts: tuple[str, ...] = tuple(self.comm.allgather(socket.gethostname()))
        self.thread_level = LEVELS[self.mpi.Query_thread()]
        self.library, self.library_version = vendor(self.mpi)
        self.binding = "native"
        self.binding_version = f"mpi4py {mpi4py.__version__}"
        self._memory: dict[str, HostMemory] = {}
        self._machine: Any = None
        self._graphs: dict[Edges, Any] = {}
        self.topology_us: dict[Edges, float] = {}
        """How long this rank took to make the communicator of a graph."""
        self._runner: NativeRunner | BoundRunner | None = None

    @property
    def machine(self) -> Any:
        """What runs native programs, loaded when first used."""
        if self._machine is None:
            from omb_py.backends.mpi.calls import address_of
            from omb_py.engine.native import Machine

            self._machine = Machine(address_of("MPI_Wtime"))
        return self._machine

    def reserve(self, kind: str, sizes: Mapping[str, int]) -> None:
        """Allocate buffers for a whole sweep, so that all sizes use the same pages."""
        if kind not in self._memory:  # objects are made of bytes that lie in arrays
            self._memory[kind] = HostMemory("numpy" if kind == OBJECT else kind)
        memory = self._memory[kind]
        for name, nbytes in sizes.items():
            memory.reserve(name, nbytes)

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> NativeRunner | BoundRunner:
        """Allocate and translate the program of this rank."""
        program = programs[self.rank]
        self.reserve(cell.buffer, {b.name: b.nbytes for b in program.buffers if not b.library})
        memory = self._memory[cell.buffer]
        if cell.buffer == OBJECT:
            from omb_py.backends.mpi.objects import ObjectRunner

            self._runner = ObjectRunner(self, program, memory, cell)
        else:
            self._runner = (NativeRunner if cell.binding == "native" else BoundRunner)(self, program, memory)
        if cell.process_sync == "roundtime" and any(b.name == START for b in program.buffers):
            self.start = memory.view(START, START_BYTES)
            self.synchronise(cell.binding)
        return self._runner

    def synchronise(self, binding: str) -> None:
        """Learn the common clock anew, by the clock that a binding's laps read; write it where the loop reads it."""
        from omb_py.backends.mpi.clocks import announced_ahead, synchronise

        clock = time.perf_counter_ns if binding != "native" else lambda: int(self.mpi.Wtime() * 1e9)
        model = synchronise(self.comm, clock)
        self.start.view(np.float64)[1:4] = model.slope, model.intercept, model.origin
        self.start.view(np.int64)[4] = announced_ahead(self.comm, clock)

    def comm_of(self, step: Step) -> Any:
        """The communicator of a step: the world, or for the neighborhood collectives that of their graph."""
        edges = step.edges
        if edges is None:
            return self.world
        if edges not in self._graphs:
            began = time.perf_counter_ns()
            self._graphs[edges] = self.world.Create_dist_graph_adjacent(*edges, reorder=False)
            self.topology_us[edges] = (time.perf_counter_ns() - began) / 1000
        return self._graphs[edges]

    def position(self) -> tuple[int, int]:
        """(iteration, step) of the loop that runs now."""
        return self._runner.position() if self._runner else (0, 0)

    def doing(self, step: int) -> str:
        """What a step of the running program does, in words."""
        labels = self._runner.labels if self._runner else ()
        return labels[step] if step < len(labels) else ""

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.comm.Barrier()

    def maximum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise maximum over ranks."""
        result = np.empty_like(values)
        self.comm.Allreduce(values, result, self.mpi.MAX)
        return result

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise sum over ranks."""
        result = np.empty_like(values)
        self.comm.Allreduce(values, result, self.mpi.SUM)
        return result

    def gather(self, value: Any) -> list[Any]:
        """One object of each rank, on rank 0."""
        return self.comm.gather(value) or []

    def share(self, value: Any) -> Any:
        """Rank 0's object, everywhere."""
        return self.comm.bcast(value)

    def skew(self, kind: str = "barrier") -> float:
        """Median time in µs between the first and the last rank to leave a synchronisation."""
        from omb_py.backends.mpi.skew import measured_skew

        return measured_skew(self, kind)

    def close(self) -> None:
        """Finalise MPI, if this session initialised it or not: nothing may follow."""
        self.comm.Free()
        if not self.mpi.Is_finalized():
            self.mpi.Finalize()


class _Runner:
    """What both bindings share."""

    def __init__(self, session: MpiSession, program: Program, memory: HostMemory) -> None:
        self.session, self.program = session, program
        self._nbytes = {b.name: b.nbytes for b in program.buffers}
        self.window = self._open(memory)
        self.memory_ = self.window.memory if self.window else memory
        self.labels: tuple[str, ...] = ()
        self.crew: Crew | None = None
        self.laps = 0

    def _open(self, memory: HostMemory) -> OpenWindow | None:
        """The program's window, made by all ranks together."""
        what = self.program.window
        if what is None:
            return None
        from omb_py.backends.mpi.windows import OpenWindow

        check_hosts(what, self.session.hosts)
        return OpenWindow(what, self._nbytes[what.buffer], memory, self.session.world)

    def begin(self) -> None:
        """New request slots for a stage."""
        raise NotImplementedError

    def once(self, stage: Stage) -> None:
        """Run some steps once."""
        raise NotImplementedError

    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        """Make what runs the body."""
        raise NotImplementedError

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        """The bytes of a buffer."""
        return self.memory_.view(buffer, self._nbytes[buffer])

    def enter(self, stage: int, results: Mapping[tuple[str, str], float]) -> None:
        """Run the setup, then translate the body."""
        self.begin()
        self._once(self.program.stages[stage].setup)
        self.translate(self.program.stages[stage], results)

    def leave(self, stage: int) -> None:
        """Run the stage's teardown."""
        self._once(self.program.stages[stage].teardown)

    def _once(self, nodes: Body) -> None:
        """Run setup or teardown: Python calls, and what stands between them through the binding."""
        for is_host, part in groupby(nodes, lambda node: isinstance(node, Host)):
            if is_host:
                for node in part:
                    assert isinstance(node, Host)
                    node.call(self.session)
            else:
                self.once(Stage((tuple(part),)))

    def later(self) -> None:
        """Announce the start of a round twice as far ahead: too many came late."""
        self.session.start.view(np.int64)[4] *= 2

    def notes(self) -> Mapping[str, float]:
        """How long making the graph or the window took, where there is one."""
        edges = edges_of(self.program)
        graph = {"topology_us": self.session.topology_us[edges]} if edges is not None else {}
        return graph | ({"win_create_us": self.window.create_us} if self.window else {})

    def close(self) -> None:
        """Free the window; buffers stay for the next size."""
        if self.window:
            self.window.close()


class NativeRunner(_Runner):
    """Generated code calls the MPI library's own functions."""

    def begin(self) -> None:
        """New request slots for a stage."""
        from omb_py.backends.mpi.calls import Resolver

        self.resolver = Resolver(self.session.comm_of, self.memory_, request_count(self.program), self.window)

    def assemble(self, stage: Stage, results: Mapping[tuple[str, str], float], gate: Gate | None = None) -> Table:
        """The rows of a stage's body."""
        from omb_py.engine.native import assemble

        word = int(gate.word.ctypes.data) if gate else 0
        return assemble(stage, self.resolver, self.resolver.byte, results, word)

    def once(self, stage: Stage) -> None:
        """Run some steps once."""
        self._execute(self.assemble(stage, {}), 0, 1)

    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        """Make the code of the body."""
        self.crew, self.laps = None, len(stage.laps)
        if stage.threads > 1:
            gate = Gate()
            parts = [self.assemble(part, results, gate) for part in stages_of(stage)]
            self.crew = Crew([NativeWork(self, table, gate) for table in parts], gate)
            self.labels = self.crew.labels
            return
        self.table = self.assemble(stage, results)
        self.labels = self.table.labels
        self.session.machine.prepare(self.table)

    def _execute(self, table: Table, first: int, iterations: int) -> NDArray[np.int64]:
        return self.execute(self.session.machine, table, first, iterations)

    def execute(self, machine: Any, table: Table, first: int, iterations: int) -> NDArray[np.int64]:
        """Run a table on a machine. Raises StepFailed."""
        samples: NDArray[np.int64]
        samples, failed = machine.run(table, first, iterations)
        if failed:
            code = int(machine.word[3])
            raise StepFailed(failed - 1, code, self.session.mpi.Get_error_string(code))
        return samples

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        """Run iterations; see :class:`omb_py.engine.session.Runner`."""
        if self.crew:
            return {self.session.rank: self.crew.run(first, iterations, self.laps)}
        return {self.session.rank: self._execute(self.table, first, iterations)}

    def position(self) -> tuple[int, int]:
        """(iteration, step), from the word that the code writes."""
        if self.crew:
            return self.crew.position()
        word = self.session.machine.word
        return int(word[1]), int(word[2])


class BoundRunner(_Runner):
    """A flat Python loop of mpi4py calls."""

    def begin(self) -> None:
        """New request slots for a stage."""
        from omb_py.backends.mpi.bound import Renderer

        self.renderer = Renderer(self.session.comm_of, self.memory_, self.program, self.window)

    def once(self, stage: Stage) -> None:
        """Run some steps once."""
        from omb_py.engine.flat import compile_stage

        self.execute(compile_stage(stage, self.renderer, {}), 0, 1)

    def translate(self, stage: Stage, results: Mapping[tuple[str, str], float]) -> None:
        """Make the loop of the body."""
        from omb_py.engine.flat import compile_stage

        self.crew, self.laps = None, len(stage.laps)
        if stage.threads > 1:
            gate = Gate()
            loops = [compile_stage(part, self.renderer, results) for part in stages_of(stage)]
            self.crew = Crew([BoundWork(self, loop, gate) for loop in loops], gate)
            self.labels = self.crew.labels
            return
        self.loop = compile_stage(stage, self.renderer, results)
        self.labels = self.loop.labels
        self.thread = threading.get_ident()

    def execute(self, loop: Loop, first: int, iterations: int) -> NDArray[np.int64]:
        """Run a loop in this thread. Raises StepFailed."""
        try:
            return loop.run(first, iterations)
        except NotImplementedError as error:
            raise missing_in(self.session.mpi, str(error)) from error
        except self.session.mpi.Exception as error:
            raise StepFailed(loop.failed_step(error), error.Get_error_code(), error.Get_error_string()) from error

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        """Run iterations; see :class:`omb_py.engine.session.Runner`."""
        if self.crew:
            return {self.session.rank: self.crew.run(first, iterations, self.laps)}
        return {self.session.rank: self.execute(self.loop, first, iterations)}

    def position(self) -> tuple[int, int]:
        """(iteration, step), read from the running frame."""
        if self.crew:
            return self.crew.position()
        if not self.labels:
            return 0, 0
        return self.loop.position(self.thread)


class NativeWork:
    """A thread's part of a stage as generated code, with a watched word of its own."""

    def __init__(self, runner: NativeRunner, table: Table, gate: Gate) -> None:
        from omb_py.engine.native import Machine

        self._runner, self._table, self._gate = runner, table, gate
        self.labels = table.labels
        self._machine = Machine(runner.session.machine.wtime)
        self._machine.prepare(table)

    def run(self, first: int, iterations: int) -> NDArray[np.int64]:
        """Run in the calling thread; the code waits at the gate."""
        self._gate.arrive()
        return self._runner.execute(self._machine, self._table, first, iterations)

    def position(self) -> tuple[int, int]:
        """(iteration, step), from the word that the code writes."""
        return int(self._machine.word[1]), int(self._machine.word[2])


class BoundWork:
    """A thread's part of a stage as a Python loop."""

    def __init__(self, runner: BoundRunner, loop: Loop, gate: Gate) -> None:
        self._runner, self._loop, self._gate = runner, loop, gate
        self.labels = loop.labels
        self._thread = 0

    def run(self, first: int, iterations: int) -> NDArray[np.int64]:
        """Run in the calling thread."""
        self._thread = threading.get_ident()
        self._gate.wait()
        return self._runner.execute(self._loop, first, iterations)

    def position(self) -> tuple[int, int]:
        """(iteration, step), read from the running frame."""
        return self._loop.position(self._thread)


def missing_in(mpi: Any, function: str) -> EnvironmentProblem:
    """What to say of a function that the library does not have."""
    name, version = vendor(mpi)
    if function.endswith("_c"):
        return EnvironmentProblem(
            f"a count above {(1 << 31) - 1} elements needs {function}, which is missing in {name} {version} "
            f"(MPI-{mpi.VERSION}.{mpi.SUBVERSION}) and there since MPI-4.0: a newer library, a smaller -m or a wider -T"
        )
    return EnvironmentProblem(
        f"{function} is missing in {name} {version}, which implements MPI-{mpi.VERSION}.{mpi.SUBVERSION}: "
        "it is there since MPI-4.0: use a newer library"
    )


def vendor(mpi: Any) -> tuple[str, str]:
    """Name and version of the MPI library, as we store it."""
    name, version = mpi.get_vendor()
    return str(name), ".".join(map(str, version))

"""What the engine itself costs: ``pytest tests/lab/speed/bench_engine.py -m bench``. Not collected by default.

Steps call a function of the C library that does nothing, with seven operands, as a send has.  Figures in `extra_info`
and in the printed lines are nanoseconds a step or a sample, without the bare loop; evidence/speed.md keeps them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from omb_py.engine.measuring.host_memory import HostMemory
from omb_py.engine.measuring.measure import measure
from omb_py.engine.measuring.validate import Checker
from omb_py.engine.native.translate import Arg, Machine, assemble
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import Lap, Node, Program, Repeat, Stage, body, request_count
from omb_py.options.table import make_cell
from omb_py.suites.registry import find
from tests.support.machine import call, libc, table

pytestmark = pytest.mark.bench

PASSES, ITERATIONS = 64, 20_000
DO_NOTHING = (0, 1, 2, 3, 4, 5)
MOVING = call(libc("abs"), *DO_NOTHING, Arg(64, stride=8))
STILL = call(libc("abs"), *DO_NOTHING, 64)
BODIES: dict[str, tuple[tuple[Node, ...], int]] = {
    "call": ((STILL,) * PASSES, PASSES),
    "call in a repeat": ((Repeat(PASSES, (STILL,)),), PASSES),
    "call with a moving operand in a repeat": ((Repeat(PASSES, (MOVING,)),), PASSES),
    "two calls with moving operands in a repeat": ((Repeat(PASSES, (MOVING, MOVING)),), 2 * PASSES),
    "lap": ((Lap(), Lap("time")), 2),
    "iteration": ((), 1),
}


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine()


def note(benchmark: Any, name: str, value: float, unit: str) -> None:
    """Keep a figure with the result, and print it."""
    benchmark.extra_info[name] = round(value, 3)
    print(f"\n{name}: {value:.3g} {unit}")


@pytest.mark.parametrize("name", BODIES)
def test_cost_of_a_step(benchmark: Any, machine: Machine, name: str) -> None:
    nodes, steps = BODIES[name]
    lowered = table(Stage(body(*nodes)))
    iterations = ITERATIONS * PASSES // max(steps, 8)
    benchmark.pedantic(machine.run, (lowered, 0, iterations), rounds=15, warmup_rounds=1)
    ns = benchmark.stats.stats.min * 1e9 / iterations / steps
    note(benchmark, f"ns per {name}", ns, "ns")
    assert ns < (200 if name == "lap" else 100)  # far above what is seen: only a broken loop is that slow


class Alone:
    """A session of one rank whose loop takes no time: what remains is the engine's own work."""

    backend, binding, size, rank = "none", "native", 1, 0
    local = (0,)
    hosts = ("here",)

    def __init__(self, samples: NDArray[np.int64]) -> None:
        self.samples = samples

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> Alone:
        return self

    def enter(self, stage: int, results: Mapping[tuple[str, str], float]) -> None: ...

    def leave(self, stage: int) -> None: ...

    def close(self) -> None: ...

    def barrier(self) -> None: ...

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        return {0: self.samples[:iterations]}

    def maximum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values

    total = maximum

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def share(self, value: Any) -> Any:
        return value


SAMPLES = 10_000


def whole(auto: bool) -> Callable[[], Any]:
    """Measure a cell of 10 000 samples that never reaches its precision."""
    times = np.random.default_rng(1).lognormal(7, 0.3, (SAMPLES + 100, 1)).astype(np.int64)
    cell = make_cell(
        "allreduce", "none", "native", 8, dtype="int32", iterations=SAMPLES, auto=auto, warmup=0, precision=0.0
    )
    session: Any = Alone(times)
    kind: Benchmark = find("allreduce")
    return lambda: measure(session, kind, cell)


def test_cost_of_a_sample(benchmark: Any) -> None:
    """Everything that the engine does for a cell but the loop, shared out over 10 000 samples."""
    measured = benchmark.pedantic(whole(auto=False), rounds=15, warmup_rounds=1)
    assert measured.iterations == SAMPLES and measured.stop_reason == "fixed"
    note(benchmark, "ns per sample", benchmark.stats.stats.min * 1e9 / SAMPLES, "ns")


def test_cost_of_deciding_when_to_stop(benchmark: Any) -> None:
    """``-i auto`` up to 10 000 samples, without what fixed iterations cost."""
    measured = benchmark.pedantic(whole(auto=True), rounds=15, warmup_rounds=1)
    assert measured.iterations == SAMPLES and measured.stop_reason == "count"
    fixed, best = whole(auto=False), float("inf")
    for _ in range(15):
        began = time.perf_counter()
        fixed()
        best = min(best, time.perf_counter() - began)
    note(benchmark, "ms for all decisions of 10 000 samples", (benchmark.stats.stats.min - best) * 1e3, "ms")


def test_assembling_a_window(benchmark: Any) -> None:
    """The sender's program of bw with 64 messages, with MPI's own functions and handles; MPI is not initialised."""
    import mpi4py

    mpi4py.rc.initialize = False
    from mpi4py import MPI

    from omb_py.backends.mpi.calls import MpiResolver

    program = find("bw").program(World(0, 2), make_cell("bw", "mpi", "native", 1024, window=64))
    memory = HostMemory("numpy")
    for buffer in program.buffers:
        memory.reserve(buffer.name, buffer.nbytes)

    def lower() -> Any:
        resolver = MpiResolver(lambda step: MPI.COMM_WORLD, memory, request_count(program))
        return assemble(program.stages[0], resolver, resolver.byte, {})

    made = benchmark.pedantic(lower, rounds=50, warmup_rounds=2)
    assert made.laps == ("time",) and len(made.labels) == 3  # isend, waitall, recv
    note(benchmark, "ms to assemble bw", benchmark.stats.stats.median * 1e3, "ms")


class Held:
    """A runner that only holds buffers."""

    def __init__(self, program: Program) -> None:
        self.buffers = {b.name: np.zeros(b.nbytes, np.uint8) for b in program.buffers}

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        return self.buffers[buffer]


@pytest.mark.parametrize(
    ("name", "size"), [("latency", 1 << 20), ("allreduce", 1 << 20), ("alltoall", 1 << 20), ("allreduce", 1 << 26)]
)
def test_payload(benchmark: Any, name: str, size: int) -> None:
    """Fill and check the buffers of one iteration, per MiB of buffers."""
    kind = find(name)
    cell = make_cell(name, "none", "native", size, dtype=kind.dtype, validate=True)
    world = World(0, 2, ("here", "here"))
    program = kind.program(world, cell)
    held: Any = Held(program)
    checker = Checker(cell, {0: world}, {0: program}, None)
    iteration = iter(range(1 << 20))

    def fill_and_check() -> int:
        number = next(iteration)
        checker.fill(held, 0, number)
        return int(checker.wrong(held, 0, number).sum())

    wrong = benchmark.pedantic(fill_and_check, rounds=15, warmup_rounds=1)
    assert wrong > 0  # nothing was communicated: what was received is what fill spoiled
    mib = sum(b.nbytes for b in program.buffers) / 2**20
    note(benchmark, f"ms per MiB of {name} of {size >> 20} MiB", benchmark.stats.stats.median * 1e3 / mib, "ms")


def test_samples_are_kept_whole() -> None:
    """The session above is honest: a measured cell has all its samples."""
    measured = whole(auto=False)()
    assert dataclasses.asdict(measured)["iterations"] == len(measured.series["time"]["max"]) == SAMPLES

"""Short names for measuring on the simulated backend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omb_py.backends.mock.session import MockSession
from omb_py.engine.measuring.cell_result import CellResult
from omb_py.engine.measuring.measure import measure, worlds_of
from omb_py.engine.measuring.validate import Log, followed_stages, validate_ranks
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.engine.program.language import Program, Stage, Step
from omb_py.options.table import make_cell
from omb_py.suites.registry import find


def session(ranks: int, mock: str = "", **spec: Any) -> MockSession:
    """A world of `ranks` simulated ranks with settings as ``--mock`` takes them."""
    return MockSession({"ranks": ranks, "settings": mock, **spec})


def cell(name: str, size: int = 8, **more: Any) -> Cell:
    """A cell that measures exactly as many iterations as it says: 10, no warm-up."""
    benchmark = find(name)
    usual: dict[str, Any] = {"dtype": benchmark.dtype, "iterations": 10, "auto": False, "warmup": 0}
    usual["window"] = dict(benchmark.defaults).get("window", 4)
    values = {**usual, **more}
    (nbytes,) = benchmark.sizes_for(values["dtype"], (size,))
    return make_cell(benchmark, "mock", "native", nbytes, **values)


def measured(name: str, ranks: int, mock: str = "", size: int = 8, **more: Any) -> CellResult:
    """Measure one cell of one of our benchmarks."""
    return measure(session(ranks, mock), find(name), cell(name, size, **more))


def checked(benchmark: Benchmark, ranks: int, what: Cell, mock: str = "", log: Log | None = None) -> int:
    """Wrong bytes that the validation of a cell finds."""
    return wrong_bytes(session(ranks, mock), benchmark, what, log)


def wrong_bytes(world: MockSession, benchmark: Benchmark, what: Cell, log: Log | None = None) -> int:
    """Wrong bytes that the validation of a cell finds in a world."""
    worlds = worlds_of(world)
    followed = followed_stages(world, benchmark, what, worlds)
    return int(validate_ranks(world, benchmark, what, worlds, log, followed).sum())


def with_step(benchmark: Benchmark, rank: int, *extra: Step) -> Benchmark:
    """The benchmark with more steps at the end of the body of one rank."""
    original = benchmark.program

    def program(world: Any, what: Cell) -> Program:
        made = original(world, what)
        if world.rank != rank:
            return made
        stage: Stage = made.stages[0]
        spoiled = replace(stage, variants=tuple((*body, *extra) for body in stage.variants))
        return replace(made, stages=(spoiled, *made.stages[1:]))

    return replace(benchmark, program=program)

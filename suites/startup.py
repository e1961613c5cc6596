"""Start-up: the time of MPI_Init, of the start of a job, and of creating communicators.

`init` and `hello` are OMB's (reference section 1.5); OMB has nothing on communicators.
"""

from __future__ import annotations

from collections.abc import Callable

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric, RankRule, Timed, World
from omb_py.engine.program.groups import group_of, on_group
from omb_py.engine.program.language import Lap, Program, Stage, Step, body
from omb_py.suites.shared import PER_CALL, TWO_OR_MORE, barrier_after, no_bytes

ONE_OR_MORE = RankRule("1 rank or more", lambda n: n >= 1)
ONCE = Counts(1, 0, 1, 0)
COMMUNICATORS = Counts(1000, 10, 1000, 10)


def no_steps(world: World, cell: Cell) -> Program:
    """An empty program: what is measured does not consist of steps."""
    return Program((), ())


def _declare_once_a_launch(name: str, summary: str, formula: str) -> Benchmark:
    return Benchmark(
        name,
        "startup",
        summary,
        no_steps,  # the start is over before a program could begin
        Metric("us", formula, lap=name),
        None,
        ONCE,
        ONE_OR_MORE,
        "all",
        "char",
        frozenset({"full"}),
        no_bytes,
        once=True,
    )


def _communicator(
    name: str, summary: str, make: Callable[[World], Step | None], metric: Metric = PER_CALL, timed: Timed = "all"
) -> Benchmark:
    def program(world: World, cell: Cell) -> Program:
        step = make(world)
        free = (on_group(steps.comm_free(), group_of(step)),) if step else ()
        after = barrier_after(cell.options.process_sync)
        return Program((), (Stage(body(Lap(), *((step,) if step else ()), Lap("time"), *free, *after)),))

    return Benchmark(
        name,
        "startup",
        summary,
        program,
        metric,
        None,
        COMMUNICATORS,
        TWO_OR_MORE,
        timed,
        "char",
        frozenset({"full", "process_sync"}),
        no_bytes,
    )


def _rank_all_but_last(world: World) -> tuple[int, ...]:
    return tuple(range(world.size - 1))


BENCHMARKS = (
    _declare_once_a_launch("init", "time in MPI_Init, one sample a launch", "mean over ranks of the time in MPI_Init"),
    _declare_once_a_launch(
        "hello",
        "from the start of the job until all ranks have said hello, one sample a launch",
        "mean over ranks of the time from the launcher's start (in a foreign launcher: the process's) to the first "
        "barrier's end",
    ),
    _communicator("comm_dup", "time to duplicate a communicator", lambda world: steps.comm_dup()),
    _communicator(
        "comm_split", "time to split a communicator into even and odd ranks", lambda world: steps.comm_split(2)
    ),
    _communicator(
        "comm_create", "time to create a communicator of all ranks from its group", lambda world: steps.comm_create()
    ),
    _communicator(
        "comm_shrink",
        "time to create a communicator without the last rank",
        lambda world: steps.comm_shrink(_rank_all_but_last(world)) if world.rank in _rank_all_but_last(world) else None,
        Metric("us", "mean over iterations of lap time, on rank 0 (the last rank makes no call)"),
        "rank 0",
    ),
    _communicator(
        "comm_grow",
        "time to take the last rank into the communicator of the others",
        lambda world: steps.comm_grow(_rank_all_but_last(world)),
    ),
)

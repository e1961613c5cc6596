"""Start-up: the time of MPI_Init, of the start of a job, and of creating communicators.

`init` and `hello` are OMB's (reference section 1.5); OMB has nothing on communicators.
"""

from __future__ import annotations

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric, RankRule, World
from omb_py.engine.program.language import Lap, Program, Stage, Step, body
from omb_py.suites.shared import PER_CALL, TWO_OR_MORE, barrier_after, no_bytes

ONE_OR_MORE = RankRule("1 rank or more", lambda n: n >= 1)
ONCE = Counts(1, 0, 1, 0)
COMMUNICATORS = Counts(1000, 10, 1000, 10)


def no_steps(world: World, cell: Cell) -> Program:
    """An empty program: what is measured does not consist of steps."""
    return Program((), ())


def _once_a_launch(name: str, summary: str, formula: str) -> Benchmark:
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


def _communicator(name: str, summary: str, make: Step) -> Benchmark:
    def program(world: World, cell: Cell) -> Program:
        after = barrier_after(cell.options.process_sync)
        return Program((), (Stage(body(Lap(), make, Lap("time"), steps.comm_free(), *after)),))

    return Benchmark(
        name,
        "startup",
        summary,
        program,
        PER_CALL,
        None,
        COMMUNICATORS,
        TWO_OR_MORE,
        "all",
        "char",
        frozenset({"full", "process_sync"}),
        no_bytes,
    )


BENCHMARKS = (
    _once_a_launch("init", "time in MPI_Init, one sample a launch", "mean over ranks of the time in MPI_Init"),
    _once_a_launch(
        "hello",
        "from the start of the job until all ranks have said hello, one sample a launch",
        "mean over ranks of the time from the launcher's start (in a foreign launcher: the process's) to the first "
        "barrier's end",
    ),
    _communicator("comm_dup", "time to duplicate a communicator", steps.comm_dup()),
    _communicator("comm_split", "time to split a communicator into even and odd ranks", steps.comm_split(2)),
    _communicator("comm_create", "time to create a communicator of all ranks from its group", steps.comm_create()),
)

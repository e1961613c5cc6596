"""Start-up: what MPI_Init takes, how long a job takes to say hello, and what communicators cost.

`init` and `hello` are OMB's (reference section 1.5); OMB has nothing on communicators.
"""

from __future__ import annotations

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric, RankRule, World
from omb_py.engine.program.language import Lap, Program, Stage, Step, body
from omb_py.suites.shared import PER_CALL, TWO_OR_MORE

ONE_OR_MORE = RankRule("1 rank or more", lambda n: n >= 1)
ONCE = Counts(1, 0, 1, 0)
COMMUNICATORS = Counts(1000, 10, 1000, 10)


def nothing(world: World, cell: Cell) -> Program:
    """What these benchmarks measure is over when a program could begin."""
    return Program((), ())


def _none(size: int, ranks: int) -> int:
    return 0


def _started(name: str, summary: str, formula: str) -> Benchmark:
    return Benchmark(
        name,
        "startup",
        summary,
        nothing,
        Metric("us", formula, lap=name),
        None,
        ONCE,
        ONE_OR_MORE,
        "all",
        "char",
        frozenset({"full"}),
        _none,
        once=True,
    )


def _communicator(name: str, summary: str, make: Step) -> Benchmark:
    def program(world: World, cell: Cell) -> Program:
        after = (steps.barrier(),) if cell.process_sync == "barrier" else ()
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
        _none,
    )


BENCHMARKS = (
    _started("init", "time in MPI_Init, one sample a launch", "mean over ranks of the time in MPI_Init"),
    _started(
        "hello",
        "from the start of the job until all ranks have said hello, one sample a launch",
        "mean over ranks of the time from the launcher's start (in a foreign launcher: the process's) to the first "
        "barrier's end",
    ),
    _communicator("comm_dup", "time to duplicate a communicator", steps.comm_dup()),
    _communicator("comm_split", "time to split a communicator into even and odd ranks", steps.comm_split(2)),
    _communicator("comm_create", "time to create a communicator of all ranks from its group", steps.comm_create()),
)

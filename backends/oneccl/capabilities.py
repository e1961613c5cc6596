"""The capabilities of oneCCL on host memory, as data: nothing here loads a package."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omb_py.backends.capabilities import (
    FROM_ANYONE,
    ONE_SIDED,
    SCAN,
    Capabilities,
    Inspection,
    RankStart,
    fewest_ranks,
    usable,
)
from omb_py.backends.nccl.family import ONECCL
from omb_py.engine.devices.registry import HOST
from omb_py.engine.measuring.process_sync import ADDED
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.errors import EnvironmentProblem

NATIVE: Final = "native"
STEPS: Final = frozenset(
    (
        "allreduce reduce bcast allgather allgatherv reduce_scatter reduce_scatter_block alltoall alltoallv gather "
        "gatherv scatter scatterv barrier send recv isend irecv wait waitall compute flip comm_dup comm_split comm_free"
    ).split()
)
"""A call returns when it is done, so there are no non-blocking collectives."""
TYPES: Final = tuple("char int8 uint8 int32 uint32 int64 uint64 float16 bfloat16 float32 float64".split())


class OnecclCapabilities(Capabilities):
    """A child process asks the library, whose plug-ins show only then whether they can be loaded."""

    def inspect(self) -> Capabilities:
        from omb_py.backends.nccl.library import asked, version_of

        reasons = []
        for path in ONECCL.candidates():
            answer = asked(path, ONECCL)
            if "error" not in answer:
                number = ".".join(map(str, version_of(answer["version"])))
                facts = {"library": str(answer["file"])}
                return replace(self, inspection=Inspection(library=ONECCL.name, version=number, facts=facts))
            reasons.append(str(answer["error"]))
        reason = f"no oneCCL library ({reasons[0]})"
        return replace(self, bindings={NATIVE: reason}, inspection=Inspection(reason, ONECCL.install))

    def lacks(self, benchmark: Benchmark, usual: Cell) -> str:
        if benchmark.once or benchmark.runs or self._explain_missing_step(benchmark, usual):
            return ""
        from omb_py.backends.nccl.lower import lowered
        from omb_py.backends.oneccl.lower import DIRECT, HostLowering

        for rank in range(ranks := fewest_ranks(benchmark)):
            world = World(rank, ranks)
            try:
                lowered(benchmark.program(world, usual), world, DIRECT.__contains__, HostLowering)
            except EnvironmentProblem as problem:
                return str(problem)
        return ""

    def refuses(self, benchmark: Benchmark, cell: Cell) -> str:
        if cell.options.ddt:
            return "oneCCL has no derived datatypes: leave out -D"
        if cell.options.in_place and "alltoall" in benchmark.name:
            return f"oneCCL has no in-place {benchmark.name}: leave out -l"
        return ""


CAPABILITIES: Final = OnecclCapabilities(
    "oneccl",
    bindings=usable(NATIVE),
    devices=usable(HOST),
    title="oneCCL",
    priority=30,
    steps=STEPS,
    dtypes=TYPES,
    ops=("sum", "prod", "min", "max"),
    without={
        SCAN: "oneCCL has no scan",
        FROM_ANYONE: "a server that answers whoever comes first needs MPI_ANY_SOURCE (mode=async answers in order)",
        ONE_SIDED: "oneCCL has no one-sided operations (op=send moves the same bytes)",
    },
    refused={
        "process_sync": {word: f"backend oneccl takes no --process-sync {word}: barrier or none" for word in ADDED}
    },
    start=RankStart(needs_mpi=False, pass_names=(ONECCL.variable,)),
    in_place_at_rank=True,
)
"""Its calls have the barrier of NCCL, a reduction of one byte."""

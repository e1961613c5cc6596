"""The capabilities of UCC on host memory, as data: nothing here loads a package."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omb_py.backends.capabilities import FROM_ANYONE, ONE_SIDED, SCAN, Capabilities, Inspection, RankStart, usable
from omb_py.backends.ucc.structures import COLLECTIVES, OPS, TYPES, VARIABLE
from omb_py.engine.measuring.process_sync import ADDED
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.engine.program.buffers import MEMORY
from omb_py.engine.program.dtypes import DTYPES

NATIVE: Final = "native"
STEPS: Final = frozenset(
    (
        *COLLECTIVES,
        *(f"i{op}" for op in COLLECTIVES),
        *(f"{op}_init" for op in COLLECTIVES),
        *"wait waitall test start startall free compute matmul flip".split(),
    )
)
_CHILD_S: Final = 60.0
"""Seconds that a library may take to be loaded and initialised."""


class UccCapabilities(Capabilities):
    """A child process initialises the library, whose components show only then whether they can be loaded."""

    def inspect(self) -> Capabilities:
        from omb_py.backends.child import answer_of  # only what looks at this machine needs them
        from omb_py.backends.ucc.library import FIX, NAME, candidates

        reasons = []
        for path in candidates():
            answer = answer_of("omb_py.backends.ucc.library", path, timeout=_CHILD_S)
            if "error" not in answer:
                facts = {"library": str(answer["file"])}
                return replace(self, inspection=Inspection(library=NAME, version=str(answer["version"]), facts=facts))
            reasons.append(str(answer["error"]))
        reason = f"no UCC library ({reasons[0]})"
        return replace(self, bindings={NATIVE: reason}, inspection=Inspection(reason, FIX))

    def lacks(self, benchmark: Benchmark, usual: Cell) -> str:
        return (
            "UCC runs one thread a rank here: use --backend mpi" if benchmark.needs.thread_level == "multiple" else ""
        )

    def refuses(self, benchmark: Benchmark, cell: Cell) -> str:
        if cell.options.ddt:
            return "UCC's own datatypes are not measured: leave out -D"
        if cell.options.in_place and "alltoall" in benchmark.name:
            return f"UCC has no in-place {benchmark.name}: leave out -l"
        if "op" in benchmark.options and cell.dtype == "float16":
            return "UCC reduces no float16 on the host: -T float32 or bfloat16"
        if "op" in benchmark.options and cell.options.op == "avg" and DTYPES[cell.dtype].kind == "integer":
            return "UCC averages floats alone: -T float32, or --op sum"
        return ""


CAPABILITIES: Final = UccCapabilities(
    "ucc",
    bindings=usable(NATIVE),
    buffers=MEMORY,
    title="UCC",
    priority=40,
    steps=STEPS,
    dtypes=tuple(dtype for dtype in DTYPES if dtype in TYPES),
    ops=tuple(op for op in OPS if not op.endswith("loc")),
    without={
        SCAN: "UCC has no scan",
        FROM_ANYONE: "a server that answers whoever comes first needs MPI_ANY_SOURCE (mode=async answers in order)",
        ONE_SIDED: "UCC has no one-sided operations (op=send moves the same bytes)",
    },
    refused={"process_sync": {word: f"backend ucc takes no --process-sync {word}: barrier or none" for word in ADDED}},
    start=RankStart(needs_mpi=False, pass_names=(VARIABLE,)),
    in_place_at_rank=True,
)

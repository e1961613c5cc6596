"""What every backend must do: each benchmark with each type, buffer and size, validated. Shared by all backends.

As a program it is one rank of an MPI launch: ``python -m tests.support.conformance FILE``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omb_py.engine.benchmark import Cell
from omb_py.engine.dtypes import DTYPES, OPS_OF
from omb_py.engine.measure import measure
from omb_py.errors import EnvironmentProblem
from omb_py.suites.registry import BENCHMARKS

BUFFERS = ("numpy", "bytearray", "array")
"""`torch` is in tests/support/variety.py: it takes seconds to load."""
SIZES = (8, 24, 4096 + 8, 70_008)
FEW_SIZES, FEW_DTYPES = (24,), ("char", "int32", "float64")
"""Where ranks outnumber cores, except the native binding on three: ranks that spin wait milliseconds for each other."""
ITERATIONS = 5
RARE_DTYPES = ("float16", "bfloat16", "complex64", "complex128")
MISSING = "missing: "
"""Begins what is said where the library has no such type."""


@dataclass(frozen=True, slots=True)
class Combination:
    """What one test looks at, at every size and operation."""

    binding: str
    benchmark: str
    dtype: str
    buffer: str

    def __str__(self) -> str:
        return "-".join((self.binding, self.benchmark, self.dtype, self.buffer))


def combinations(bindings: Sequence[str]) -> Iterator[Combination]:
    """All of them; a barrier has no data, so one type stands for all."""
    for binding in bindings:
        for name in BENCHMARKS:
            for dtype in DTYPES if name != "barrier" else ("char",):
                for buffer in BUFFERS:
                    what = Combination(binding, name, dtype, buffer)
                    if worth(what):
                        yield what


def worth(what: Combination) -> bool:
    """Not everything with everything: arrays hold any type alike, and forms of a collective treat types alike."""
    if what.dtype in RARE_DTYPES:
        return what.buffer == "numpy" and BENCHMARKS[what.benchmark].family in ("pt2pt", "collective")
    return what.buffer != "array" or what.dtype in FEW_DTYPES


def operations(what: Combination) -> Sequence[str]:
    """Reductions to look at: all that the type takes for one benchmark, else the sum."""
    return OPS_OF[DTYPES[what.dtype].kind] if what.benchmark == "allreduce" and what.buffer == "numpy" else ("sum",)


def cells(backend: str, what: Combination, ranks: int, sizes: Sequence[int] = SIZES) -> Iterator[Cell]:
    """The cells of a combination on so many ranks; none where the benchmark does not admit them."""
    benchmark = BENCHMARKS[what.benchmark]
    if not benchmark.ranks.admits(ranks):
        return
    for size in sizes if benchmark.sizes else (0,):
        for op in operations(what) if size == 24 and len(sizes) > 1 else ("sum",):
            yield Cell(
                what.benchmark, backend, what.binding, size, what.dtype, buffer=what.buffer, op=op,
                root=ranks - 1, window=3, iterations=ITERATIONS if len(sizes) > 1 else 2, auto=False, warmup=1,
                validate=True,
            )  # fmt: skip


def complaints(session: Any, cell: Cell) -> list[str]:
    """What is wrong with a measured cell, in words; empty elsewhere than on rank 0."""
    benchmark = BENCHMARKS[cell.benchmark]
    done = measure(session, benchmark, cell)
    if 0 not in session.local:
        return []
    wrong = []
    expected = (True, 0) if benchmark.sizes else (None, None)
    if (done.validated, done.wrong_bytes) != expected:
        wrong.append(f"validated {done.validated}, {done.wrong_bytes} wrong bytes")
    if (done.iterations, done.stop_reason) != (cell.iterations, "fixed"):
        wrong.append(f"{done.iterations} iterations, {done.stop_reason}")
    timed = session.size if benchmark.timed == "all" else 1
    for lap, pair in done.series.items():
        slowest, average = pair["max"], pair["avg"]
        if slowest.shape != (cell.iterations,) or average.shape != slowest.shape:
            wrong.append(f"{lap}: {slowest.shape} samples")
        elif not (np.isfinite(slowest).all() and slowest.min() > 0 and slowest.max() < 60e6):
            wrong.append(f"{lap}: from {slowest.min()} to {slowest.max()} us")
        elif not (average > 0).all() or not (average <= slowest * (1 + 1e-12)).all():
            wrong.append(f"{lap}: an average over its maximum")
        means = done.laps[lap]
        if len(means) != timed or not np.isclose(np.mean(means), average.mean()):
            wrong.append(f"{lap}: means of {len(means)} ranks do not belong to the samples")
    if len(done.slowest_rank_share) != timed or sum(done.slowest_rank_share) < 1 - 1e-9:
        wrong.append(f"shares {done.slowest_rank_share}")
    return [f"{cell.size} B {cell.op} on {session.size} ranks: {text}" for text in wrong]


def check(session: Any, backend: str, what: Combination, sizes: Sequence[int] = SIZES) -> list[str]:
    """What is wrong with a combination."""
    try:
        return [text for cell in cells(backend, what, session.size, sizes) for text in complaints(session, cell)]
    except EnvironmentProblem as problem:  # said alike on all ranks, before anything is sent
        return [f"{MISSING}{problem}"] if what.dtype in ("float16", "bfloat16") else [str(problem)]


def main() -> None:
    """One rank: check everything, rank 0 writes combination -> complaints."""
    from omb_py.backends.registry import find

    session = find("mpi").connect({})
    crowded = session.size > len(os.sched_getaffinity(0))
    sizes = FEW_SIZES if crowded else SIZES
    found = {
        str(what): check(session, "mpi", what, sizes)
        for what in combinations(("native", "mpi4py"))
        if not crowded
        or what.dtype in FEW_DTYPES
        or (what.buffer == "numpy" and what.binding == "native" and session.size == 3)
    }
    if 0 in session.local:
        Path(sys.argv[1]).write_text(json.dumps(found))
    session.close()


if __name__ == "__main__":
    main()

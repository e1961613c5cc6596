"""What every backend must do: each benchmark with each type, buffer and size, validated. Shared by all backends.

As a program it is one rank of an MPI launch: ``python -m tests.support.conformance FILE NAMES QUICK``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from omb_py.backends.mpi.start import standard_abi
from omb_py.backends.registry import capabilities
from omb_py.backends.registry import find as find_backend
from omb_py.engine.measuring import validate
from omb_py.engine.measuring.measure import measure
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.dtypes import DTYPES, OPS_OF, reduction_dtype
from omb_py.options.table import change_cell, make_cell
from omb_py.suites.collective.forms import ROTATE
from omb_py.suites.imb import exchanges, random_pairs, stencils
from omb_py.suites.registry import BENCHMARKS
from tests.support.kinds import checkable

BINDINGS = ("native", "mpi4py")
BUFFERS = ("numpy", "bytearray", "array")
"""`torch` is in tests/backends/mpi/test_torch_buffers.py: it takes seconds to load."""
SIZES = (8, 24, 4096 + 8, 70_008)
FEW_SIZES = (24, 70_008)
FEW_DTYPES = ("char", "int32", "float64")
"""For the forms that move the same data by the same operands as the blocking ones."""
EVERY_TYPE = ("latency", "allreduce")
"""In quick launches: a message and a reduction."""
ITERATIONS = 5
_SAME_OPERANDS = {each.name for family in (exchanges, random_pairs, stencils) for each in family.BENCHMARKS}
"""Benchmarks of steps that others try with every type."""
VARIED: dict[str, tuple[Any, ...]] = {
    "in_place": (True,),
    "root": (ROTATE,),
    "imbalance": (0.5,),
    "tests": (3,),
    "neighborhood": ("cart:2:1", "graph:0>1,1>0,0>1"),
    "op": ("prod", "min", "max"),
}
"""Options beyond their defaults, each tried alone with one type and size."""
NOT_EVERYWHERE = ("float16", "bfloat16")
"""Types that a library may lack; MPICH 5 has them."""
NOT_OF_MPI = tuple(name for name, dtype in DTYPES.items() if dtype.kind == "fp8")
"""NCCL has them."""


def _turns(dtype: str, sizes: Sequence[int], types: Collection[str], binding: str) -> Sequence[int]:
    """The sizes at which a binding tries a type: int32, or the only type, at all of them; the other types share them.

    So each binding has every type and every size, and a type another size with each.
    """
    if dtype == "int32" or len(types) < 2 or len(sizes) < 2:
        return sizes
    return (sizes[(list(DTYPES).index(dtype) + (binding == "native")) % len(sizes)],)


def cells(
    backend: str, binding: str, name: str, ranks: int, crowded: bool = False, quick: bool = False
) -> Iterator[Cell]:
    """The cells of a benchmark with a binding on so many ranks; none where the benchmark does not admit them.

    With `crowded` ranks that spin wait milliseconds for each other: one cell, and one for each option, is all.
    With `quick` those of EVERY_TYPE alone are tried with every type.
    """
    benchmark = BENCHMARKS[name]
    if not benchmark.ranks.admits(ranks):
        return
    (size,) = benchmark.sizes_for(benchmark.dtype, (24,))
    usual = make_cell(
        benchmark,
        backend,
        binding,
        size,
        window=3,
        iterations=2 if crowded else ITERATIONS,
        auto=False,
        warmup=1,
        validate=True,
        root=ranks - 1 if benchmark.rooted else 0,
    )
    if benchmark.once:
        usual = change_cell(usual, iterations=1)
    tried = [usual]
    for option in sorted(benchmark.options & set(VARIED)):
        tried += [change_cell(usual, **{option: value}) for value in VARIED[option]]
    if not crowded and checkable(benchmark):
        threads = benchmark.needs.thread_level == "multiple" and backend != "mock"  # more than cores: slow
        # a forked process sends as any other
        whole = benchmark.family in ("pt2pt", "collective") and not threads and not benchmark.needs.fork
        whole = whole and name not in _SAME_OPERANDS and (not quick or name in EVERY_TYPE)
        dtypes = (DTYPES if whole else FEW_DTYPES) if "type" in benchmark.options else (usual.dtype,)
        for dtype in dtypes:
            sizes = benchmark.sizes_for(dtype, SIZES if whole else FEW_SIZES)
            for nbytes in _turns(dtype, sizes, dtypes, binding):
                for buffer in BUFFERS if (dtype, nbytes) == ("int32", sizes[-1]) else BUFFERS[:1]:
                    tried.append(change_cell(usual, dtype=dtype, size=nbytes, buffer=buffer))
            if name == "allreduce":
                ops = OPS_OF[DTYPES[reduction_dtype(dtype)].kind]
                reduced = [change_cell(usual, dtype=dtype, op=op) for op in ops]
                tried += [cell for cell in reduced if not capabilities(backend).refuses(benchmark, cell)]
    yield from (cell for cell in tried if not (benchmark.refuses and benchmark.refuses(cell)))


def complaints(session: Any, cell: Cell) -> list[str]:
    """What is wrong with a measured cell, in words; empty elsewhere than on rank 0."""
    benchmark = BENCHMARKS[cell.benchmark]
    done = measure(session, benchmark, cell)
    if 0 not in session.local:
        return []
    wrong = []
    expected = (True, 0) if checkable(benchmark) else (None, None)
    if (done.validated, done.wrong_bytes) != expected:
        wrong.append(f"validated {done.validated}, {done.wrong_bytes} wrong bytes")
    if (done.iterations, done.stop_reason) != (cell.sampling.iterations, "fixed"):
        wrong.append(f"{done.iterations} iterations, {done.stop_reason}")
    timed = len(benchmark.timed_ranks(session.size, session.hosts))
    for lap, pair in done.series.items():
        slowest, average = np.asarray(pair["max"]), np.asarray(pair["avg"])
        if slowest.shape != (cell.sampling.iterations,) or average.shape != slowest.shape:
            wrong.append(f"{lap}: {slowest.shape} samples")
        elif not (np.isfinite(slowest).all() and slowest.min() >= 0 and slowest.max() < 60e6):
            wrong.append(f"{lap}: from {slowest.min()} to {slowest.max()} us")
        elif not (average >= 0).all() or not (average <= slowest * (1 + 1e-12)).all():
            wrong.append(f"{lap}: an average over its maximum")
        elif lap == benchmark.metric.lap and slowest.min() == 0:
            wrong.append(f"{lap}: takes no time")
        means = done.laps[lap]
        if len(means) != timed or not np.isclose(np.mean(means), average.mean()):
            wrong.append(f"{lap}: means of {len(means)} ranks do not belong to the samples")
    if len(done.slowest_rank_share) != timed or sum(done.slowest_rank_share) < 1 - 1e-9:
        wrong.append(f"shares {done.slowest_rank_share}")
    odd = {name: value for name in VARIED if (value := cell.options[name]) in VARIED[name]}
    return [f"{cell.size} B {cell.dtype} {cell.buffer} {odd} on {session.size} ranks: {text}" for text in wrong]


def check(session: Any, backend: str, binding: str, name: str, crowded: bool = False, quick: bool = False) -> list[str]:
    """What is wrong with a benchmark in a binding; on rank 0."""
    over_nodes = BENCHMARKS[name].ranks.over_nodes
    if over_nodes and not over_nodes(session.hosts):
        return []  # tests/suites/pt2pt/test_congestion.py has nodes
    tried = cells(backend, binding, name, session.size, crowded, quick)
    if session.library != "mock":
        has_all = session.library == "MPICH" and not standard_abi(session.mpi)
        lacking = NOT_OF_MPI if has_all else (*NOT_OF_MPI, *NOT_EVERYWHERE)
        tried = (cell for cell in tried if cell.dtype not in lacking)
    return [text for cell in tried for text in complaints(session, cell)]


def main() -> None:
    """One rank: check the named benchmarks, rank 0 writes benchmark -> complaints.

    With both bindings, which get the same operands of a step; where ranks wait long for each other by turns with one.
    """
    session = find_backend("mpi").connect({"thread_level": "multiple"})
    crowded = session.size > len(os.sched_getaffinity(0))
    validate.ITERATIONS = 2 if crowded else 3
    names, quick = map(json.loads, sys.argv[2:])
    complaints: dict[str, list[str]] = {}
    for number, name in enumerate(names):
        bindings = BINDINGS[number % 2 :][:1] if crowded else BINDINGS
        complaints[name] = [t for binding in bindings for t in check(session, "mpi", binding, name, crowded, quick)]
    if 0 in session.local:
        Path(sys.argv[1]).write_text(json.dumps(complaints))
    session.close()


if __name__ == "__main__":
    main()

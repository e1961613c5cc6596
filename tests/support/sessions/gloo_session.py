"""One rank of the launches of tests/backends/gloo/test_gloo.py: ``python -m tests.support.sessions.gloo_session FILE``.

Every benchmark that Gloo has, with every type, operation and option, checked byte by byte; a fault that must be found;
what the session says of itself.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from omb_py.backends.gloo.capabilities import CAPABILITIES, OPS, TYPES
from omb_py.backends.mpi import clocks as skew
from omb_py.backends.registry import find as find_backend
from omb_py.engine.measuring import validate
from omb_py.engine.measuring.cache_rotation import rotated
from omb_py.engine.measuring.measure import measure
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.engine.program.dtypes import DTYPES, OPS_OF, reduction_dtype
from omb_py.options.table import change_cell, make_cell, usual_cell
from omb_py.orchestrate.running.rank_process import arranged
from omb_py.suites.registry import BENCHMARKS
from omb_py.testing.faults import parse_fault, with_fault
from tests.support.checked_cells import checked_cell
from tests.support.conformance import VARIED, complaints
from tests.support.kinds import checkable

LARGE = 70_008
ENOUGH = ("bcast", "allreduce", "ialltoallv")
"""Where little is tried: the benchmarks in which a fault must be found."""
ALL_TYPES = ("bcast", "latency", "reduce_scatter", "alltoallv")
"""One of each way in which a tensor is made of a buffer: whole, of a message, in a list, with splits.

Allreduce is tried with every type and reduction."""
SYNCS = ("dissemination", "none")


def able(ranks: int) -> list[Benchmark]:
    """The benchmarks that Gloo has, on so many ranks of one host."""
    return [
        b
        for b in BENCHMARKS.values()
        if not CAPABILITIES.lacks(b, usual_cell(b)) and b.ranks.admits(ranks) and not b.ranks.over_nodes
    ]


def cells(kind: Benchmark, ranks: int, few: bool) -> Iterator[Cell]:
    """What is tried of a benchmark: two sizes and kinds of memory; unless `few` every option, type and reduction."""
    (size,) = kind.sizes_for(kind.dtype, (24,))
    counted = {"window": 3, "iterations": 1 if kind.once else 3, "auto": False, "warmup": 0 if kind.once else 1}
    usual = make_cell(kind, "gloo", "torch", size, validate=True, root=ranks - 1 if kind.rooted else 0, **counted)
    tried = [usual]
    for option in () if few else sorted(kind.options & set(VARIED)):
        tried += [change_cell(usual, **{option: value}) for value in VARIED[option]]
    if checkable(kind):
        (large,) = kind.sizes_for(kind.dtype, (LARGE,))
        tried.append(replace(usual, size=large, buffer="torch"))
        if kind.name in ALL_TYPES and not few:
            tried += [change_cell(usual, dtype=dtype, size=large) for dtype in TYPES]
    if kind.name == "allreduce" and not few:
        for dtype in TYPES:
            known = OPS_OF[DTYPES[reduction_dtype(dtype)].kind]
            tried += [change_cell(usual, dtype=dtype, op=op) for op in (*known, "avg") if op in OPS]
    for cell in tried:
        if not (CAPABILITIES.why_refused(kind, cell) or (kind.refuses and kind.refuses(cell))):
            yield CAPABILITIES.fitted(kind, cell, usual_cell(kind))


def right(session: Any) -> dict[str, list[str]]:
    """Benchmark -> what is wrong with it; on rank 0."""
    few = json.loads(sys.argv[2])
    found = {}
    for kind in able(session.size):
        found[kind.name] = [text for cell in cells(kind, session.size, few) for text in complaints(session, cell)]
    return found


def corrupted(session: Any) -> dict[str, list[Any]]:
    """One byte inverted on the last rank must be found by the checks of every benchmark."""
    found = {}
    few = json.loads(sys.argv[2])
    for kind in filter(checkable, able(session.size)):
        if few and kind.name not in ENOUGH:
            continue
        (size,) = kind.sizes_for(kind.dtype, (256,))
        cell = checked_cell(kind, "gloo", "torch", size, 2, warmup=0, window=2)
        spoiled = with_fault(kind, parse_fault(f"flip:{session.size - 1}"))
        done = measure(session, spoiled, CAPABILITIES.fitted(kind, cell, usual_cell(kind)))
        found[kind.name] = [done.validated, done.wrong_bytes]
    return found


def synchronised(session: Any) -> dict[str, Any]:
    """Each kind of synchronisation: validated samples, and its skew."""
    kind, found = BENCHMARKS["allgather"], {}
    for sync in SYNCS:
        cell = checked_cell(kind, "gloo", "torch", 64, 5, process_sync=sync)
        done = measure(session, arranged(kind), cell)
        found[sync] = [done.validated, done.iterations, session.skew(sync)]
    return found


def turning(session: Any) -> dict[str, Any]:
    """``--cache rotate``: another copy of the buffers in each iteration, validated."""
    found = {}
    for name in ("bcast", "allreduce", "alltoallv", "igather"):
        kind = BENCHMARKS[name]
        cell = checked_cell(kind, "gloo", "torch", 256, 4)
        few = replace(kind, program=lambda w, c, of=kind.program: rotated(of(w, c), 4096, 6))
        done = measure(session, few, CAPABILITIES.fitted(kind, cell, usual_cell(kind)))
        found[name] = [done.validated, done.wrong_bytes]
    return found


def facts(session: Any) -> dict[str, Any]:
    """What the session says of itself, and the engine's own traffic."""
    mine = np.array([float(session.rank), 1.0])
    return {
        "rank": session.rank,
        "size": session.size,
        "local": list(session.local),
        "hosts": list(session.hosts),
        "library": session.library,
        "version": session.library_version,
        "binding": session.binding_version,
        "init_us": session.started["init"][session.rank],
        "hello_us": session.started["hello"][session.rank],
        "maximum": session.maximum(mine).tolist(),
        "total": session.total(mine).tolist(),
        "gather": session.gather(session.rank),
        "share": session.share(f"from {session.rank}"),
        "modules": sorted({"pandas", "pyarrow", "scipy", "plotly", "click", "rich"} & set(sys.modules)),
        "mpi": "mpi4py.MPI" in sys.modules,
        "skew": session.skew(),
    }


def main() -> None:
    """Run every check; rank 0 writes what all ranks saw."""
    session = find_backend("gloo").connect({"ranks": int(os.environ.get("WORLD_SIZE", "0")) or None})
    validate.ITERATIONS, skew.ROUNDS = 2 if json.loads(sys.argv[2]) else 3, 20
    told: dict[str, Any] = {"facts": session.gather(facts(session))}
    for check in (right, corrupted, synchronised, turning):
        session.barrier()
        told[check.__name__] = check(session)
    if session.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(told))
    session.close()
    left = [name for name in threads() if "gloo" in name]
    if left:
        sys.exit(f"threads that would outlive the interpreter: {left}")


def threads() -> list[str]:
    """The names of this process's threads."""
    return [file.read_text().strip() for file in Path("/proc/self/task").glob("*/comm")]


if __name__ == "__main__":
    main()

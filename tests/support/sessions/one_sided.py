"""One rank of the launch that tests/backends/mpi/test_windows.py looks at: window kinds × synchronisations × bindings.

``python -m tests.support.sessions.one_sided FILE``; rank 0 writes what it found by combination.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omb_py.engine.measuring import validate
from omb_py.engine.measuring.measure import measure
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.engine.program.rma import SYNCS, WINDOWS
from omb_py.errors import EnvironmentProblem
from omb_py.suites.one_sided import BENCHMARKS
from omb_py.testing.faults import InjectedFault, with_fault
from tests.support.checked_cells import checked_cell

SIZES = (8, 70_008)
EVERYWHERE = {"native": ("put_latency", "get_acc_latency", "put_bw"), "mpi4py": ("put_latency",)}
"""Run in every kind of window; the others in one, with every synchronisation."""
SPOILED = {"native": ("flush_local", "pscw"), "mpi4py": ("lock",)}
"""With which synchronisations a fault is injected."""


def cells(binding: str) -> Iterator[tuple[Benchmark, Cell]]:
    """Every benchmark with the window kinds and synchronisations; the sizes take turns."""
    turn = 0
    for benchmark in BENCHMARKS:
        for kind in WINDOWS if benchmark.name in EVERYWHERE[binding] else ("allocate",):
            for sync in SYNCS:
                sizes = benchmark.sizes_for("int32", SIZES)
                how = {"dtype": "int32", "window_kind": kind, "sync": sync, "window": 3}
                cell = checked_cell(benchmark, "mpi", binding, sizes[turn % len(sizes)], 4, **how)
                if not (benchmark.refuses and benchmark.refuses(cell)):
                    turn += 1
                    yield benchmark, cell


def named(cell: Cell) -> str:
    """A combination in words."""
    return f"{cell.binding} {cell.benchmark} {cell.options.window_kind} {cell.options.sync}"


def measured(session: Any, benchmark: Benchmark, cell: Cell) -> Any:
    """[validated, wrong bytes, whether samples and creation time are sane], or why the library cannot."""
    try:
        done = measure(session, benchmark, cell)
    except EnvironmentProblem as problem:
        return str(problem)
    times = done.series["time"]["max"] if 0 in session.local else None
    sane = times is None or (len(times) == 4 and min(times) > 0 and done.extra["win_create_us"] > 0)
    return [done.validated, done.wrong_bytes, sane]


def spoiled(session: Any, binding: str) -> Any:
    """A byte inverted on origin or target of each benchmark: what the check says."""
    found = {}
    for benchmark in BENCHMARKS:
        for rank in (0, 1):
            for sync in SPOILED[binding]:
                (size,) = benchmark.sizes_for("int32", (64,))
                cell = checked_cell(benchmark, "mpi", binding, size, 3, dtype="int32", sync=sync, window=3)
                if not (benchmark.refuses and benchmark.refuses(cell)):
                    done = measure(session, with_fault(benchmark, InjectedFault("flip", rank)), cell)
                    found[f"spoiled {binding} {benchmark.name} {sync} {rank}"] = done.validated
    return found


def main() -> None:
    """All combinations, one after the other; every rank must say the same."""
    from omb_py.backends.registry import find

    session = find("mpi").connect({})
    validate.ITERATIONS = 3
    told: dict[str, Any] = {"library": session.library}
    for binding in ("native", "mpi4py"):
        for benchmark, cell in cells(binding):
            said = session.gather(measured(session, benchmark, cell))
            told[named(cell)] = said[0] if said and all(one == said[0] for one in said) else said
        told |= spoiled(session, binding)
    if 0 in session.local:
        Path(sys.argv[1]).write_text(json.dumps(told))
    session.close()


if __name__ == "__main__":
    main()

"""One rank of the fidelity benchmark: runs both sides in turn on the same communicator and buffers.

Started by :mod:`tests.bench.fidelity` under mpiexec; rank 0 writes one JSON file.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from omb_py.backends.registry import find as find_backend
from omb_py.engine.benchmark import Cell
from omb_py.engine.measure import buffers_needed, measure, worlds_of
from omb_py.suites.registry import find
from tests.bench.ratios import orders
from tests.bench.reference import Reference

Side = Callable[[], float]


def printed(measured: Any, unit: str) -> float:
    """What omb-py prints for a cell, on rank 0: microseconds or MB/s (bytes per µs)."""
    (means,) = measured.laps.values()
    if not means:
        return 0.0
    mean: float = sum(means) / len(means)
    return measured.bytes_moved / mean if unit == "MB/s" else mean


class Sides:
    """The sides of one cell, each a function that runs one block and returns the number it prints."""

    def __init__(self, session: Any, cell: Cell, reference: Reference | None) -> None:
        self.session, self.cell, self.reference = session, cell, reference
        self.benchmark = find(cell.benchmark)
        self.memory = session._memory[cell.buffer]

    def native(self) -> float:
        """Our native binding, as `omb-py` runs it."""
        return printed(measure(self.session, self.benchmark, self._bound("native")), self.benchmark.metric.unit)

    def mpi4py(self) -> float:
        """Our mpi4py binding, as `omb-py` runs it."""
        return printed(measure(self.session, self.benchmark, self._bound("mpi4py")), self.benchmark.metric.unit)

    def c(self) -> float:
        """The C reference."""
        assert self.reference is not None
        cell = self.cell
        return self.reference.run(cell.benchmark, self.memory, cell.size, cell.iterations, cell.warmup, cell.window)

    def late(self) -> float:
        """The C reference with one more reading of the clock between barrier and timer (collectives only)."""
        assert self.reference is not None
        cell = self.cell
        name = f"{cell.benchmark}_late"
        return self.reference.run(name, self.memory, cell.size, cell.iterations, cell.warmup, cell.window)

    def bare(self) -> float:
        """The hand-written mpi4py loop."""
        from tests.bench.bare import LOOPS

        cell = self.cell
        send, recv = self._messages()
        return LOOPS[cell.benchmark](self.session.world, send, recv, cell.iterations, cell.warmup, cell.window)

    def _bound(self, binding: str) -> Cell:
        from dataclasses import replace

        return replace(self.cell, binding=binding)

    def _messages(self) -> tuple[Any, Any]:
        import numpy as np

        names = ("buf", "buf") if self.cell.benchmark == "bcast" else ("send", "recv")
        views = [self.memory.view(name, self.cell.size) for name in names]
        if self.cell.benchmark == "allreduce":
            return views[0].view(np.int32), views[1].view(np.int32)
        return [views[0].view(np.int8), self.session.mpi.CHAR], [views[1].view(np.int8), self.session.mpi.CHAR]


def run_cell(session: Any, plan: Mapping[str, Any], names: tuple[str, str, str | None], sides: Sides) -> dict[str, Any]:
    """All quads of one cell; rank 0's values count."""
    a, b, extra = names
    block = {"A": getattr(sides, a), "B": getattr(sides, b)}
    for side in block.values():
        side()  # each side once, so that nothing is done for the first time in a block that counts
    quads, extras = [], []
    for order in orders(plan["quads"]):
        values = []
        for side in order:
            session.barrier()
            values.append(block[side]())
        quads.append({"order": order, "values": values})
        if extra:
            session.barrier()
            extras.append(getattr(sides, extra)())
    return {**plan, "sides": [a, b], "runs": quads, "extra": extra, "extra_values": extras}


def main() -> None:
    """Run the launch that the plan file describes."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    session = find_backend("mpi").connect({"thread_level": plan["thread_level"]})
    library = plan.get("reference")
    reference = Reference(Path(library), session.mpi, session.world) if library else None
    cells = []
    for entry in plan["cells"]:
        benchmark = find(entry["benchmark"])
        cells.append(
            Cell(
                entry["benchmark"], "mpi", "native", entry["size"], dtype=benchmark.dtype,
                iterations=entry["iterations"], warmup=entry["warmup"], auto=False,
            )
        )  # fmt: skip
    needed: dict[str, int] = {}
    world = worlds_of(session)[session.rank]
    for cell in cells:
        for buffer, nbytes in buffers_needed(find(cell.benchmark), [cell], world).items():
            needed[buffer] = max(needed.get(buffer, 0), nbytes)
    session.reserve("numpy", needed)
    began = time.monotonic()
    names = tuple(plan["sides"])
    rows = [
        run_cell(session, entry, names, Sides(session, cell, reference))
        for entry, cell in zip(plan["cells"], cells, strict=True)
    ]
    if session.rank == 0:
        facts = {
            "library": session.library, "library_version": session.library_version, "ranks": session.size,
            "thread_level": session.thread_level, "binding_version": session.binding_version,
            "seconds": time.monotonic() - began,
        }  # fmt: skip
        Path(plan["output"]).write_text(json.dumps({**facts, "cells": rows}))
    session.close()


if __name__ == "__main__":
    main()

"""One rank of the fidelity benchmark: runs both sides in turn on the same communicator and buffers.

Started by :mod:`tests.lab.fidelity` under mpiexec; rank 0 writes one JSON file.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from omb_py.backends.registry import capabilities_of
from omb_py.backends.registry import find as find_backend
from omb_py.engine.measuring.measure import buffers_needed, measure, worlds_of
from omb_py.engine.measuring.validate import TIMED_LOOP, Checker
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.language import Program, Step, walk
from omb_py.options.table import make_cell, usual_cell
from omb_py.suites.registry import find
from tests.lab.fidelity.plan import declared
from tests.lab.fidelity.ratios import orders
from tests.lab.fidelity.reference import FAMILIES, Reference
from tests.support.kinds import checkable

Side = Callable[[], float]
LEAST_QUADS = 4
"""However long they take."""


def printed(measured: Any, unit: str, part: str = "") -> float:
    """What omb-py prints for a cell, on rank 0: microseconds or MB/s (bytes per µs).

    Of a non-blocking collective a part: ``pure``, or ``exposed``, which is overall - compute = init + wait. Of a
    one-sided benchmark ``loop``: with the readings of the clock between the samples.
    """
    parts = {"pure": ("pure.time",), "exposed": ("overlap.init", "overlap.wait"), "loop": ("clock", "time")}
    names = parts.get(part, ("time",))
    if not measured.laps[names[0]]:
        return 0.0
    mean = sum(statistics.fmean(measured.laps[name]) for name in names)
    return float(measured.bytes_moved / mean if unit == "MB/s" else mean)


class _Open:
    """A runner that is not closed after a block."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.runner, name)

    def close(self) -> None:
        """Later: :meth:`Kept.close`."""


class Kept:
    """A session that makes the objects of a cell once, so that all blocks of both sides use the same window."""

    def __init__(self, session: Any) -> None:
        self.session, self._open = session, dict[str, _Open]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    def load(self, cell: Cell, programs: Mapping[int, Any]) -> Any:
        """The runner of this binding, which stays open."""
        if cell.binding not in self._open:
            self._open[cell.binding] = _Open(self.session.load(cell, programs))
        return self._open[cell.binding]

    def close(self) -> None:
        """Free what the cell needed."""
        for kept in self._open.values():
            kept.runner.close()


class Sides:
    """The sides of one cell, each a function that runs one block and returns the number it prints."""

    def __init__(self, session: Any, row: str, cell: Cell, reference: Reference | None) -> None:
        self.session, self.cell, self.reference = Kept(session), cell, reference
        self.row, self.benchmark = row, find(cell.benchmark)
        self.memory = session.comms.memory if session.backend == "oneccl" else session._memory[cell.buffer]

    def share(self) -> None:
        """Let the C loop use the graph, the window and the reply's byte of our native binding."""
        assert self.reference is not None
        program = self.program()
        runner = self.session.load(self._bound("native"), {self.session.rank: program})
        steps = (node for stage in program.stages for body in stage.variants for node, _ in walk(body))
        graph = next((self.session.comm_of(s) for s in steps if isinstance(s, Step) and s.edges is not None), None)
        window = runner.window
        reply = self.memory.address("ack") if any(b.name == "ack" for b in program.buffers) else 0
        there = window.bases[1 - self.session.rank] if window else 0
        self.reference.use(graph, window.win if window else None, there, reply)

    def wrong_bytes(self, side: Side) -> int | None:
        """Bytes on all ranks that are not what must be there after a block; None where no data moves."""
        if not checkable(self.benchmark):
            return None
        worlds, last = worlds_of(self.session), self.cell.sampling.warmup + self.cell.sampling.iterations - 1
        programs = {self.session.rank: self.program()}
        runner = self.session.load(self._bound("native"), programs)
        checker = Checker(self.cell, worlds, programs, None)
        stage = len(programs[self.session.rank].stages) - 1
        checker.fill(runner, stage, TIMED_LOOP)
        self.session.barrier()
        side()
        self.session.barrier()
        return int(self.session.total(checker.wrong(runner, stage, TIMED_LOOP, last)).sum())

    def program(self) -> Program:
        """What this rank does."""
        return self.benchmark.program(worlds_of(self.session)[self.session.rank], self.cell)

    def _printed(self, binding: str) -> float:
        measured = measure(self.session, self.benchmark, self._bound(binding))
        return printed(measured, self.benchmark.metric.unit, self.row.partition(".")[2])

    def close(self) -> None:
        """Free what the cell needed."""
        self.session.close()

    def native(self) -> float:
        """Our native binding, as `omb-py` runs it."""
        return self._printed("native")

    def mpi4py(self) -> float:
        """Our mpi4py binding, as `omb-py` runs it."""
        return self._printed("mpi4py")

    def torch(self) -> float:
        """Our torch binding, as `omb-py` runs it: the median of the calls (see :mod:`tests.lab.fidelity`)."""
        return self._median("torch")

    def oneccl(self) -> float:
        """Our native binding of oneCCL, as `omb-py` runs it: the median of the calls."""
        return self._median("native")

    def bare_oneccl(self) -> float:
        """The C loop over the same function, communicator and buffers."""
        from tests.lab.fidelity.bare_oneccl import allreduce

        return allreduce(self.session, self.cell.size, self.cell.sampling.iterations, self.cell.sampling.warmup)

    def _median(self, binding: str) -> float:
        series = measure(self.session, self.benchmark, self._bound(binding)).series
        return float(np.median(series["time"]["avg"])) if series else 0.0  # it is complete on rank 0 only

    def bare_torch(self) -> float:
        """The hand-written loop of torch.distributed, on the same memory."""
        from tests.lab.fidelity.bare_torch import LOOPS

        memory = self.memory.view("recv", self.cell.size)
        return LOOPS[self.cell.benchmark](memory, self.cell.sampling.iterations, self.cell.sampling.warmup)

    def c(self) -> float:
        """The C reference."""
        assert self.reference is not None
        cell = self.cell
        return self.reference.run(
            self.row, self.memory, cell.size, cell.sampling.iterations, cell.sampling.warmup, cell.options.window
        )

    def late(self) -> float:
        """The C reference with one more reading of the clock between barrier and timer (collectives only)."""
        assert self.reference is not None
        cell = self.cell
        name = f"{cell.benchmark}_late"
        return self.reference.run(
            name, self.memory, cell.size, cell.sampling.iterations, cell.sampling.warmup, cell.options.window
        )

    def idle(self) -> float:
        """Nothing at all, which the check of the data must find."""
        return 1.0

    def bare(self) -> float:
        """The hand-written mpi4py loop."""
        from tests.lab.fidelity.bare import LOOPS

        cell = self.cell
        send, recv = self._messages()
        return LOOPS[cell.benchmark](
            self.session.world, send, recv, cell.sampling.iterations, cell.sampling.warmup, cell.options.window
        )

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


def quad_orders(session: Any, plan: Mapping[str, Any]) -> Iterator[str]:
    """The order of each quad of a cell: as many as planned, or fewer where its seconds are over on rank 0."""
    began = time.monotonic()
    for number, order in enumerate(orders(plan["quads"])):
        late = time.monotonic() - began >= plan.get("seconds", float("inf"))
        if number >= LEAST_QUADS and number % 2 == 0 and session.share(late):
            return  # after an even number, so that each side came first equally often
        yield order


def run_cell(session: Any, plan: Mapping[str, Any], names: tuple[str, str, str | None], sides: Sides) -> dict[str, Any]:
    """All quads of one cell; rank 0's values count."""
    a, b, extra = names
    block = {"A": getattr(sides, a), "B": getattr(sides, b)}
    wrong: dict[str, int | None] = {}
    if plan["benchmark"] in FAMILIES:
        sides.share()
        wrong = {side: sides.wrong_bytes(run) for side, run in block.items()}
    for run in block.values():
        run()  # each side once, so that nothing is done for the first time in a block that counts
    quads, extras = [], []
    for order in quad_orders(session, plan):
        values = []
        for side in order:
            session.barrier()
            values.append(block[side]())
        quads.append({"order": order, "values": values})
        if extra:
            session.barrier()
            extras.append(getattr(sides, extra)())
    sides.close()
    return {**plan, "sides": [a, b], "wrong_bytes": wrong, "runs": quads, "extra": extra, "extra_values": extras}


def main() -> None:
    """Run the launch that the plan file describes."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    backend, ranks = plan["backend"], int(os.environ.get("WORLD_SIZE", "2"))
    session = find_backend(backend).connect({"thread_level": plan["thread_level"], "ranks": ranks})
    library = plan.get("reference")
    reference = Reference(Path(library), session.mpi, session.world) if library else None
    cells = []
    for entry in plan["cells"]:
        counted = {"iterations": entry["iterations"], "warmup": entry["warmup"], "auto": False}
        kind = declared(entry["benchmark"])
        offer = capabilities_of()[backend]
        cell = make_cell(kind, backend, next(iter(offer.bindings)), entry["size"], **counted)
        cells.append(offer.fitted(kind, cell, usual_cell(kind)))
    needed: dict[str, int] = {}
    world = worlds_of(session)[session.rank]
    for cell in cells:
        sizes, ours = buffers_needed(find(cell.benchmark), [cell], world)
        for buffer in ours:
            needed[buffer] = max(needed.get(buffer, 0), sizes[buffer])
    session.reserve("numpy", needed)
    began = time.monotonic()
    names = tuple(plan["sides"])
    rows = [
        run_cell(session, entry, names, Sides(session, entry["benchmark"], cell, reference))
        for entry, cell in zip(plan["cells"], cells, strict=True)
    ]
    if session.rank == 0:
        facts = {
            "library": session.library,
            "library_version": session.library_version,
            "ranks": session.size,
            "thread_level": session.thread_level,
            "binding_version": session.binding_version,
            "seconds": time.monotonic() - began,
        }
        Path(plan["output"]).write_text(json.dumps({**facts, "cells": rows}))
    session.close()


if __name__ == "__main__":
    main()

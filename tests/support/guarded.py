"""Memory that ends at a page nobody may touch: one byte too far ends the process where it happens.

``python -m tests.support.guarded FILE`` is one rank of an MPI launch. Buffers of benchmarks, the tables that generated
code reads, its samples, requests and statuses all lie in such memory, and then every benchmark of
:mod:`tests.support.conformance` is measured and validated by the native binding.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import pkgutil
import sys
import weakref
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.registry import find as find_backend
from omb_py.engine.measuring import validate
from omb_py.engine.measuring.host_memory import HostMemory
from omb_py.engine.measuring.measure import measure
from omb_py.engine.native import opcodes as R
from omb_py.engine.native.translate import Assembler
from omb_py.engine.program.benchmark import Cell
from omb_py.options.table import change_cell, make_cell
from omb_py.suites.guidelines import patterns
from omb_py.suites.registry import find
from tests.support.capabilities import benchmarks_of
from tests.support.kinds import checkable

PAGE = mmap.PAGESIZE
CANARY = 0xC5
"""In front of memory that does not begin on a page boundary: nobody writes there."""
GUARDED = (
    "omb_py.backends.mpi.calls.array",
    "omb_py.engine.native.translate.array",
    "omb_py.engine.native.threads.array",
    "omb_py.engine.samples.array",
)
"""Modules whose arrays C code reads or writes."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_slack: dict[int, tuple[weakref.ref[NDArray[np.uint8]], slice]] = {}
"""Each block that is still in use, and where its canaries are."""


def allocate(nbytes: int, at_end: bool = True) -> NDArray[np.uint8]:
    """Bytes between two pages that nobody may touch. Raises OSError.

    Args:
        nbytes: how many.
        at_end: the page behind them follows at once; otherwise the page before them ends where they begin.
    """
    room = -(-max(1, nbytes) // PAGE) * PAGE
    block = mmap.mmap(-1, room + 2 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    everything = np.frombuffer(block, np.uint8)
    for page in (0, room + PAGE):
        if _LIBC.mprotect(ctypes.c_void_p(everything.ctypes.data + page), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    start = PAGE + (room - nbytes if at_end else 0)
    view = everything[start : start + nbytes]
    rest = slice(PAGE, start) if at_end else slice(start + nbytes, PAGE + room)
    everything[rest] = CANARY
    key, forget = id(everything), _slack.pop
    _slack[key] = weakref.ref(everything, lambda _: forget(key, None)), rest
    return view


def overwritten() -> int:
    """How many bytes beside guarded memory, on its own pages, are no longer as they were."""
    blocks = [(block(), rest) for block, rest in list(_slack.values())]
    return sum(int((block[rest] != CANARY).sum()) for block, rest in blocks if block is not None)


class Numbers(np.ndarray[Any, np.dtype[Any]]):
    """What stands in for ``array.array``: its numbers lie in guarded memory."""

    def buffer_info(self) -> tuple[int, int]:
        return int(self.ctypes.data), self.size

    def __mul__(self, times: Any) -> Any:
        return numbers(np.tile(self, times), self.nbytes and _is_at_end(self))


def numbers(plain: NDArray[Any], at_end: bool = True) -> Numbers:
    """A copy in guarded memory."""
    placed = allocate(plain.nbytes, at_end).view(plain.dtype).view(Numbers) if plain.nbytes else plain.view(Numbers)
    placed[...] = plain
    return placed


def _is_at_end(values: Numbers) -> bool:
    return (values.ctypes.data + values.nbytes) % PAGE == 0


def array_at(at_end: bool) -> Any:
    """A maker of arrays as ``array.array`` is one."""

    def made(kind: str, values: Any = ()) -> Numbers:
        plain = array(kind, values)
        return numbers(np.frombuffer(plain, kind) if len(plain) else np.zeros(0, kind), at_end)

    return made


@contextmanager
def guarded(at_end: bool = True) -> Iterator[set[str]]:
    """All new memory of this process's benchmarks is guarded; the names of the steps that generated code does."""
    seen: set[str] = set()
    plain, step = HostMemory._allocate, Assembler.step

    def memory(self: HostMemory, nbytes: int) -> tuple[Any, int]:
        if self.kind != "numpy":
            return plain(self, nbytes)
        view = allocate(nbytes, at_end)
        return view, int(view.ctypes.data)

    def noted(self: Assembler, what: Any) -> None:
        seen.add(what.op)
        step(self, what)

    with patch.object(HostMemory, "_allocate", memory), patch.object(Assembler, "step", noted):
        patches = [patch(name, array_at(at_end)) for name in GUARDED]
        for each in patches:
            each.start()
        try:
            yield seen
        finally:
            for each in patches:
                each.stop()


SIZE_CLASSES = (1, 24, 70_008)
"""Bytes: one, a few, and more than a library sends at once (rendezvous)."""
PLANTED = {
    "buffer": (
        "omb_py.engine.measuring.host_memory.HostMemory.reserve",
        lambda real: lambda m, n, b: real(m, n, b - 8),
    ),
    "request": (
        "omb_py.backends.mpi.calls.MpiResolver.__init__",
        lambda real: lambda c, comm_of, memory, requests, *more: real(c, comm_of, memory, requests - 1, *more),
    ),
    "table": (
        "omb_py.engine.native.translate.Machine.run",
        lambda real: lambda m, t, *more: real(m, replace(t, rows=numbers(np.array(t.rows[: -R.WIDTH]))), *more),
    ),
}
"""A mistake in omb-py -> what it changes, and how: each must end the process."""


def guarded_cells(ranks: int, sizes: tuple[int, ...]) -> Iterator[Cell]:
    """Every benchmark of MPI and guideline at these sizes; one-sided ones with windows in guarded memory."""
    for benchmark in (*map(find, benchmarks_of("mpi")), *patterns.BENCHMARKS.values()):
        if benchmark.ranks.admits(ranks) and not benchmark.ranks.over_nodes:
            usual = make_cell(benchmark, "mpi", "native", 24, window=3, iterations=2, auto=False, warmup=1)
            usual = change_cell(usual, validate=checkable(benchmark), iterations=1 if benchmark.once else 2)
            for size in benchmark.sizes_for(usual.dtype, sizes):
                cell = replace(usual, size=size)
                kinds = ("create", "dynamic") if benchmark.family == "one-sided" else (cell.options.window_kind,)
                yield from (change_cell(cell, window_kind=kind) for kind in kinds)
            if "tests" in benchmark.options:  # -t tests requests while it computes
                yield change_cell(usual, tests=3)
    # the only one that answers whoever comes first
    step = make_cell(find("step"), "mpi", "native", 0, iterations=2, auto=False, warmup=1)
    yield change_cell(step, workload="parameter_server:mode=any,model=mlp", validate=True)


def main() -> None:
    """One rank: all cells, at both ends; rank 0 writes what was wrong, and the steps that were done."""
    validate.ITERATIONS = 2
    planted = json.loads(sys.argv[2]) if len(sys.argv) > 2 else ""
    session = find_backend("mpi").connect({"thread_level": "multiple"})
    wrong, seen, damaged = list[str](), set[str](), 0
    if planted:
        place, mistake = PLANTED[planted]
        patch(place, mistake(pkgutil.resolve_name(place))).start()
    for at_end in (True, False):
        session._memory.clear()
        with guarded(at_end) as steps:
            for cell in guarded_cells(session.size, SIZE_CLASSES if at_end else SIZE_CLASSES[1:2]):
                # a guard that is hit ends the process: the last line of stderr says in which cell
                print(
                    f"guarded at its {'end' if at_end else 'start'}: {cell.benchmark}, {cell.size} B", file=sys.stderr
                )
                sys.stderr.flush()
                done = measure(session, find(cell.benchmark), cell)
                if 0 in session.local and done.wrong_bytes:
                    wrong.append(f"{cell.benchmark}, {cell.size} B: {done.wrong_bytes} wrong bytes")
                damaged += overwritten()
        seen |= steps
    if 0 in session.local:
        Path(sys.argv[1]).write_text(json.dumps({"wrong": wrong, "overwritten": damaged, "steps": sorted(seen)}))
    session.close()


if __name__ == "__main__":
    main()

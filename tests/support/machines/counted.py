"""One of two ranks whose MPI calls are counted (``python -m tests.support.machines.counted FILE``).

The shim (tests/calls/shim.c) stands before the library, so what is counted is what the library is really called with,
by generated code and by mpi4py alike.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.support.c_library import shared_library
from tests.support.machines.mpi import run_command

FOLDER = Path(__file__).parents[2] / "calls"
SIZE, WINDOW = 24, 3
NUMBERS = frozenset({"count", "block", "each", "received", "number", "partitions", "partition_items"})
"""Operands that are numbers of elements or requests: what a call moves."""


_HAS_LARGE = """
import ctypes, mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print("yes" if hasattr(ctypes.CDLL(MPI.__file__), "MPI_Send_c") else "", end="")
"""


def build(folder: Path) -> Path:
    """Compile the shim for every function that a step calls. Raises CalledProcessError."""
    from omb_py.backends.mpi.calls import CALLS

    large = run_command([sys.executable, "-c", _HAS_LARGE], check=True).stdout
    lines = []
    for function, words in sorted(set(CALLS.values())):
        arrays = sum(1 << place for place, word in enumerate(words.split()) if word.endswith("counts"))
        forms = (function, f"{function}_c") if large else (function,)  # mpi4py calls the large ones where they are
        lines += [f"WRAP({form}, {arrays})\n" for form in forms]
    (folder / "wrapped.h").write_text("".join(dict.fromkeys(lines)))
    return shared_library(FOLDER / "shim.c", folder / "shim.so", "-w", f"-I{folder}")


class Shim:
    """The preloaded library: what was called between start and stop, as text."""

    def __init__(self, path: str) -> None:
        import mpi4py

        mpi4py.rc.initialize = False  # the session does it, at its thread level
        from mpi4py import MPI

        from omb_py.backends.mpi import calls

        self._library = ctypes.CDLL(path)
        self._library.counted_array.restype = ctypes.c_void_p
        self._library.counted_name.restype = ctypes.c_char_p
        self._library.counted_operands.restype = ctypes.POINTER(ctypes.c_long)
        self._library.counted_bind(MPI.__file__.encode())
        self._words = {function: words.split() for function, words in calls.CALLS.values()}
        real, shim = calls._library(), self._library

        class Both:
            """Functions of the shim, else of the library."""

            def __getattr__(self, name: str) -> Any:
                return getattr(shim, name) if name.startswith("MPI_") and hasattr(shim, name) else getattr(real, name)

        calls._library = lambda: Both()  # type: ignore[assignment]

    def start(self) -> None:
        self._library.counted_start()

    def stop(self) -> list[str]:
        """``3 x MPI_Isend 24``: calls in order, equal ones counted, with how much each moves."""
        said = [self._call(number) for number in range(self._library.counted_stop())]
        runs = [(text, len(list(group))) for text, group in groupby(said)]
        return [f"{times} x {text}" if times > 1 else text for text, times in runs]

    def _call(self, number: int) -> str:
        name = self._library.counted_name(number).decode()
        operands, wide = self._library.counted_operands(number), name.endswith("_c")
        name = name.removesuffix("_c")
        parts = [name]
        for place, word in enumerate(self._words[name]):
            if word in NUMBERS:
                parts.append(
                    str(ctypes.c_int64(operands[place]).value if wide else ctypes.c_int(operands[place]).value)
                )
            elif word.endswith("counts"):
                kind = ctypes.c_int64 if wide else ctypes.c_int
                found = ctypes.cast(self._library.counted_array(number, place), ctypes.POINTER(kind))
                parts.append(str([found[0], found[1]]) if operands[place] else "-")
        return " ".join(parts)


def counted(session: Any, shim: Shim, name: str, binding: str) -> dict[str, list[str]]:
    """Calls of one benchmark on this rank: ``STAGE setup``, ``STAGE``, ``STAGE teardown`` -> calls of one iteration."""
    from omb_py.engine.measuring.measure import worlds_of
    from omb_py.options.table import make_cell
    from omb_py.suites.registry import BENCHMARKS

    benchmark = BENCHMARKS[name]
    (size,) = benchmark.sizes_for(benchmark.dtype, (SIZE,))
    cell = make_cell(benchmark, "mpi", binding, size, window=WINDOW, tests=2 if "tests" in benchmark.options else 0)
    programs = {rank: benchmark.program(world, cell) for rank, world in worlds_of(session).items()}
    runner = session.load(cell, programs)
    found: dict[str, list[str]] = {}
    stages = next(iter(programs.values())).stages
    known = {(stage.name, lap): 1000.0 for stage in stages for lap in ("time", *stage.laps)}
    for number, stage in enumerate(stages):
        shim.start()
        runner.enter(number, known)
        found[f"{stage.name} setup"] = shim.stop()
        session.barrier()
        shim.start()
        runner.run(number, 0, 2 if "thread_counts" in benchmark.options else 1)  # each of two threads once
        found[stage.name] = shim.stop()
        session.barrier()
        shim.start()
        runner.leave(number)
        found[f"{stage.name} teardown"] = shim.stop()
        session.barrier()
    runner.close()
    return {part: said for part, said in found.items() if said}


def main() -> None:
    """Every benchmark with both bindings; rank 0 writes BINDING -> NAME -> what each rank called."""
    from omb_py.backends.registry import find
    from omb_py.suites.registry import BENCHMARKS
    from tests.support.capabilities import benchmarks_of

    shim = Shim(os.environ["LD_PRELOAD"].split(":")[0])
    session = find("mpi").connect({"thread_level": "multiple"})
    told: dict[str, dict[str, Any]] = {}
    for binding in ("native", "mpi4py"):
        for name in benchmarks_of("mpi"):
            benchmark = BENCHMARKS[name]
            if benchmark.once or benchmark.ranks.over_nodes or not benchmark.ranks.admits(session.size):
                continue
            said = session.gather(counted(session, shim, name, binding))
            told.setdefault(binding, {})[name] = said
    if session.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(told))
    session.close()


if __name__ == "__main__":
    main()

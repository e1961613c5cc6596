"""One rank of a launch that checks derived datatypes: ``python -m tests.support.sessions.layouts FILE NAMES``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from omb_py.engine.measuring.measure import measure
from omb_py.suites.registry import BENCHMARKS
from omb_py.testing.faults import parse_fault, with_fault
from tests.support.checked_cells import checked_cell

LAYOUTS = ("cont", "vect:8:3", "indx:1+2,4+1")


def main() -> None:
    """The named benchmarks, which take -D, with both bindings; rank 0 writes what was wrong."""
    from omb_py.backends.registry import find

    session = find("mpi").connect({"thread_level": "multiple"})
    wrong, checked = [], 0
    for name in json.loads(sys.argv[2]):
        benchmark = BENCHMARKS[name]
        over_nodes = benchmark.ranks.over_nodes
        if not benchmark.ranks.admits(session.size):
            continue
        if over_nodes and not over_nodes(session.hosts):
            continue
        for number, layout in enumerate(LAYOUTS if session.size == 2 else LAYOUTS[-1:]):
            binding, buffer = (("native", "numpy"), ("mpi4py", "bytearray"))[number % 2]
            cell = checked_cell(name, "mpi", binding, 64, 2, dtype="int32", ddt=layout, window=3, buffer=buffer)
            other = replace(cell, binding="mpi4py" if cell.binding == "native" else "native")
            for one in (cell, other) if number == len(LAYOUTS) - 1 else (cell,):
                done = measure(session, benchmark, one)
                checked += 1
                if session.rank == 0 and done.validated is not True:
                    wrong.append(f"{name} {layout} {one.binding}: {done.wrong_bytes} wrong bytes")
    cell = checked_cell("bcast", "mpi", "native", 64, 2, ddt="vect:8:3")
    flipped = measure(session, with_fault(BENCHMARKS["bcast"], parse_fault("flip:1")), cell)
    if session.rank == 0:
        Path(sys.argv[1]).write_text(
            json.dumps({"wrong": wrong, "checked": checked, "flipped": [flipped.validated, flipped.wrong_bytes]})
        )
    session.close()


if __name__ == "__main__":
    main()

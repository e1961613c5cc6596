"""A rank that sends Python objects of every kind: ``python -m tests.support.sessions.object_session FILE``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from omb_py.engine.measuring.measure import measure
from omb_py.engine.program.buffers import OBJECTS
from omb_py.suites.registry import find
from omb_py.testing.faults import parse_fault, with_fault
from tests.support.checked_cells import checked_cell

SIZE = 1 << 19
"""Above mpi4py's threshold for sending a buffer out of band."""
MOVING = ("latency", "bcast", "allgather", "alltoall", "gather", "scatter", "neighbor_allgather", "neighbor_alltoall")
REDUCING = ("allreduce", "reduce")


def measured(session: Any, name: str, kind: str, size: int, oob: bool, fault: str, dtype: str = "char") -> list[Any]:
    """(validated, wrong bytes, pickled bytes, bytes out of band) of a cell."""
    kept = {"dtype": dtype, "buffer": "object", "object_kind": kind, "out_of_band": oob, "root": session.size - 1}
    cell = checked_cell(name, "mpi", "mpi4py", size, 3, **kept)
    done = measure(session, with_fault(find(name), parse_fault(fault)), cell)
    extra = done.extra
    return [done.validated, done.wrong_bytes, extra.get("pickled_bytes"), extra.get("out_of_band_bytes")]


def main() -> None:
    """Every step with every kind, in band; out of band where mpi4py can; and one byte inverted in some."""
    from omb_py.backends.registry import find as backend

    session = backend("mpi").connect({"thread_level": "multiple"})
    last = session.size - 1
    told = {}
    for name in MOVING:
        if not find(name).ranks.admits(session.size):
            continue
        for kind in OBJECTS:
            told[f"{name} {kind} pickled"] = measured(session, name, kind, 4096, False, "")
        if not name.startswith("neighbor"):
            told[f"{name} ndarray beside"] = measured(session, name, "ndarray", SIZE, True, "")
        told[f"{name} list wrong"] = measured(session, name, "list", 64, False, f"flip:{last}")
    for name in REDUCING:
        for dtype in ("int32", "float64", "complex64"):
            told[f"{name} {dtype} pickled"] = measured(session, name, "ndarray", 240, False, "", dtype)
        told[f"{name} int32 wrong"] = measured(session, name, "ndarray", 240, False, f"flip:{last}", "int32")
    if session.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(told))
    session.close()


if __name__ == "__main__":
    main()

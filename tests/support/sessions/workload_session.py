"""One rank of a launch of tests/backends/test_workloads.py: ``python -m tests.support.sessions.workload_session``.

Workloads, small, on real ranks: right bytes, right answer. A rank's arguments: backend, ranks, file, and what is
measured, ``families`` or ``inference``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from omb_py.backends.registry import find as find_backend
from omb_py.engine.measuring import validate
from omb_py.engine.measuring.measure import measure
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.suites.registry import find
from omb_py.suites.workloads.families import FAMILIES
from tests.support.checked_cells import checked_cell
from tests.support.small_workloads import FORMS, SMALL, WRITES, WRITTEN, instances_of, text_of

GROUPED = "three_d"
"""A family with groups of ranks: tried with mpi4py too."""
GUIDELINE = "gl24node_bcast"
"""A mock-up of a guideline in groups of ranks."""
COMPUTING = "ddp:scale=1/16,tokens=4,compute=matmul"
"""Real matrix products beside the calls, with every binding."""


FAMILIES_ALL, INFERENCE = "families", "inference"
"""What is measured."""


def texts_of(backend: str, what: str, ranks: int) -> tuple[str, ...]:
    """Names of families, and whole workloads."""
    if what == INFERENCE:
        return tuple(instances_of(form, ranks) for form in (FORMS | WRITTEN).values())
    return (*FAMILIES, COMPUTING, *([WRITES] if backend == "mpi" else []))


def bindings_of(backend: str, name: str) -> tuple[str, ...]:
    """Through what a family is tried."""
    if backend == "gloo":
        return ("torch",)
    return ("native", "mpi4py") if name in (GROUPED, COMPUTING, WRITES) else ("native",)


def guideline_cell(mockup: Benchmark, backend: str) -> Cell:
    """A cell of the mock-up, which has groups without a workload."""
    binding = "torch" if backend == "gloo" else "native"
    return checked_cell(mockup, backend, binding, 64, 1, warmup=0)


def main(backend: str, ranks: int, out: Path, what: str) -> None:
    """Measure and check them all."""
    session = find_backend(backend).connect({"ranks": ranks, "thread_level": "funneled"})
    step, found = find("step"), {}
    validate.ITERATIONS = 1  # the timed one is checked, too
    for name in texts_of(backend, what, ranks):
        settings = SMALL.get(name, "")
        if session.library == "Open MPI":  # it has no bfloat16
            settings = settings.replace("bfloat16", "float32")
            if name in FAMILIES and "dtype" in FAMILIES[name].settings and "dtype" not in settings:
                settings = ",".join(filter(None, (settings, "dtype=float32")))
        for binding in bindings_of(backend, name):
            cell = checked_cell(step, backend, binding, 0, 1, workload=text_of(name, settings), warmup=0)
            done = measure(session, step, cell)
            found[f"{name} {binding}"] = {
                "wrong": done.wrong_bytes,
                "laps": {k: len(v) for k, v in done.laps.items()},
                "flop": done.extra.get("flop", 0),
                "compute_us": min(done.laps.get("step.compute", ()), default=0),
            }
    if what == FAMILIES_ALL:
        done = measure(session, mockup := find(GUIDELINE), guideline_cell(mockup, backend))
        found[GUIDELINE] = {"wrong": done.wrong_bytes, "laps": {}, "flop": 0, "compute_us": 0}
    if session.local[0] == 0:
        out.write_text(json.dumps(found))
    session.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])

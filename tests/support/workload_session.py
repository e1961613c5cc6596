"""One rank of a launch of tests/backends/test_workloads.py: ``python -m tests.support.workload_session``.

Every family of workloads, small, on real ranks: right bytes, right answer. A rank's arguments: backend, ranks, file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from omb_py.backends.registry import find as find_backend
from omb_py.engine.measure import measure
from omb_py.suites.registry import find
from omb_py.suites.workloads import FAMILIES
from tests.suites.workloads.test_families import SMALL, text_of


def main(backend: str, ranks: int, out: Path) -> None:
    """Measure and check them all."""
    session = find_backend(backend).connect({"ranks": ranks, "thread_level": "funneled"})
    step, found = find("step"), {}
    bindings = ("torch",) if backend == "gloo" else ("native", "mpi4py")
    for name in FAMILIES:
        for binding in bindings:
            cell = step.cell(
                backend, binding, 0, workload=text_of(name, SMALL[name]), iterations=1, auto=False, warmup=0,
                validate=True,
            )  # fmt: skip
            done = measure(session, step, cell)
            found[f"{name} {binding}"] = {"wrong": done.wrong_bytes, "laps": {k: len(v) for k, v in done.laps.items()}}
    if session.local[0] == 0:
        out.write_text(json.dumps(found))
    session.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))

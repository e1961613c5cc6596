"""A rank on the stand-in libnccl and the simulated device: measures cells, rank 0 prints what came out as JSON.

``python -m tests.support.sessions.nccl_cells CELLS``: cells as [{"benchmark": …, "size": …, …}]. ``without`` names a
synchronise to leave out (tests/backends/nccl/test_synchronises.py); ``share`` lets ranks share a device; ``binding``
is one of :data:`omb_py.backends.nccl.capabilities.BINDINGS`; ``inject`` puts a fault into its program. A cell that is
refused after a step has begun ends the process.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from omb_py.backends.nccl.calls import NcclResolver
from omb_py.backends.nccl.runner import LoweredRunner
from omb_py.backends.registry import capabilities_of
from omb_py.backends.registry import find as backend
from omb_py.engine.measuring import validate
from omb_py.engine.measuring.cache_rotation import CACHE_BYTES
from omb_py.engine.measuring.measure import measure, worlds_of
from omb_py.engine.session import StepFailed
from omb_py.errors import OmbError
from omb_py.options.table import make_cell, usual_cell
from omb_py.orchestrate.running.rank_process import arranged, reserve
from omb_py.suites.registry import find
from omb_py.testing.faults import parse_fault, with_fault
from tests.support.sessions.synchronises import left_out

BACKEND = os.environ.get("OMB_PY_TEST_BACKEND", "nccl")
DEVICE = os.environ.get("OMB_PY_TEST_DEVICE", "sim" if BACKEND == "nccl" else "cpu")
MULTIPLIED = {"benchmark": "step", "workload": "ddp:scale=1/64,tokens=2,compute=matmul", "timing": ""}
"""Matrix products on the device between its calls."""
OURS = ("benchmark", "size", "binding", "without", "share", "inject")


def measured(session: Any, words: dict[str, Any], runner: Any, resolver: Any) -> dict[str, Any]:
    """What a cell gave, with the classes that run it and that resolve its steps."""
    given = {"iterations": 3, "warmup": 1, "auto": False, "device": DEVICE, "validate": True}
    given |= {"timing": "isolated"} if session.backend == "nccl" else {}
    benchmark = with_fault(find(words["benchmark"]), parse_fault(words.get("inject", "")))
    options = {name: value for name, value in words.items() if name not in OURS}
    binding = words.get("binding", session.binding)
    cell = make_cell(benchmark, session.backend, binding, words.get("size", 0), **(given | options))
    cell = capabilities_of()[session.backend].fitted(benchmark, cell, usual_cell(benchmark))
    busy = []
    run = runner.run
    device = getattr(session.buffers or session, "device", None)
    is_busy = getattr(device, "busy", lambda: False)  # a GPU is not asked

    def watched(self: Any, stage: int, first: int, iterations: int) -> Any:
        samples = run(self, stage, first, iterations)
        busy.append(is_busy())
        return samples

    runner.run = watched
    try:
        with left_out(words.get("without", ""), resolver):
            if hasattr(session, "check_cells"):
                session.check_cells([cell], {benchmark.name: arranged(benchmark)})
            reserve(session, [cell], worlds_of(session))
            done = measure(session, arranged(benchmark), cell)
    except OmbError as error:
        return {"refused": str(error), "code": error.exit_code}
    except StepFailed as error:
        return {"refused": error.text, "code": -1}
    finally:
        runner.run = run
    means = {lap: sum(ranks) / len(ranks) for lap, ranks in done.laps.items() if ranks}
    return {
        "wrong": done.wrong_bytes,
        "iterations": done.iterations,
        "means": means,
        "marks": done.marks,
        "busy": any(session.gather(any(busy))),
        "native": session.comms.first != 0 if session.backend == "nccl" else None,
    }


def rotate_little() -> None:
    """Let ``cache: rotate`` span 16 MiB on every machine: all cells of a session keep their buffers on one device."""
    os.environ[CACHE_BYTES] = str(8 << 20)


def main() -> None:
    """One rank."""
    rotate_little()
    cells = json.loads(sys.argv[1])
    validate.ITERATIONS = 2
    spec = {"device": DEVICE, "share_device": any(cell.get("share") for cell in cells), "cells": cells}
    session = backend(BACKEND).connect(spec)
    found = [measured(session, cell, LoweredRunner, NcclResolver) for cell in cells]
    if session.rank == 0:
        print(json.dumps(found))
    if BACKEND == "nccl":  # a cell that did not wait leaves work behind
        session.device.call("synchronise", session.device.stream)
    session.close()


if __name__ == "__main__":
    main()

"""A rank on the stand-in libnccl and the simulated device: measures cells, rank 0 prints what came out as JSON.

``python -m tests.support.nccl_cells CELLS [PATCH]``: cells as [{"benchmark": …, "size": …, …}]; PATCH names a
synchronise to leave out (tests/backends/test_nccl_synchronises.py).
"""

from __future__ import annotations

import json
import sys
from typing import Any

from omb_py.backends.registry import find as backend
from omb_py.engine.measure import measure, worlds_of
from omb_py.errors import OmbError
from omb_py.orchestrate.worker import arranged, reserve
from omb_py.suites.registry import find
from tests.support import synchronises


def measured(session: Any, words: dict[str, Any]) -> dict[str, Any]:
    """What a cell gave."""
    given = {"iterations": 3, "warmup": 1, "auto": False, "device": "sim", "validate": True, "timing": "isolated"}
    benchmark = find(words["benchmark"])
    options = {k: v for k, v in words.items() if k not in ("benchmark", "size")}
    cell = benchmark.cell("nccl", "native", words.get("size", 0), **(given | options))
    try:
        session.check_cells([cell], {benchmark.name: arranged(benchmark)})
        reserve(session, [cell], worlds_of(session))
    except OmbError as error:
        return {"refused": str(error), "code": error.exit_code}
    done = measure(session, arranged(benchmark), cell)
    return {
        "wrong": done.wrong_bytes, "iterations": done.iterations, "laps": sorted(done.laps), "marks": done.marks,
        "means": {lap: sum(means) / len(means) for lap, means in done.laps.items() if means},
    }  # fmt: skip


import faulthandler; faulthandler.dump_traceback_later(8, file=open("/tmp/fh","a"))
def main() -> None:
    """One rank."""
    cells = json.loads(sys.argv[1])
    synchronises.leave_out(json.loads(sys.argv[2]) if len(sys.argv) > 2 else "")
    share = any(cell.get("share") for cell in cells)
    cells = [{k: v for k, v in cell.items() if k != "share"} for cell in cells]
    session = backend("nccl").connect({"device": "sim", "share_device": share})
    found = [measured(session, cell) for cell in cells]
    if session.rank == 0:
        print(json.dumps(found))
    session.close()


if __name__ == "__main__":
    main()

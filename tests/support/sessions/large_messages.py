"""One rank of a launch that sends and broadcasts more than 2^31 characters: ``python -m … FILE``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from omb_py.engine.program import steps
from omb_py.engine.program.language import Buffer, Lap, Program, Region, Stage, Step, body
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell

NBYTES = (1 << 31) + 4104
CELL = make_cell("bcast", "mpi", "native", NBYTES, iterations=1, auto=False, warmup=0)
_LOOKED_AT = (0, 1 << 20, (1 << 31) - 8, 1 << 31, NBYTES - 8)
"""Where eight bytes are looked at, on both sides of the limit."""


def moved(session: Any, binding: str, step: Step) -> dict[str, Any]:
    """Rank 0 marks some places; what rank 1 finds there, and what the library said."""
    program = Program((Buffer("buf", NBYTES),), (Stage(body(Lap(), step, Lap("time"))),))
    try:
        runner = session.load(replace(CELL, binding=binding), {session.rank: program})
        runner.enter(0, {})
    except EnvironmentProblem as problem:
        return {"problem": str(problem)}
    memory = runner.memory(session.rank, "buf")
    for number, place in enumerate(_LOOKED_AT):
        memory[place : place + 8] = np.arange(8) + 10 * number if session.rank == 0 else 0
    session.barrier()
    runner.run(0, 0, 1)
    return {"found": [memory[place : place + 8].tolist() for place in _LOOKED_AT]}


def main() -> None:
    """Both bindings; rank 0 writes what all ranks saw."""
    from omb_py.backends.registry import find

    session = find("mpi").connect({})
    whole = Region("buf", 0, NBYTES)
    message = steps.recv(whole, 0, "char") if session.rank else steps.send(whole, 1, "char")
    told = {}
    for binding in ("native", "mpi4py"):
        for name, step in (("bcast", steps.bcast(whole, 0, "char")), ("send", message)):
            told[f"{name} {binding}"] = session.gather(moved(session, binding, step))
    if session.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(told))
    session.close()


if __name__ == "__main__":
    main()

"""One rank of the launches of tests/backends/mpi/test_mpi.py: ``python -m tests.support.sessions.mpi_session FILE``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from omb_py.engine.measuring import validate
from omb_py.engine.measuring.measure import measure
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import Buffer, Host, Lap, Program, Region, RequestSlot, Result, Stage, body
from omb_py.engine.samples import LapTimes
from omb_py.engine.session import StepFailed
from omb_py.options.table import change_cell, make_cell
from omb_py.suites.registry import find
from tests.support import served as first_come
from tests.support.checked_cells import checked_cell

CELL = make_cell("allreduce", "mpi", "native", 1024, dtype="int32", iterations=6, auto=False, warmup=1)


def facts(session: Any, binding: str) -> Any:
    """What the session says of itself."""
    return {
        "size": session.size,
        "rank": session.rank,
        "local": list(session.local),
        "hosts": list(session.hosts),
        "library": session.library,
        "version": session.library_version,
        "level": session.thread_level,
        "binding_version": session.binding_version,
        "skew": session.skew(),
    }


def reductions(session: Any, binding: str) -> Any:
    """The engine's own traffic."""
    mine = np.array([float(session.rank), 1.0])
    return {
        "maximum": session.maximum(mine).tolist(),
        "total": session.total(mine).tolist(),
        "gather": session.gather(session.rank),
        "share": session.share(f"from {session.rank}"),
    }


def failing(session: Any, binding: str) -> Any:
    """A receive that is too short for its message: MPI's own error, named by its step."""
    world, peer = World(session.rank, session.size), 1 - session.rank
    long, short = Region("a", 0, 64), Region("b", 0, 8)
    step = steps.send(long, peer, "char") if session.rank else steps.recv(short, peer, "char")
    program = Program((Buffer("a", 64), Buffer("b", 64)), (Stage(body(Lap(), steps.barrier(), step, Lap("time"))),))
    runner = session.load(change_cell(CELL, binding=binding), {world.rank: program})
    runner.enter(0, {})
    try:
        runner.run(0, 0, 1)
    except StepFailed as error:
        return {"step": error.step, "doing": session.doing(error.step), "text": error.text, "at": session.position()}
    return None


def overlap(session: Any, binding: str) -> Any:
    """OMB's shape of a non-blocking collective: a pure stage, then compute for as long between start and wait."""

    def program(world: World, cell: Cell) -> Program:
        send, recv = Region("send", 0, cell.size), Region("recv", 0, cell.size)
        start = steps.nonblocking(steps.allreduce(send, recv, cell.dtype, "sum"), RequestSlot(0))
        pure = Stage(body(Lap(), start, steps.wait(RequestSlot(0)), Lap("time")), name="pure")
        busy = Stage(
            body(
                Lap(),
                start,
                Lap("init"),
                steps.compute(Result("pure", "time")),
                Lap("compute"),
                steps.wait(RequestSlot(0)),
                Lap("wait"),
            ),
            setup=(Host("note", lambda s: seen.append("setup")),),
            name="both",
            teardown=(Host("note", lambda s: seen.append("end")),),
        )
        return Program((Buffer("send", cell.size), Buffer("recv", cell.size)), (pure, busy))

    seen: list[str] = []
    plain = find("allreduce")
    kind: Benchmark = replace(plain, name="iallreduce", program=program)
    done = measure(session, kind, replace(CELL, benchmark="iallreduce", binding=binding, size=65536))
    laps = {lap: float(np.mean(means)) for lap, means in done.laps.items()} if session.rank == 0 else {}
    least = float(np.min(done.series["both.compute"]["avg"])) if laps else 0.0
    return {"laps": laps, "least compute": least, "seen": seen}


def rotating(session: Any, binding: str) -> Any:
    """A root that moves on with every iteration, as variants; each root's data must arrive everywhere."""
    size = 8
    variants = tuple(
        (Lap(), steps.bcast(Region("buf", 8 * root, size), root, "char"), Lap("time")) for root in range(session.size)
    )
    runner = session.load(
        change_cell(CELL, binding=binding),
        {session.rank: Program((Buffer("buf", 8 * session.size),), (Stage(variants),))},
    )
    memory = runner.memory(session.rank, "buf").view(np.uint64)
    memory[:] = session.rank + 1
    runner.enter(0, {})
    session.barrier()
    samples = runner.run(0, 0, session.size)[session.rank]
    table = samples.table() if isinstance(samples, LapTimes) else samples
    return {"buf": memory.tolist(), "samples": table.shape, "least": int(table.min())}


SPOILED = ("bcast", "allreduce", "allgather", "alltoallv", "igather", "scatter_persistent", "neighbor_alltoallw")
SPOILED += ("latency", "bw", "put_latency")
"""Of each way in which bytes arrive; the simulated ranks try all others (tests/engine/measuring/test_validate.py)."""
SPOILED_MORE = ("bcast", "alltoallv", "neighbor_alltoallw")
"""Those of them whose calls are others where there are more ranks."""


def spoiled(ranks: int) -> tuple[str, ...]:
    """The benchmarks in which a byte is inverted."""
    return SPOILED if ranks == 2 else SPOILED_MORE


def corrupted(session: Any, binding: str) -> Any:
    """One byte inverted on the last rank must be found by the checks of a benchmark."""
    from omb_py.testing.faults import parse_fault, with_fault

    found = {}
    for name in spoiled(session.size):
        kind = find(name)
        (size,) = kind.sizes_for(kind.dtype, (256,))
        cell = checked_cell(kind, "mpi", binding, size, 4, window=4)
        for fault in ("", f"flip:{session.size - 1}"):
            done = measure(session, with_fault(kind, parse_fault(fault)), cell)
            found[f"{name} {fault}".strip()] = [done.validated, done.wrong_bytes]
    return found


def served(session: Any, binding: str) -> Any:
    """Whether the bytes of a server are right that takes its workers in another order than that of the ranks."""
    if session.size != 3:
        return []
    kind = first_come.benchmark()
    done = measure(session, kind, checked_cell(kind, "mpi", binding, first_come.SIZE, 4))
    return [done.validated, done.wrong_bytes]


def neighbors(session: Any, binding: str) -> Any:
    """Three graphs in turn: in the second, ranks 0 and 1 keep their edges; in the third nobody sends to rank 0."""
    if session.size != 3:
        return []
    checked = []
    # mpi4py passes the count of an empty buffer, with which Open MPI 5.0 fails or hangs where a rank only sends
    one_way = ("graph:0>1,0>2",) if binding == "native" or session.library == "MPICH" else ()
    for graph in ("graph:0>1,1>0", "graph:0>1,1>0,2>2", *one_way):
        for name in ("neighbor_alltoall", "ineighbor_alltoall", "neighbor_allgather"):
            kind = find(name)
            done = measure(session, kind, checked_cell(kind, "mpi", binding, 64, 4, neighborhood=graph))
            checked.append([done.validated, done.wrong_bytes])
    return checked


def turning(session: Any, binding: str) -> Any:
    """``--cache rotate``: validated, and a byte inverted in one copy is found; which copies hold what was received."""
    from omb_py.engine.measuring.cache_rotation import rotated
    from omb_py.testing.faults import parse_fault, with_fault

    found = {}
    for name in (
        ("bcast", "allreduce", "alltoallv", "iallgather", "bw") if session.size == 2 else ("bcast", "alltoallv")
    ):
        cell = checked_cell(name, "mpi", binding, 256, 5, window=4)
        for fault in ("", f"flip:{session.size - 1}")[: 1 if name == "alltoallv" else 2]:
            kind = with_fault(find(name), parse_fault(fault))
            few = replace(kind, program=lambda w, c, of=kind.program: rotated(of(w, c), 4096, 6))
            done = measure(session, few, cell)
            found[f"{name} {fault}".strip()] = [done.validated, done.wrong_bytes]
    program = rotated(find("bcast").program(World(session.rank, session.size), replace(CELL, size=8)), 4096, 6)
    runner = session.load(change_cell(CELL, binding=binding), {session.rank: program})
    memory = runner.memory(session.rank, "buf")
    memory[:] = 7 if session.rank == 0 else 0
    runner.enter(0, {})
    runner.run(0, 4, 3)
    pitch = (len(memory) - 8) // 5
    found["copies"] = [int(memory[copy * pitch]) for copy in range(6)]
    return found


def turning_threads(session: Any, binding: str) -> Any:
    """``--cache rotate`` where threads share the iterations: validated."""
    from omb_py.engine.measuring.cache_rotation import rotated

    found = {}
    if session.thread_level == "multiple":
        for name, counts in (("latency_mt", "1:2"), ("latency_mt", "3:2"), ("allreduce_mt", "1:2")):
            kind = find(name)
            few = replace(kind, program=lambda w, c, of=kind.program: rotated(of(w, c), 1024, 4))
            done = measure(session, few, checked_cell(name, "mpi", binding, 256, 15, thread_counts=counts))
            found[f"{name} {counts}"] = [done.validated, done.wrong_bytes]
    return found


ROUNDS = 5
"""Iterations with each kind of synchronisation."""


def synchronised(session: Any, binding: str) -> Any:
    """Each kind of synchronisation: validated samples, and its skew."""
    from omb_py.engine.measuring.process_sync import KINDS
    from omb_py.orchestrate.running.rank_process import arranged

    found = {}
    for kind in KINDS:
        if kind == "roundtime" and session.size > 2:
            continue  # ranks that share a core never begin together
        cell = change_cell(CELL, binding=binding, process_sync=kind, iterations=ROUNDS, validate=True, root=0)
        done = measure(session, arranged(find("allreduce")), cell)
        found[kind] = [done.validated, done.iterations, sorted(done.laps), "late_rounds" in done.extra]
        if binding == "native":
            found[f"skew {kind}"] = session.skew(kind)
    return found


CHECKS: dict[str, Callable[[Any, str], Any]] = {
    f.__name__: f
    for f in (
        facts,
        reductions,
        overlap,
        rotating,
        served,
        neighbors,
        corrupted,
        turning,
        turning_threads,
        synchronised,
        failing,
    )
}
"""`failing` stands last: what MPI guarantees after an error is little."""


def main() -> None:
    """Run every check with both bindings, or those that are named; rank 0 writes what all ranks saw."""
    from omb_py.backends.registry import find as find_backend

    level = json.loads(sys.argv[2]) if len(sys.argv) > 2 else None
    wanted = [json.loads(word) for word in sys.argv[3:]] or list(CHECKS)
    session = find_backend("mpi").connect({"thread_level": level})
    if session.size > 2:  # ranks that share a core wait long for each other
        validate.ITERATIONS = 2
    told = {}
    for name in wanted:
        check = CHECKS[name]
        if name == "failing" and session.size != 2:
            continue
        for binding in ("native", "mpi4py"):
            session.barrier()
            told[f"{name} {binding}"] = session.gather(check(session, binding))
    if session.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(told))
    session.close()


if __name__ == "__main__":
    main()

"""Synchronisation of ranks: a barrier made of messages, a start on a common clock."""

from __future__ import annotations

import itertools
import struct
from types import SimpleNamespace

import numpy as np
import pytest

from omb_py.backends.registry import find as find_backend
from omb_py.engine.measuring.measure import measure
from omb_py.engine.measuring.process_sync import (
    START,
    START_BYTES,
    common_start,
    dissemination,
    synchronised,
    with_sync,
)
from omb_py.engine.native.translate import Machine
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Lap, Region, RequestSlot, Stage, Step, Until, body, walk
from omb_py.engine.python_loop.loop import compile_stage
from omb_py.options.table import change_cell, make_cell
from omb_py.suites.registry import find
from tests.support.machine import table

MS = 1_000_000


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 100])
def test_after_a_dissemination_everybody_has_heard_of_everybody(ranks: int) -> None:
    bodies = [dissemination(range(ranks), rank, RequestSlot(0)) for rank in range(ranks)]
    rounds = len(bodies[0]) // 3
    assert rounds == (ranks - 1).bit_length()
    knows = [{rank} for rank in range(ranks)]
    for number in range(rounds):
        post, tell, wait = zip(*(made[3 * number : 3 * number + 3] for made in bodies), strict=True)
        heard = []
        for rank in range(ranks):
            source = post[rank]["peer"]  # type: ignore[index]
            assert tell[source]["peer"] == rank and tell[source]["tag"] == post[rank]["tag"]  # type: ignore[index]
            assert wait[rank] == steps.wait(RequestSlot(0))
            heard.append(knows[rank] | knows[source])
        knows = heard
    assert all(len(known) == ranks for known in knows)


def test_groups_do_not_wait_for_each_other() -> None:
    benchmark = with_sync(find("allreduce"))
    cell = change_cell(make_cell(benchmark, "mock", "native", 8), groups="2x3", process_sync="dissemination")
    for rank in range(6):
        (stage,) = benchmark.program(World(rank, 6), cell).stages
        peers = {
            node["peer"] for node, _ in walk(stage.variants[0]) if isinstance(node, Step) and "peer" in node.operands
        }
        assert peers == set(range(rank // 3 * 3, rank // 3 * 3 + 3)) - {rank}


@pytest.mark.parametrize("name", ["allreduce", "ibcast", "gatherv", "alltoall_persistent"])
def test_a_dissemination_on_the_simulated_cluster_keeps_data_right(name: str) -> None:
    benchmark = with_sync(find(name))
    cell = make_cell(
        name,
        "mock",
        "native",
        64,
        dtype=benchmark.dtype,
        process_sync="dissemination",
        iterations=4,
        auto=False,
        validate=True,
    )
    done = measure(find_backend("mock").connect({"ranks": 5}), benchmark, cell)
    assert (done.validated, done.iterations) == (True, 4)


@pytest.mark.parametrize("kind", ["barrier", "none"])
def test_other_kinds_are_the_programs_own(kind: str) -> None:
    cell = make_cell("bcast", "mpi", "native", 8, process_sync=kind)
    made = find("bcast").program(World(0, 2), cell)
    assert synchronised(made, World(0, 2), kind) is made


def test_a_round_starts_the_clock_of_every_stage_in_place_of_the_first_lap() -> None:
    cell = make_cell("iallreduce", "mpi", "native", 8, dtype="int32", process_sync="roundtime")
    for rank in range(2):
        program = with_sync(find("iallreduce")).program(World(rank, 2), cell)
        assert [stage.laps[0] for stage in program.stages] == ["late", "late"]
        for stage in program.stages:
            (nodes,) = stage.variants
            assert nodes[: len(common_start(World(rank, 2)))] == common_start(World(rank, 2))
            assert Lap() not in nodes
            ops = [node.op for node in nodes if isinstance(node, Step)]
            assert ("announce" in ops) == (rank == 0) and ops.index("tell") == 1 + (rank == 0)


class Start:
    """The memory of a start: (target, slope, intercept, origin, ahead)."""

    def __init__(self, target: int = 0, slope: float = 0, intercept: float = 0, origin: float = 0, ahead: int = 0):
        self.memory = np.frombuffer(bytearray(struct.pack("<qdddq", target, slope, intercept, origin, ahead)), np.uint8)

    @property
    def target(self) -> int:
        return int(self.memory.view(np.int64)[0])


WHOLE = Region(START, 0, START_BYTES)
ANNOUNCE = Step("announce", {"recv": WHOLE})


class TestNative:
    def test_the_laps_start_at_the_announced_moment(self) -> None:
        start, machine = Start(ahead=50 * MS), Machine()
        stage = Stage(body(ANNOUNCE, Until(WHOLE), steps.compute(2 * MS), Lap("time")))
        times, failed = machine.run(table(stage, address=start.memory.ctypes.data), 0, 3)
        samples = times.table()
        assert failed == 0 and stage.laps == ("late", "time")
        assert samples[:, 0].tolist() == [0, 0, 0]
        # computing begins at the moment, not before; a busy machine may take longer
        assert (samples[:, 1] >= 2 * MS).all()

    def test_a_moment_that_has_passed_is_noted_and_the_span_counts_from_it(self) -> None:
        machine = Machine()
        import time

        start = Start(target=time.monotonic_ns() - 50 * MS)
        times, _ = machine.run(table(Stage(body(Until(WHOLE), Lap("time"))), address=start.memory.ctypes.data), 0, 1)
        samples = times.table()
        assert 50 * MS <= samples[0, 0] <= samples[0, 1]

    def test_the_model_turns_the_common_time_into_the_local_one(self) -> None:
        import time

        machine, now = Machine(), time.monotonic_ns()
        # this clock is 10 s behind the common one, and loses a thousandth since the origin a second ago
        start = Start(now + 10_000 * MS + 5 * MS, slope=1e-3, intercept=10_000.0 * MS, origin=now + 9_005.0 * MS)
        times, _ = machine.run(table(Stage(body(Until(WHOLE), Lap("time"))), address=start.memory.ctypes.data), 0, 1)
        samples = times.table()
        reached = time.monotonic_ns()
        assert reached >= now + 4 * MS
        assert samples[0, 1] <= reached - now - 4 * MS + MS


def test_the_loop_in_python_waits_and_notes_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    readings, moment = itertools.count(), 20 * MS
    clock = SimpleNamespace(perf_counter_ns=lambda: next(readings) * MS)
    monkeypatch.setattr("omb_py.engine.python_loop.loop.time", clock)

    def render(step: Step, names: object, k: str) -> str:
        assert step.op == "until"
        return str(moment)

    loop = compile_stage(Stage(body(Until(WHOLE), Lap("time"))), render, {})
    first = loop.run(0, 1)
    assert next(readings) * MS > moment and first[0, 0] == 0
    late = loop.run(0, 1)
    assert late[0, 0] > 0 and late[0, 1] >= late[0, 0]

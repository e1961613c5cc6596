"""partitioned_latency: a pure ping-pong, then the same around computing (OMB 7.5)."""

from __future__ import annotations

import pytest

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Lap, Region, RequestSlot, Result
from omb_py.errors import UsageError
from omb_py.options.request import Request
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell, measured
from tests.support.planning import plan

B = BENCHMARKS["partitioned_latency"]
OUT, BACK = RequestSlot(0), RequestSlot(1)


def readies(count: int) -> tuple[steps.Step, ...]:
    return tuple(steps.pready(OUT, part) for part in range(count))


@pytest.mark.parametrize("rank", [0, 1])
def test_every_partition_is_declared_ready_on_its_own(rank: int) -> None:
    pure, overlap = B.program(World(rank, 2), cell(B.name, 64, partitions=4)).stages
    setup = (
        steps.persistent(steps.psend(Region("send", 0, 64), 1 - rank, "char", 4), OUT),
        steps.persistent(steps.precv(Region("recv", 0, 64), 1 - rank, "char", 4), BACK),
    )
    assert pure.setup == overlap.setup == setup
    assert pure.teardown == overlap.teardown == (steps.free(OUT), steps.free(BACK))
    there, back = (steps.start(OUT), *readies(4)), (steps.start(BACK),)
    order = ((there, OUT), (back, BACK)) if rank == 0 else ((back, BACK), (there, OUT))
    assert pure.variants == (
        (Lap(), *[node for begin, request in order for node in (*begin, steps.wait(request))], Lap("time")),
    )
    compute = steps.compute(Result("pure", "time", 2))
    halves = [
        node
        for begin, request in order
        for node in (*begin, Lap("init"), compute, Lap("compute"), steps.wait(request), Lap("wait"))
    ]
    assert overlap.variants == ((Lap(), *halves, steps.barrier()),)


def test_test_calls_stand_between_pieces_of_computing_and_ask_for_partitions_on_a_receive() -> None:
    _, overlap = B.program(World(0, 2), cell(B.name, 64, partitions=2, tests=3)).stages
    ops = [node.op for node in overlap.variants[0] if isinstance(node, steps.Step)]
    sent = ["start", "pready", "pready", "compute", "test", "compute", "test", "compute", "test", "wait"]
    assert ops == [*sent, "start", *["compute", "parrived"] * 3, "wait", "barrier"]
    asked = [n["partition"] for n in overlap.variants[0] if isinstance(n, steps.Step) and n.op == "parrived"]
    assert asked == [0, 1, 0]


def test_only_whole_partitions_travel() -> None:
    (send, _), _ = B.program(World(0, 2), cell(B.name, 67, dtype="int32", partitions=8)).stages[0].setup, None
    assert send["send"].nbytes == 64  # type: ignore[index]
    assert measured(B.name, 2, size=67, dtype="int32", validate=True).wrong_bytes == 0


def test_sizes_under_one_element_for_each_partition_are_skipped() -> None:
    (launch,) = plan(Request(B.name, sizes="1:64"), 2)
    assert [c.size for c in launch.cells] == [8, 16, 32, 64]
    (launch,) = plan(Request(B.name, sizes="1:64", partitions=2, dtypes=("int32",)), 2)
    assert [c.size for c in launch.cells] == [8, 16, 32, 64]
    with pytest.raises(UsageError, match=r"no message size of '4:4' holds 8 elements of 1 bytes: write -m 8:8"):
        plan(Request(B.name, sizes="4:4"), 2)

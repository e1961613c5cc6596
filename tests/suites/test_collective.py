"""The collective programs: the call timed, the barrier after it not (reference section 1.3)."""

from __future__ import annotations

import pytest

from omb_py.engine import steps
from omb_py.engine.benchmark import World
from omb_py.engine.program import Buffer, Lap, Region, Step
from omb_py.suites.registry import BENCHMARKS
from tests.support.simulated import cell

SEND, RECV = Region("send", 0, 16), Region("recv", 0, 16)
ALL = Region("recv", 0, 48)

CALLS: dict[str, tuple[Step, tuple[Buffer, ...]]] = {
    "barrier": (steps.barrier(), ()),
    "bcast": (steps.bcast(Region("buf", 0, 16), 0, "char"), (Buffer("buf", 16),)),
    "allreduce": (steps.allreduce(SEND, RECV, "int32", "sum"), (Buffer("send", 16), Buffer("recv", 16))),
    "allgather": (steps.allgather(SEND, ALL, "char"), (Buffer("send", 16), Buffer("recv", 48))),
    "alltoall": (steps.alltoall(Region("send", 0, 48), ALL, "char"), (Buffer("send", 48), Buffer("recv", 48))),
}


def test_every_collective_is_looked_at_here() -> None:
    assert set(CALLS) == {name for name, b in BENCHMARKS.items() if b.family == "collective"}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("rank", [0, 2])
def test_the_call_is_timed_and_a_barrier_follows_outside_the_timer(name: str, rank: int) -> None:
    program = BENCHMARKS[name].program(World(rank, 3), cell(name, 16))
    call, buffers = CALLS[name]
    (stage,) = program.stages
    assert stage.variants == ((Lap(), call, Lap("time"), steps.barrier()),)
    assert program.buffers == buffers
    assert (stage.setup, stage.teardown) == ((), ())


@pytest.mark.parametrize("name", CALLS)
def test_without_synchronisation_there_is_no_barrier(name: str) -> None:
    program = BENCHMARKS[name].program(World(0, 3), cell(name, 16, process_sync="none"))
    assert program.stages[0].variants == ((Lap(), CALLS[name][0], Lap("time")),)


@pytest.mark.parametrize("name", CALLS)
def test_every_rank_is_timed_whole(name: str) -> None:
    assert BENCHMARKS[name].timed == "all" and BENCHMARKS[name].metric.parts == 1


def test_characters_are_reduced_as_signed_ones() -> None:
    program = BENCHMARKS["allreduce"].program(World(0, 2), cell("allreduce", 16, dtype="char", op="max"))
    call = program.stages[0].variants[0][1]
    assert isinstance(call, Step) and (call["dtype"], call["op"]) == ("int8", "max")


def test_the_root_of_a_broadcast_can_be_chosen() -> None:
    program = BENCHMARKS["bcast"].program(World(0, 4), cell("bcast", 16, root=3))
    call = program.stages[0].variants[0][1]
    assert isinstance(call, Step) and call["root"] == 3

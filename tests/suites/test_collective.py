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
    "reduce": (steps.reduce(SEND, RECV, 0, "int32", "sum"), (Buffer("send", 16), Buffer("recv", 16))),
    "reduce_scatter_block": (  # four elements on three ranks: one each, one left over
        steps.reduce_scatter_block(Region("send", 0, 12), Region("recv", 0, 4), "int32", "sum"),
        (Buffer("send", 12), Buffer("recv", 4)),
    ),
    "gather": (steps.gather(SEND, ALL, 0, "char"), (Buffer("send", 16), Buffer("recv", 48))),
    "scatter": (steps.scatter(Region("send", 0, 48), RECV, 0, "char"), (Buffer("send", 48), Buffer("recv", 16))),
    "alltoall": (steps.alltoall(Region("send", 0, 48), ALL, "char"), (Buffer("send", 48), Buffer("recv", 48))),
}


ONLY_AT_ROOT = {"gather": "recv", "scatter": "send"}


def test_every_collective_is_looked_at_here() -> None:
    assert set(CALLS) == {name for name, b in BENCHMARKS.items() if b.family == "collective"}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("rank", [0, 2])
def test_the_call_is_timed_and_a_barrier_follows_outside_the_timer(name: str, rank: int) -> None:
    program = BENCHMARKS[name].program(World(rank, 3), cell(name, 16, root=0))
    call, buffers = CALLS[name]
    if rank and name in ONLY_AT_ROOT:  # nothing is kept where nothing is read or written
        large = ONLY_AT_ROOT[name]
        call = Step(call.op, {**call.operands, large: Region(large, 0, 0)})
        buffers = tuple(Buffer(b.name, 0 if b.name == large else b.nbytes) for b in buffers)
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


@pytest.mark.parametrize("name", ["bcast", "reduce", "gather", "scatter"])
def test_the_root_can_be_chosen(name: str) -> None:
    assert BENCHMARKS[name].rooted
    program = BENCHMARKS[name].program(World(0, 4), cell(name, 16, root=3))
    call = program.stages[0].variants[0][1]
    assert isinstance(call, Step) and call["root"] == 3

"""Benchmarks that pass on what they have received, checked on simulated ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from omb_py.engine.measuring.forwarding import can_follow, follow, passes_on
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import Buffer, Lap, Node, Program, Region, Requests, RequestSlot, Stage, body
from omb_py.errors import UsageError
from omb_py.suites.registry import find
from tests.support.machines.simulated import cell, checked

SIZE = 24
Make = Callable[[World, Cell], Program]


def relay(world: World, what: Cell) -> Program:
    """Rank 0 sends a message that rank 1 sends on to rank 2."""
    a = Region("a", 0, SIZE)
    nodes: dict[int, tuple[Node, ...]] = {
        0: (steps.send(a, 1, what.dtype),),
        1: (steps.recv(a, 0, what.dtype), steps.send(a, 2, what.dtype)),
        2: (steps.recv(a, 1, what.dtype),),
    }
    return Program((Buffer("a", SIZE),), (Stage(body(Lap(), *nodes[world.rank], Lap("time"))),))


def ring_allreduce(world: World, what: Cell) -> Program:
    """Blocks go around twice: they are summed up, and then spread."""
    me, n, nbytes = world.rank, world.size, SIZE // world.size
    nodes: list[Node] = []
    for turn in range(2 * (n - 1)):
        out, back = (Region("vector", (me - turn - late) % n * nbytes, nbytes) for late in (0, 1))
        room = Region("room", 0, nbytes) if turn < n - 1 else back
        right, left = (me + 1) % n, (me - 1) % n
        nodes.append(steps.sendrecv(out, right, room, left, what.dtype))
        if turn < n - 1:
            nodes.append(steps.reduce_local(room, back, what.dtype, "sum"))
    buffers = (Buffer("vector", SIZE), Buffer("room", nbytes))
    return Program(buffers, (Stage(body(Lap(), *nodes, Lap("time"))),))


def late_wait(world: World, what: Cell) -> Program:
    """Rank 1 posts both receives before it sends the second message on."""
    first, second = Region("a", 0, 8), Region("a", 8, 8)
    if world.rank == 1:
        nodes: tuple[Node, ...] = (
            steps.irecv(first, 0, what.dtype, RequestSlot(0)),
            steps.irecv(second, 0, what.dtype, RequestSlot(1)),
            steps.waitall(Requests(0, 2)),
            steps.send(second, 2, what.dtype),
        )
    elif world.rank == 0:
        nodes = (steps.send(second, 1, what.dtype), steps.send(first, 1, what.dtype))
    else:
        nodes = (steps.recv(first, 1, what.dtype),)
    return Program((Buffer("a", 16),), (Stage(body(Lap(), *nodes, Lap("time"))),))


def made_of(program: Make) -> Benchmark:
    return replace(find("allreduce"), name="passing", program=program)


@pytest.mark.parametrize("program", [relay, ring_allreduce, late_wait])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_correct_benchmarks_that_pass_messages_on_are_right(program: Make, dtype: str) -> None:
    assert checked(made_of(program), 3, cell("allreduce", SIZE, dtype=dtype)) == 0


@pytest.mark.parametrize("program", [relay, ring_allreduce, late_wait])
@pytest.mark.parametrize("rank", [1, 2])
def test_a_wrong_byte_is_found(program: Make, rank: int) -> None:
    assert checked(made_of(program), 3, cell("allreduce", SIZE, dtype="int32"), f"flip={rank}") > 0


def test_a_ring_allreduce_sums_the_vectors_of_all_ranks() -> None:
    what = cell("allreduce", SIZE, dtype="int32")
    contents = follow({rank: ring_allreduce(World(rank, 3), what) for rank in range(3)}, 0, 5)
    total = sum(contents[rank].before["vector"].view("int32") for rank in range(3))
    for rank in range(3):
        assert contents[rank].after["vector"].view("int32").tolist() == total.tolist()


def test_bytes_that_must_come_are_wrong_beforehand() -> None:
    contents = follow({rank: relay(World(rank, 3), cell("allreduce", SIZE)) for rank in range(3)}, 0, 1)
    assert (contents[1].before["a"] != contents[1].after["a"]).all() and contents[2].written["a"].all()
    assert not contents[0].written["a"].any()


def test_a_receive_without_a_send_is_the_benchmarks_mistake() -> None:
    def program(world: World, what: Cell) -> Program:
        nodes = relay(world, what).stages[0].variants[0] if world.rank else (Lap(), Lap("time"))
        return Program((Buffer("a", SIZE),), (Stage((nodes,)),))

    with pytest.raises(UsageError, match=r"ranks \[1, 2\] wait for messages that no step sends"):
        follow({rank: program(World(rank, 3), cell("allreduce", SIZE)) for rank in range(3)}, 0, 1)


def test_a_check_of_the_benchmarks_own_and_a_window_stay_as_they_are() -> None:
    program = relay(World(1, 3), cell("allreduce", SIZE))
    (stage,) = program.stages
    assert can_follow(program, 0) and passes_on(stage.variants[0])
    assert not can_follow(replace(program, stages=(replace(stage, check=((), ())),)), 0)

"""Persistent point to point: initialised in the setup, started in the body, freed in the teardown."""

from __future__ import annotations

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Lap, Program, Region, Repeat, Requests, RequestSlot
from omb_py.engine.program.steps import free, persistent, recv, send, startall, waitall
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell

OUT, IN, ACK = Region("send", 0, 16), Region("recv", 0, 16), Region("ack", 0, 1)


def program(name: str, rank: int, **more: object) -> Program:
    return BENCHMARKS[name].program(World(rank, 2), cell(name, 16, window=8, **more))


@pytest.mark.parametrize("rank", [0, 1])
def test_bw_starts_a_whole_window_at_once(rank: int) -> None:
    (stage,) = program("bw_persistent", rank).stages
    call = send(OUT, 1, "char", 100) if rank == 0 else recv(IN, 0, "char", 100)
    assert stage.setup == (Repeat(8, (persistent(call, RequestSlot(0, 1)),)),)
    assert stage.teardown == (Repeat(8, (free(RequestSlot(0, 1)),)),)
    window = startall(Requests(0, 8)), waitall(Requests(0, 8))
    timed = (Lap(), *window, recv(ACK, 1, "char", 101), Lap("time"))
    assert stage.variants == (timed if rank == 0 else (*window, send(ACK, 0, "char", 101)),)


def test_bibw_starts_receives_then_sends_and_waits_for_the_sends_first() -> None:
    (stage,) = program("bibw_persistent", 1).stages
    incoming, outgoing = Requests(0, 8), Requests(8, 8)
    assert stage.variants == ((startall(incoming), startall(outgoing), waitall(outgoing), waitall(incoming)),)
    assert stage.teardown == (Repeat(16, (free(RequestSlot(0, 1)),)),)
    assert [post.body[0]["tag"] for post in stage.setup] == [100, 101]  # type: ignore[union-attr, index]

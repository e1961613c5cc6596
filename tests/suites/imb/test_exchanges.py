"""IMB's exchanges: where messages go, that a wrong byte is seen, and the printed numbers."""

from __future__ import annotations

import pytest

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Lap, Region, Requests, RequestSlot, Step, started
from omb_py.suites.imb.exchanges import BENCHMARKS
from omb_py.suites.registry import find
from tests.support.machines.simulated import cell, checked, measured

NAMES = [each.name for each in BENCHMARKS]
OUT, IN, SECOND_OUT, SECOND_IN = (Region(name, at, 8) for at in (0, 8) for name in ("send", "recv"))


def body_of(name: str, rank: int, ranks: int) -> tuple[object, ...]:
    (stage,) = find(name).program(World(rank, ranks), cell(name)).stages
    (body,) = stage.variants
    return body


def test_ping_ping_sends_before_it_receives() -> None:
    sends, receives = steps.isend(OUT, 1, "char", RequestSlot(0)), steps.recv(IN, 1, "char")
    assert body_of("pingping", 0, 2) == (Lap(), sends, receives, steps.wait(RequestSlot(0)), Lap("time"))


@pytest.mark.parametrize(("rank", "left", "right"), [(0, 3, 1), (2, 1, 3), (3, 2, 0)])
def test_an_exchange_is_with_both_neighbors(rank: int, left: int, right: int) -> None:
    assert body_of("exchange", rank, 4)[1:-1] == (
        steps.isend(OUT, right, "char", RequestSlot(0)),
        steps.isend(SECOND_OUT, left, "char", RequestSlot(1)),
        steps.recv(IN, left, "char"),
        steps.recv(SECOND_IN, right, "char"),
        steps.waitall(Requests(0, 2)),
    )


def test_a_receive_from_any_rank_stands_for_one_from_the_rank_that_sends() -> None:
    step = body_of("pingpong_any_source", 1, 2)[0]
    assert isinstance(step, Step) and step.op == "recv_any"
    assert started(step, {}) == (steps.recv(IN, 0, "char"),)


@pytest.mark.parametrize("name", ["sendrecv_call", "sendrecv_replace"])
def test_both_ways_in_one_call_stand_for_a_send_and_a_receive(name: str) -> None:
    _, step, _ = body_of(name, 1, 3)
    assert isinstance(step, Step)
    out, back, wait = started(step, {})
    assert (out.op, out["peer"], back.op, back["peer"]) == ("isend", 2, "irecv", 0)
    assert (out["request"], back["request"], wait) == (RequestSlot(0), RequestSlot(1), steps.waitall(Requests(0, 2)))


@pytest.mark.parametrize("size", [8, 1 << 20])
def test_what_replaces_a_message_is_the_left_neighbor_s(size: int) -> None:
    """Beyond the eager limit too, where the message is read when its receive is there."""
    assert checked(find("sendrecv_replace"), 3, cell("sendrecv_replace", size)) == 0


def test_ping_pong_from_any_rank_is_half_a_round_trip() -> None:
    assert measured("pingpong_any_source", 2, "alpha=3us,beta=0ns").laps["time"] == [3]


@pytest.mark.parametrize(("name", "directions"), [("uniband", 1), ("biband", 2)])
def test_bandwidth_is_that_of_all_pairs(name: str, directions: int) -> None:
    done = measured(name, 4, "alpha=10us,beta=0ns", size=1000, window=4)
    assert done.bytes_moved == directions * 1000 * 4 * 2

"""One-sided operations in the simulation: effects come with the synchronisation, and cost what a message costs."""

from __future__ import annotations

import numpy as np
import pytest

from omb_py.engine.program import rma
from omb_py.engine.program.language import Body, Buffer, Lap, Program, Region, RequestSlot, Stage, Window, body
from omb_py.engine.program.steps import wait
from omb_py.engine.session import StepFailed
from tests.support.machines.simulated import cell, session

A, B, C, W = (Region(name, 0, 8) for name in ("send", "recv", "compare", "window"))
BUFFERS = tuple(Buffer(name, 8) for name in ("send", "recv", "compare", "window"))


def run(origin: Body, target: Body = (), mock: str = "alpha=1us,beta=1ns") -> tuple[dict[str, list[int]], int]:
    """Bytes of both ranks' buffers after one iteration, and the time of rank 0 in ns.

    Before it rank 0 sends ones and compares with fives, and rank 1's window holds fives.
    """
    world = session(2, mock)
    programs = {
        rank: Program(BUFFERS, (Stage(body(Lap(), *nodes, Lap("time"))),), Window("allocate", "window"))
        for rank, nodes in enumerate((origin, target))
    }
    runner = world.load(cell("put_latency"), programs)
    for rank, name, value in ((0, "send", 1), (0, "compare", 5), (1, "window", 5), (1, "send", 7)):
        runner.memory(rank, name)[:] = value
    runner.enter(0, {})
    took = runner.run(0, 0, 1)[0]
    held = {
        f"{name} {rank}": np.unique(runner.memory(rank, name)).tolist()
        for rank in (0, 1)
        for name in ("send", "recv", "window")
    }
    return held, int(took[0, 0])


def test_a_put_arrives_with_its_flush_after_alpha_and_n_beta() -> None:
    put = rma.put(A, W, 1, "char")
    held, ns = run((rma.win_lock(1), put, rma.win_flush(1), rma.win_unlock(1)))
    assert (held["window 1"], ns) == ([1], 1008)
    held, ns = run((rma.win_lock(1), put))
    assert (held["window 1"], ns) == ([5], 0)


def test_operations_work_in_the_order_of_their_calls() -> None:
    add = rma.get_accumulate(A, B, W, 1, "int8", "sum")
    held, _ = run((add, add, rma.win_flush(1)))
    assert (held["recv 0"], held["window 1"]) == ([6], [7])


@pytest.mark.parametrize(("compare", "window"), [(C, [1]), (A, [5])])
def test_a_swap_depends_on_what_is_found(compare: Region, window: list[int]) -> None:
    held, _ = run((rma.compare_and_swap(A, compare, B, W, 1, "int64"), rma.win_flush(1)))
    assert (held["recv 0"], held["window 1"]) == ([5], window)


def test_a_request_waits_and_the_window_is_synchronised_apart() -> None:
    rput = rma.with_request(rma.put(A, W, 1, "char"), RequestSlot(0))
    assert run((rput, wait(RequestSlot(0))))[1] == 1008
    assert run((rput, wait(RequestSlot(0)), rma.win_flush(1)))[0]["window 1"] == [1]


def test_a_fence_waits_for_everybody() -> None:
    turn = (rma.win_fence(), rma.put(A, W, 1, "char"), rma.win_fence())
    held, ns = run(turn, (rma.win_fence(), rma.put(A, W, 0, "char"), rma.win_fence()))
    assert (held["window 0"], held["window 1"]) == ([7], [1])
    assert ns == 1000 + 1008 + 1000


def test_a_start_waits_for_the_post_and_a_wait_for_the_complete() -> None:
    held, ns = run(
        (rma.win_start(1), rma.put(A, W, 1, "char"), rma.win_complete(1)), (rma.win_post(0), rma.win_wait(0))
    )
    assert (held["window 1"], ns) == ([1], 1000 + 1008)


def test_a_place_outside_the_window_is_refused() -> None:
    with pytest.raises(StepFailed, match="put: bytes 4 to 12 of window, which has 8"):
        run((rma.put(A, Region("window", 4, 8), 1, "char"),))

"""The fast path equals the event path exactly, and is fast."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omb_py.backends.mock.session import MockSession
from omb_py.backends.mock.simulator.lockstep import symmetric
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.language import (
    Body,
    Buffer,
    Lap,
    Program,
    Region,
    Repeat,
    Request,
    Requests,
    Stage,
    Stamp,
    body,
)
from omb_py.suites import find

N = 8
RANKS = st.integers(1, 6)


def _nodes(ranks: int) -> st.SearchStrategy[Body]:
    """Random bodies of collectives; a non-blocking one gets the slot of its place and is waited for at the end."""
    small, wide = Region("send", 0, N), Region("send", 0, N * ranks)
    into, wide_into = Region("recv", 0, N), Region("recv", 0, N * ranks)
    roots = st.integers(0, ranks - 1)
    call = st.one_of(
        st.just(("barrier",)),
        st.just(("ibarrier",)),
        roots.map(lambda root: ("bcast", root)),
        st.just(("allreduce",)),
        st.just(("iallreduce",)),
        st.just(("allgather",)),
        st.just(("alltoall",)),
        st.just(("flip",)),
        st.integers(0, 5000).map(lambda ns: ("compute", ns)),
        st.just(("test",)),
        st.just(("wait",)),
        st.just(("lap",)),
        st.just(("stamp",)),
        st.just(("repeat",)),
    )

    def node(slot: int, name: str, value: int = 0) -> Any:
        match name:
            case "barrier":
                return steps.barrier()
            case "ibarrier":
                return steps.nonblocking(steps.barrier(), Request(slot))
            case "bcast":
                return steps.bcast(small, value, "char")
            case "allreduce":
                return steps.allreduce(small, into, "uint8", "sum")
            case "iallreduce":
                return steps.nonblocking(steps.allreduce(small, into, "int32", "max"), Request(slot))
            case "allgather":
                return steps.allgather(small, wide_into, "char")
            case "alltoall":
                return steps.alltoall(wide, wide_into, "char")
            case "flip":
                return steps.flip(small)
            case "compute":
                return steps.compute(value)
            case "test":
                return steps.test(Request(max(0, slot - 2)))
            case "wait":
                return steps.wait(Request(max(0, slot - 1)))
            case "lap":
                return Lap("time")
            case "stamp":
                return Stamp(f"stamp{slot}")
            case _:
                return Repeat(2, (steps.barrier(), steps.compute(10), Lap("time")))

    def build(calls: list[tuple[Any, ...]]) -> Body:
        nodes = [node(slot, *call) for slot, call in enumerate(calls)]
        return (Lap(), *nodes, steps.waitall(Requests(0, len(calls))), Lap("time"), steps.barrier())

    return st.lists(call, min_size=1, max_size=8).map(build)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[int, Program, str]:
    ranks = draw(RANKS)
    variants = tuple(draw(st.lists(_nodes(ranks), min_size=1, max_size=2)))
    program = Program((Buffer("send", N * ranks), Buffer("recv", N * ranks)), (Stage(variants),))
    parts = draw(
        st.lists(
            st.sampled_from(
                [
                    *("noise=0.1", "spike=0.3:7", "launch=0.2", "drift=0.1", "alpha=17.3ns", "beta=3ns", "data=off"),
                    *("series=10us/12us/14us:1us", f"straggler={ranks - 1}:2us", f"flip={ranks - 1}"),
                ]
            ),
            unique_by=lambda part: part.split("=")[0],
        )
    )
    return ranks, program, ",".join(parts)


def play(ranks: int, program: Program, text: str) -> tuple[Any, ...]:
    """Everything there is to see of two runs."""
    session = MockSession({"ranks": ranks, "settings": text, "seed": 5, "launch_index": 2})
    runner = session.load(Cell("hand", "mock", "native", N), dict.fromkeys(range(ranks), program))
    assert runner.in_step == ("path=event" not in text)
    runner.enter(0, {})
    for rank in range(ranks):
        runner.memory(rank, "send")[:] = np.arange(N * ranks) * (rank + 3)
    first, second = runner.run(0, 0, 4), runner.run(0, 4, 3)
    runner.leave(0)
    data = [runner.memory(r, name).tolist() for r in range(ranks) for name in ("send", "recv")]
    times = [(r, first[r].tolist(), second[r].tolist(), first[r].dtype, first[r].shape) for r in range(ranks)]
    return times, session.clocks.tolist(), data


@settings(max_examples=120)
@given(world=worlds())
def test_fast_path_equals_event_path(world: tuple[int, Program, str]) -> None:
    ranks, program, text = world
    assert play(ranks, program, text) == play(ranks, program, f"{text},path=event")


def programs(name: str, ranks: int, size: int) -> tuple[Cell, dict[int, Program]]:
    found = find(name)
    cell = Cell(name, "mock", "native", size, dtype=found.dtype)
    return cell, {r: found.program(World(r, ranks), cell) for r in range(ranks)}


@pytest.mark.parametrize("name", ["barrier", "bcast", "allreduce", "allgather", "alltoall"])
def test_collectives_take_the_fast_path(name: str) -> None:
    assert symmetric(programs(name, 4, 8)[1])


@pytest.mark.parametrize("name", ["latency", "bw", "bibw"])
def test_messages_do_not(name: str) -> None:
    assert not symmetric(programs(name, 2, 8)[1])


def test_ranks_with_other_programs_do_not() -> None:
    one, other = (Program((), (Stage(body(steps.barrier(), steps.compute(ns))),)) for ns in (1, 2))
    assert symmetric({0: one, 1: one})
    assert not symmetric({0: one, 1: other})


def calls(name: str, ranks: int, iterations: int) -> int:
    """Python functions called while so many iterations are simulated."""
    cell, all_ = programs(name, ranks, 8)
    runner = MockSession({"ranks": ranks, "settings": "noise=0.05"}).load(cell, all_)
    count = 0

    def profile(frame: object, event: str, value: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        runner.enter(0, {})
        out = runner.run(0, 0, iterations)
    finally:
        sys.setprofile(before)
    assert out[0].shape == (iterations, 1)
    return count


def test_ranks_that_do_the_same_cost_as_much_as_few_of_them() -> None:
    calls("allreduce", 64, 10)  # the first may load code
    assert calls("allreduce", 4096, 10) == calls("allreduce", 64, 10)


@pytest.mark.parametrize(("name", "ranks"), [("allreduce", 64), ("latency", 2)])
def test_an_iteration_is_some_tens_of_calls(name: str, ranks: int) -> None:
    assert (calls(name, ranks, 300) - calls(name, ranks, 200)) / 100 < 100

"""Rounds of pairs that are simulated at once: each number is that of the general simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from omb_py.backends.mock.faults import RankHangs
from omb_py.backends.mock.runner import MockPairRunner, MockRunner
from omb_py.backends.mock.session import MockSession
from omb_py.engine.measuring.pairs import measure_pairs
from omb_py.engine.program.language import Buffer, Program, Region, Stage, body
from omb_py.engine.program.pair_programs import PairPrograms
from omb_py.engine.program.pair_schedule import Schedule
from omb_py.engine.program.steps import recv
from omb_py.engine.session import Session
from omb_py.suites.registry import find
from tests.support.machines.simulated import cell


class Watched(MockSession):
    """A session that keeps its clocks and says how its rounds were simulated."""

    def __init__(self, ranks: int, mock: str, at_once: bool) -> None:
        super().__init__({"ranks": ranks, "settings": mock, "seed": 3, "launch_index": 2})
        self.at_once = at_once
        self.runners: list[type] = []

    def load_pairs(self, cell: Any, programs: PairPrograms) -> Any:
        load = MockSession.load_pairs if self.at_once else Session.load_pairs
        runner = load(self, cell, programs)
        self.runners.append(type(runner))
        return runner


def swept(
    name: str, ranks: int, mock: str, at_once: bool, size: int = 8, **more: Any
) -> tuple[Watched, list[tuple[Any, ...]]]:
    world = Watched(ranks, mock, at_once)
    schedule = Schedule(5, direction=more.pop("direction", "forward"), ranks=more.pop("among", ()))
    done = measure_pairs(world, find(name), cell(name, size, pairs=schedule.text(), **more))
    return world, [(one.number, one.last, one.pairs, one.samples.tolist()) for one in done]


@pytest.mark.parametrize(("name", "size"), [("latency", 8), ("latency", 1 << 20), ("bw", 65536)])
@pytest.mark.parametrize(
    "mock",
    [
        "",
        "alpha=1us,beta=0ns,slow=2:3,link=0-4:10",
        "noise=0.1,launch=0.2,drift=0.01",
        "noise=0.05,spike=0.1:20,eager=0,slow=1:2,slow=3:1.5,link=1-3:4,link=2-6:3,uplink=2-4:2.5",
        "nodes=3,between=5us:0.3ns,noise=0.1,eager=1M",
    ],
)
def test_as_many_numbers_as_the_general_simulation_has_and_the_same(name: str, size: int, mock: str) -> None:
    for more in ({}, {"direction": "back", "warmup": 3, "among": (0, 1, 3, 4, 6)}):
        fast, at_once = swept(name, 7, mock, True, size, iterations=5, **more)
        slow, singly = swept(name, 7, mock, False, size, iterations=5, **more)
        assert at_once == singly
        assert np.array_equal(fast.clocks, slow.clocks)
        assert set(fast.runners) == {MockPairRunner} and set(slow.runners) == {MockRunner}


@pytest.mark.parametrize("mock", ["nodes=2,nics=1", "series=1us/2us/3us", "noise=0.1,nodes=2,channels=1"])
def test_what_pairs_share_is_simulated_one_by_one(mock: str) -> None:
    fast, at_once = swept("bw", 6, mock, True)
    _, singly = swept("bw", 6, mock, False)
    assert set(fast.runners) == {MockRunner} and at_once == singly


def test_a_program_that_cannot_go_on_is_named_as_the_general_simulation_names_it() -> None:
    stuck = [Program((Buffer("b", 8),), (Stage(body(recv(Region("b", 0, 8), 1 - end, "char"))),)) for end in (0, 1)]
    runner = Watched(4, "", True).load_pairs(cell("latency"), PairPrograms((stuck[0], stuck[1]), [(2, 1), (0, 3)]))
    assert isinstance(runner, MockPairRunner)
    with pytest.raises(RankHangs, match="recv 8 B from 3"):
        runner.run(0, 0, 1)

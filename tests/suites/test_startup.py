"""Start-up: what the session noted when it began, and communicators made and freed."""

from __future__ import annotations

import pytest

from omb_py.engine.measuring.measure import measure
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Lap, Stage, body
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell, measured, session

MADE = {"comm_dup": steps.comm_dup(), "comm_split": steps.comm_split(2), "comm_create": steps.comm_create()}


@pytest.mark.parametrize("name", MADE)
def test_making_is_timed_and_freeing_is_not(name: str) -> None:
    program = BENCHMARKS[name].program(World(0, 3), cell(name))
    free, barrier = steps.comm_free(), steps.barrier()
    assert program.stages == (Stage(body(Lap(), MADE[name], Lap("time"), free, barrier)),)
    assert program.buffers == ()


@pytest.mark.parametrize("name", MADE)
def test_communicators_cost_what_agreeing_costs(name: str) -> None:
    done = measured(name, 4, "alpha=1us", iterations=3)
    assert done.laps["time"] == [2.0, 2.0, 2.0, 2.0] or done.laps["time"][0] == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize(("name", "us"), [("init", 1000), ("hello", 2000)])
def test_a_launch_is_one_sample(name: str, us: float) -> None:
    done = measured(name, 3, "alpha=1us")
    assert (done.iterations, done.stop_reason) == (1, "fixed")
    assert done.laps == {name: [us] * 3}
    assert done.series[name]["max"].tolist() == done.series[name]["avg"].tolist() == [us]
    assert done.slowest_rank_share == [1, 1, 1]


def test_a_backend_that_took_no_time_says_so() -> None:
    world = session(2)
    world.started = {}
    with pytest.raises(EnvironmentProblem, match="init: backend mock does not know how long its start took"):
        measure(world, BENCHMARKS["init"], make_cell("init", "mock", "native", 0))

"""Start-up: what the session noted when it began, and communicators made and freed."""

from __future__ import annotations

import pytest

from omb_py.backends.registry import capabilities_of
from omb_py.engine.measuring.measure import measure
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.groups import on_group
from omb_py.engine.program.language import Lap, Stage, body
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell, usual_cell
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell, measured, session

OTHERS = (0, 1)
"""All ranks but the last of three."""
MADE = {
    "comm_dup": steps.comm_dup(),
    "comm_split": steps.comm_split(2),
    "comm_create": steps.comm_create(),
    "comm_grow": steps.comm_grow(OTHERS),
}


@pytest.mark.parametrize("name", MADE)
def test_making_is_timed_and_freeing_is_not(name: str) -> None:
    program = BENCHMARKS[name].program(World(0, 3), cell(name))
    free, barrier = steps.comm_free(), steps.barrier()
    assert program.stages == (Stage(body(Lap(), MADE[name], Lap("time"), free, barrier)),)
    assert program.buffers == ()


def test_the_rank_that_is_left_out_makes_no_call_and_is_not_timed() -> None:
    shrink = BENCHMARKS["comm_shrink"]
    programs = [shrink.program(World(rank, 3), cell("comm_shrink")) for rank in range(3)]
    free, barrier = on_group(steps.comm_free(), OTHERS), steps.barrier()
    stays = (Stage(body(Lap(), steps.comm_shrink(OTHERS), Lap("time"), free, barrier)),)
    assert [program.stages for program in programs] == [stays, stays, (Stage(body(Lap(), Lap("time"), barrier)),)]
    assert shrink.timed_ranks(3) == (0,)
    done = measured("comm_shrink", 5, "alpha=1us", iterations=3)
    assert done.laps["time"] == [pytest.approx(2, rel=0.1)], "as many as agree among four"


@pytest.mark.parametrize(
    ("backend", "name"),
    [("mpi", "comm_shrink"), ("gloo", "comm_grow"), ("ucc", "comm_shrink"), ("oneccl", "comm_grow")],
)
def test_other_libraries_have_no_communicator_that_shrinks_or_grows(backend: str, name: str) -> None:
    benchmark = BENCHMARKS[name]
    reason = capabilities_of()[backend].why_not(benchmark, usual_cell(benchmark))
    assert reason.endswith("has no communicator that shrinks or grows: use --backend nccl")


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

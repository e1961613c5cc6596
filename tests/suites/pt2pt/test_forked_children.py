"""latency_mp is latency beside children that sleep."""

from __future__ import annotations

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Host
from omb_py.options.request import Request
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell, measured
from tests.support.planning import plan

B = BENCHMARKS["latency_mp"]


def test_the_body_is_latency_s_and_children_live_from_setup_to_teardown() -> None:
    for rank, count in ((0, 1), (1, 3)):
        (stage,) = B.program(World(rank, 2), cell(B.name, 16, process_counts="1:3")).stages
        (plain,) = BENCHMARKS["latency"].program(World(rank, 2), cell("latency", 16)).stages
        assert stage.variants == plain.variants
        (setup,), (teardown,) = stage.setup, stage.teardown
        assert isinstance(setup, Host) and isinstance(teardown, Host)
        assert setup.name == f"fork {count} processes that sleep"


def test_a_launch_of_it_is_told_that_ranks_fork() -> None:
    assert [launch.needs.fork for launch in plan(Request("latency_mp"), 2)] == [True]
    assert [launch.needs.fork for launch in plan(Request("latency"), 2)] == [False]


def test_a_simulation_forks_nothing() -> None:
    assert measured(B.name, 2, "series=3us", validate=True).laps["time"] == [3]

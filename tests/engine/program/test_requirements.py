"""What a communicator must have for a benchmark is checked before anything is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omb_py.engine.program.benchmark import Needs
from omb_py.engine.program.requirements import check_needs, enough
from omb_py.errors import EnvironmentProblem
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import session


def test_levels_are_in_order() -> None:
    assert enough("multiple", "single") and enough("funneled", "funneled")
    assert not enough("serialized", "multiple")


def test_less_than_multiple_is_refused() -> None:
    wanted = r"latency_mt needs thread level multiple, but mock .* provides funneled"
    with pytest.raises(EnvironmentProblem, match=wanted):
        check_needs(BENCHMARKS["latency_mt"], session(2, thread_level="funneled"))
    check_needs(BENCHMARKS["latency_mt"], session(2))
    # a library without threads is enough for those that use none
    check_needs(replace(BENCHMARKS["latency"], needs=Needs("funneled")), session(2, thread_level="single"))


def test_one_node_is_refused_with_what_is_there() -> None:
    rule = "bw_fan_in needs several nodes with equally many ranks on each, but here are"
    with pytest.raises(EnvironmentProblem, match=f"{rule} 4 on node0: name more nodes with --hosts A,B"):
        check_needs(BENCHMARKS["bw_fan_in"], session(4))
    with pytest.raises(EnvironmentProblem, match=f"{rule} 3 on node0, 2 on node1"):
        check_needs(BENCHMARKS["bw_fan_in"], session(5, "nodes=2"))
    check_needs(BENCHMARKS["bw_fan_in"], session(4, "nodes=2"))

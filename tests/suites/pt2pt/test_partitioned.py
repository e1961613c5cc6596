"""partitioned_latency: a pure ping-pong, then the same around computing (OMB 7.5)."""

from __future__ import annotations

import pytest

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.errors import UsageError
from omb_py.options.request import Request
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell, measured
from tests.support.planning import plan

B = BENCHMARKS["partitioned_latency"]


def test_test_calls_stand_between_pieces_of_computing_and_ask_for_partitions_on_a_receive() -> None:
    _, overlap = B.program(World(0, 2), cell(B.name, 64, partitions=2, tests=3)).stages
    ops = [node.op for node in overlap.variants[0] if isinstance(node, steps.Step)]
    sent = ["start", "pready", "pready", "compute", "test", "compute", "test", "compute", "test", "wait"]
    assert ops == [*sent, "start", *["compute", "parrived"] * 3, "wait", "barrier"]
    asked = [n["partition"] for n in overlap.variants[0] if isinstance(n, steps.Step) and n.op == "parrived"]
    assert asked == [0, 1, 0]


def test_only_whole_partitions_travel() -> None:
    (send, _), _ = B.program(World(0, 2), cell(B.name, 67, dtype="int32", partitions=8)).stages[0].setup, None
    assert send["send"].nbytes == 64  # type: ignore[index]
    assert measured(B.name, 2, size=67, dtype="int32", validate=True).wrong_bytes == 0


def test_sizes_under_one_element_for_each_partition_are_skipped() -> None:
    (launch,) = plan(Request(B.name, sizes="1:64"), 2)
    assert [c.size for c in launch.cells] == [8, 16, 32, 64]
    (launch,) = plan(Request(B.name, sizes="1:64", partitions=2, dtypes=("int32",)), 2)
    assert [c.size for c in launch.cells] == [8, 16, 32, 64]
    with pytest.raises(UsageError, match=r"no message size of '4:4' holds 8 elements of 1 bytes: write -m 8:8"):
        plan(Request(B.name, sizes="4:4"), 2)

"""A benchmark in several groups at once: whom a rank talks to, who is timed, that every byte is checked."""

from __future__ import annotations

import json
import sys
from itertools import cycle
from typing import Any

import pytest

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.groups import on_group, timed_ranks
from omb_py.engine.program.language import Lap, Region, Step, walk
from omb_py.errors import UsageError
from omb_py.suites.registry import BENCHMARKS, find
from tests.support.machines.mpi import run_command
from tests.support.machines.simulated import cell, checked, measured, with_step
from tests.support.optional import needs_torch

OUT, IN = Region("send", 0, 8), Region("recv", 0, 8)
DIVIDED = [
    *("latency", "bw", "multi_lat", "exchange", "sendrecv_call", "latency_persistent", "allreduce", "bcast"),
    *("gatherv", "alltoallv", "iallgather", "reduce_persistent", "hypercube", "unirandom"),
]


def body_of(name: str, rank: int, **more: Any) -> tuple[object, ...]:
    (stage,) = find(name).program(World(rank, 4), cell(name, groups="mod:2", **more)).stages
    return stage.variants[0]


def test_a_collective_and_its_barrier_run_on_the_group() -> None:
    call, meet = steps.allreduce(OUT, IN, "int32", "sum"), steps.barrier()
    assert body_of("allreduce", 3) == (Lap(), on_group(call, (1, 3)), Lap("time"), on_group(meet, (1, 3)))


def test_messages_go_to_ranks_of_the_group() -> None:
    ping = [steps.send(OUT, 2, "char"), steps.recv(IN, 2, "char")]
    assert body_of("latency", 0)[1:-1] == tuple(ping)
    assert [node["peer"] for node in body_of("latency", 3) if isinstance(node, Step)] == [1, 1]
    (step,) = (node for node in body_of("sendrecv_call", 1) if isinstance(node, Step))
    assert (step["target"], step["source"]) == (3, 3)


def test_a_window_of_messages_stays_in_the_group() -> None:
    peers = {node["peer"] for node, _ in walk(body_of("bw", 2)) if isinstance(node, Step) and "peer" in node.operands}
    assert peers == {0}


@pytest.mark.parametrize(
    ("name", "groups", "timed"),
    [
        ("latency", "2x2", (0, 2)),
        ("latency", "mod:2", (0, 1)),
        ("multi_lat", "2x4", (0, 1, 4, 5)),
        ("allreduce", "2x2", (0, 1, 2, 3)),
        ("latency", "", (0,)),
    ],
)
def test_those_are_timed_who_would_be_in_each_group(name: str, groups: str, timed: tuple[int, ...]) -> None:
    ranks = 8 if "4" in groups else 4
    assert timed_ranks(find(name), cell(name, groups=groups), ranks, ("host",) * ranks) == timed


@pytest.mark.parametrize(("name", "groups"), list(zip(DIVIDED, cycle(["2x2", "mod:2", "color:0,1,1,0"]), strict=False)))
def test_every_byte_is_right_in_every_group(name: str, groups: str) -> None:
    assert measured(name, 4, groups=groups, validate=True).validated is True


@pytest.mark.parametrize("rank", range(4))
def test_a_wrong_byte_of_any_rank_is_seen(rank: int) -> None:
    what = cell("allreduce", groups="2x2")
    assert checked(with_step(find("allreduce"), rank, steps.flip(IN, 3)), 4, what) == 1


def test_a_message_of_another_group_is_wrong() -> None:
    """What a group would send has its number in it: the result of one is not that of the other."""
    benchmark = find("allreduce")
    programs = [benchmark.program(World(rank, 4), cell("allreduce", groups="2x2")) for rank in (0, 2)]
    assert programs[0] != programs[1]


def test_bytes_are_those_of_a_group() -> None:
    done = measured("mbw_mr", 8, size=100, window=3, groups="2x4")
    assert done.bytes_moved == 100 * 3 * 2


def test_a_group_that_the_benchmark_does_not_admit_is_refused() -> None:
    with pytest.raises(UsageError, match="latency needs exactly 2 ranks in a group, not 4"):
        find("latency").program(World(0, 4), cell("latency", groups="1x4"))


def test_those_take_groups_whose_ranks_can_be_divided() -> None:
    takers = {name for name, benchmark in BENCHMARKS.items() if "groups" in benchmark.options}
    assert {"latency", "allreduce", "iallreduce", "exchange"} <= takers
    assert not takers & {"put_latency", "neighbor_allgather", "init", "bw_fan_in", "step", "noise"}


def real(*words: str) -> dict[str, Any]:
    run = [sys.executable, "-m", "omb_py", *words, "-n", "4", "--groups", "2x2", "-m", "8:8", "-i", "5", "-c"]
    done = run_command([*run, "--no-store", "--format", "json"])
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    return dict(row)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.each_library
@pytest.mark.parametrize("name", ["latency", "allreduce"])
def test_on_real_ranks_of_mpi_a_row_has_a_time_of_each_group(name: str) -> None:
    row = real(name)
    assert row["validated"] is True and row["parameters"]["groups"] == "2x2" and row["ranks"] == 4
    assert {"group_0_us", "group_1_us"} <= row["metrics"].keys()


@pytest.mark.slow
@pytest.mark.calm
@needs_torch
def test_on_real_ranks_of_gloo() -> None:
    row = real("allreduce", "--backend", "gloo")
    assert row["validated"] is True and row["metrics"]["group_1_us"] > 0

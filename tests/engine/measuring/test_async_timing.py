"""What is timed where calls return before they are done."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.engine.measuring.async_timing import BATCHED, MODES, batched, captured, with_timing
from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.language import Lap, Program, Region, Repeat, Stamp, Step, walk
from omb_py.errors import UsageError
from omb_py.options.table import make_cell
from omb_py.suites.registry import find

WORLD = World(0, 2)


def made(name: str = "allreduce", **more: Any) -> tuple[Program, Cell]:
    benchmark = with_timing(find(name))
    cell = make_cell(benchmark, "nccl", "native", 64, **{"timing": "isolated", **more})
    return benchmark.program(WORLD, cell), cell


def laps(program: Program) -> list[str | None]:
    return [node.name for node in program.stages[0].variants[0] if isinstance(node, (Lap, Stamp))]


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_waits_once_after_the_calls(mode: str) -> None:
    program, _ = made(timing=mode, batch=4 if mode in BATCHED else 1)
    body = [node for node, _ in walk(program.stages[0].variants[0])]
    calls = [i for i, node in enumerate(body) if isinstance(node, Step) and node.op == "allreduce"]
    waits = [i for i, node in enumerate(body) if isinstance(node, Step) and node.op == "synchronise"]
    assert len(calls) == (4 if mode in BATCHED else 1)
    assert [i for i in waits if i > calls[0]] == [i for i in waits if i > calls[-1]] and waits[-1] > calls[-1]
    assert laps(program)[:3] == [None, "enqueue", "synchronise"]


def test_without_a_mode_nothing_changes() -> None:
    assert made(timing="")[0] == find("allreduce").program(WORLD, made(timing="")[1])


@given(st.integers(1, 64), st.integers(1, 1 << 24))
def test_a_batch_is_so_many_calls_over_memory_that_is_its_own(batch: int, size: int) -> None:
    benchmark = find("allreduce")
    cell = make_cell(benchmark, "nccl", "native", size * 4, timing="pipelined", batch=batch)
    original = benchmark.program(WORLD, cell)
    buffers, call = batched(original.buffers, original.stages[0].variants[0][1:2], cell)
    steps = [(node, k) for node, k in walk(call) if isinstance(node, Step)]
    assert len(steps) == batch
    largest = {buffer.name: buffer.nbytes for buffer in buffers}
    for step, k in steps:
        region: Region = step["recv"].at(k)
        assert region.offset % 512 == 0 and region.offset + region.nbytes <= largest["recv"]


def test_a_check_runs_each_part_of_the_memory_once() -> None:
    program, _ = made(timing="pipelined", batch=20, distinct=True, in_place=True)
    (repeat,) = [node for node in program.stages[0].variants[0] if isinstance(node, Repeat)]
    assert repeat.times == 20 and repeat.body[0]["recv"].stride == 512  # type: ignore[union-attr]


def test_the_lap_of_a_batch_is_divided_by_its_calls() -> None:
    benchmark = with_timing(find("allreduce"))
    for mode in MODES:
        assert benchmark.metric.parts_of(made(timing=mode, batch=20)[1]) == (20 if mode in BATCHED else 1)


def test_a_graph_is_recorded_before_and_launched_in_the_loop() -> None:
    stage = captured(made(timing="graph", batch=2)[0].stages[0])
    ops = [node.op for node in stage.setup if isinstance(node, Step)]
    assert ops == ["allreduce", "synchronise", "begin_capture", "end_capture", "instantiate"]
    assert "allreduce" not in [n.op for n, _ in walk(stage.variants[0]) if isinstance(n, Step)]


@pytest.mark.parametrize(
    ("name", "more"),
    [("latency", {"timing": "event"}), ("iallreduce", {"timing": "graph"}), ("barrier", {"timing": "event"})],
)
def test_what_has_no_such_timing_is_refused(name: str, more: dict[str, Any]) -> None:
    if name == "latency":
        made(name, **more)  # rank 0 reads the clock, so it has a body that can be timed so
        world = World(1, 2)
        with pytest.raises(UsageError, match="is for blocking collectives"):
            with_timing(find(name)).program(world, made(name, **more)[1])
        return
    with pytest.raises(UsageError, match="is for blocking collectives"):
        made(name, **more)


def test_a_graph_has_one_body() -> None:
    with pytest.raises(UsageError, match="rotating root"):
        made("reduce", timing="graph", root=-1)


def test_the_host_opens_the_gate_as_a_second_stream_may_stand_behind_the_first() -> None:
    (stage,) = made(timing="spin-gated", batch=4)[0].stages
    steps = [node for node, _ in walk(stage.variants[0]) if isinstance(node, Step)]
    assert [step["value"] for step in steps if step.op == "store"] == [0, 1]
    assert not any("stream" in step.operands for step in steps)
    assert [step.op for step in steps][-5:] == ["allreduce", "record", "store", "synchronise", "barrier"]


def test_the_first_call_of_a_communicator_is_neither_held_back_nor_captured() -> None:
    for mode in MODES:
        (stage,) = made(timing=mode, batch=4)[0].stages
        ops = [node.op for node, _ in walk(stage.setup) if isinstance(node, Step)]
        assert ops == (["allreduce", "synchronise"] if mode in ("graph", "spin-gated") else [])


@pytest.mark.parametrize("batch", [256, 257])
def test_a_batch_behind_a_closed_gate_fits_the_launch_queue(batch: int) -> None:
    if batch <= 256:
        assert made(timing="spin-gated", batch=batch)
    else:
        with pytest.raises(UsageError, match=r"at most 256 calls, not 257: .* choose a smaller --batch"):
            made(timing="spin-gated", batch=batch)
    assert made(timing="pipelined", batch=batch)

"""The source that the torch binding makes: between two laps nothing but the call."""

from __future__ import annotations

import re
from typing import Any

import pytest

from omb_py.backends.gloo.capabilities import CAPABILITIES
from omb_py.engine.measuring.host_memory import HostMemory
from omb_py.engine.program.benchmark import World
from omb_py.engine.python_loop.loop import compile_stage
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell, usual_cell
from omb_py.suites.registry import BENCHMARKS
from tests.support.optional import needs_torch

pytestmark = needs_torch


def source(name: str, rank: int = 0, stage: int = 0, **more: Any) -> list[str]:
    """The lines of a stage's loop of one of two ranks, without indentation and the numbers of its names."""
    from omb_py.backends.gloo.runner import GlooRenderer

    kind = BENCHMARKS[name]
    (size,) = kind.sizes_for(kind.dtype, (64,))
    cell = make_cell(kind, "gloo", "torch", size, **more)
    program = kind.program(World(rank, 2), CAPABILITIES.fitted(kind, cell, usual_cell(kind)))
    memory = HostMemory("numpy")
    for buffer in program.buffers:
        memory.reserve(buffer.name, buffer.nbytes)
    made = compile_stage(program.stages[stage], GlooRenderer(rank, 2, memory, program), {("pure", "time"): 1000.0})
    return [re.sub(r"_\d+", "", line.strip()) for line in made.source.splitlines()][2:]


def test_a_blocking_collective() -> None:
    lap = ["u = clock()", "s0[i - first] += u - t", "t = u"]
    assert source("allreduce") == ["t = clock()", "allreduce(b, op)", *lap, "barrier()"]
    assert source("reduce", rank=1) == ["t = clock()", "reduce(b, 0, op)", *lap, "barrier()"]
    assert source("allgather") == ["t = clock()", "allgather(b, b)", *lap, "barrier()"]


def test_the_gathering_rank_alone_passes_a_list() -> None:
    assert "gather(b, b, 0)" in source("gather")
    assert "gather(b, None, 0)" in source("gather", rank=1)


def test_a_non_blocking_collective_is_async_and_waited_for() -> None:
    lines = source("iallreduce")
    assert lines[1:3] == ["q[0] = allreduce(b, op, None, True)", "q[0].wait()"]
    both = source("iallreduce", stage=1, tests=2)
    assert both.count("q[0].is_completed()") == 2
    assert "q[0] = alltoall(b, b, None, None, None, True)" in source("ialltoall")
    assert any("None, True)" in line and ", n, n, None" in line for line in source("ialltoallv"))


def test_a_window_of_messages() -> None:
    assert source("bw", window=4)[1:5] == [
        "for k in range(4):",
        "q[k] = isend(b, 1, None, 100)",
        "for w in q: w.wait()",
        "recv(b, 1, None, 101)",
    ]


def test_a_reduction_out_of_place_copies_first_and_an_unknown_step_is_refused() -> None:
    from omb_py.backends.gloo.runner import GlooRenderer
    from omb_py.engine.program import steps
    from omb_py.engine.program.language import Blocks, Buffer, Program, Region, Stage
    from omb_py.engine.python_loop.loop import Names

    memory = HostMemory("numpy")
    for name in ("a", "b"):
        memory.reserve(name, 8)
    render = GlooRenderer(0, 2, memory, Program((Buffer("a", 8), Buffer("b", 8)), (Stage(((),)),)))
    a, b = Region("a", 0, 8), Region("b", 0, 8)
    out = render(steps.allreduce(a, b, "int32", "sum"), Names(), "")
    assert out == "b_1.copy_(b_2); allreduce_3(b_1, op_0)"
    with pytest.raises(EnvironmentProblem, match="Gloo has no gatherv: use --backend mpi"):
        render(steps.gatherv(a, Blocks("b", (4, 4), (0, 4)), 0, "int32"), Names(), "")

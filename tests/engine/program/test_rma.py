"""One-sided steps: what they say, and that the silent one makes no call."""

from __future__ import annotations

import pytest

from omb_py.engine.native import opcodes
from omb_py.engine.native.translate import NativeCall, assemble
from omb_py.engine.program import rma
from omb_py.engine.program.language import Region, Repeat, RequestSlot, Stage, Step, Window, body
from omb_py.engine.program.step_text import describe
from omb_py.engine.python_loop.loop import compile_stage
from omb_py.errors import EnvironmentProblem

A, B, W = Region("send", 0, 8), Region("recv", 0, 8), Region("window", 0, 8)
PUT = rma.put(A, W, 1, "char")


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (PUT, "put 8 B into the window of 1"),
        (rma.get(B, W, 1, "char"), "get 8 B from the window of 1"),
        (rma.with_request(PUT, RequestSlot(0)), "rput 8 B into the window of 1"),
        (rma.accumulate(A, W, 1, "int32", "sum"), "accumulate 8 B sum into the window of 1"),
        (rma.fetch_and_op(A, B, W, 0, "int32", "max"), "fetch_and_op 8 B max into the window of 0"),
        (rma.compare_and_swap(A, A, B, W, 1, "int64"), "compare_and_swap 8 B into the window of 1"),
        (rma.exposed(PUT, 0), "(rank 0: put 8 B of this window)"),
        (rma.win_lock(1), "win_lock 1"),
        (rma.win_lock(1, exclusive=True), "win_lock 1, exclusive"),
        (rma.win_fence(), "win_fence"),
        (rma.win_post(0), "win_post 0"),
    ],
)
def test_in_words(step: Step, text: str) -> None:
    assert describe(step) == text


class TestExposed:
    """The target's program says what a peer does, and does nothing itself; steps keep their numbers."""

    STAGE = Stage(body(rma.exposed(PUT, 0), Repeat(64, (rma.exposed(PUT, 0),)), rma.win_fence()))

    def test_is_no_row_of_the_native_binding(self) -> None:
        table = assemble(self.STAGE, lambda step: NativeCall(1, ()), lambda step: 0, {})
        assert (len(table.rows), len(table.labels)) == (opcodes.WIDTH, 3)

    def test_is_no_line_of_the_python_loop(self) -> None:
        loop = compile_stage(self.STAGE, lambda step, names, k: f"{step.op}()", {})
        assert loop.source.split("\n")[2:] == ["        win_fence()", ""]
        assert list(loop.step_of_line.values()) == [2] and len(loop.labels) == 3


def test_memory_is_shared_on_one_node_only() -> None:
    rma.check_hosts(Window("shared", "window"), ("a", "a"))
    rma.check_hosts(Window("allocate", "window"), ("a", "b"))
    with pytest.raises(EnvironmentProblem, match="they run on a, b: use -w allocate"):
        rma.check_hosts(Window("shared", "window"), ("a", "b"))

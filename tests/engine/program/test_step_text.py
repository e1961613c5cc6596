"""The text and the number of every step."""

from __future__ import annotations

import pytest

from omb_py.engine.program import steps
from omb_py.engine.program.language import Requests, RequestSlot, Result, Step
from omb_py.engine.program.step_text import describe, describe_cell
from omb_py.options.table import make_cell
from tests.support.every_step import TEXTS, A, R


@pytest.mark.parametrize("name", TEXTS)
def test_every_step_has_its_name_and_its_text(name: str) -> None:
    step, text = TEXTS[name]
    assert step.op == name
    assert describe(step) == text


def test_other_forms_are_said_with_their_request() -> None:
    allreduce = TEXTS["allreduce"][0]
    assert describe(steps.nonblocking(allreduce, R)) == "iallreduce 8 B int32 sum, request 3"
    assert describe(steps.persistent(allreduce, R)) == "allreduce_init 8 B int32 sum, request 3"
    assert describe(steps.persistent(steps.send(A, 1, "char"), R)) == "send_init 8 B to 1, request 3"
    assert describe(steps.nonblocking(steps.barrier(), R)) == "ibarrier, request 3"
    assert describe(steps.in_place(allreduce)) == "allreduce 8 B int32 sum, in place"


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (steps.isend(A, 1, "char", RequestSlot(64, 1)), "isend 8 B to 1, request 64+k"),
        (steps.isend(A, 1, "char", RequestSlot(64, 2)), "isend 8 B to 1, request 64+2k"),
        (steps.waitall(Requests(5, 1)), "wait for request 5"),
        (steps.waitall(Requests(5, 0)), "wait for no requests"),
        (steps.compute(17), "compute 17 ns"),
        (steps.compute(2_000_000), "compute 2 ms"),
        (steps.compute(3_000_000_000), "compute 3 s"),
        (steps.compute(Result("main", "time")), "compute as long as lap time of stage main took"),
        (steps.compute(Result("main", "time", 4)), "compute 1/4 as long as lap time of stage main took"),
        (steps.flip(A), "flip a byte of a"),
        (Step("shout", {"send": A, "peer": 3}), "shout send=8 B of a peer=3"),
    ],
)
def test_other_operands(step: Step, text: str) -> None:
    assert describe(step) == text


def test_a_cell_without_a_size_has_only_its_name() -> None:
    assert describe_cell(make_cell("allreduce", "mock", "native", 8)) == "allreduce 8 B"
    assert describe_cell(make_cell("barrier", "mock", "native", 0)) == "barrier"

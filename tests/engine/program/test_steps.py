from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from omb_py.engine.program import steps
from omb_py.engine.program.language import Result, Step
from tests.support.every_step import TEXTS, R, constructors

MADE = {name: step for name, (step, _) in TEXTS.items()}


def test_every_constructor_is_looked_at_here() -> None:
    assert set(MADE) == constructors() | {"isend", "irecv"}


@pytest.mark.parametrize("make", [steps.isend, steps.irecv, steps.nonblocking, steps.persistent])
def test_what_does_not_block_needs_a_request(make: Callable[..., Step]) -> None:
    assert inspect.signature(make).parameters["request"].default is inspect.Parameter.empty


def test_computing_may_take_as_long_as_an_earlier_stage() -> None:
    assert steps.compute(Result("pure", "time"))["ns"] == Result("pure", "time")


def test_an_operand_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match="root"):
        MADE["send"]["root"]


@pytest.mark.parametrize("op", [*steps.COLLECTIVES, *steps.NEIGHBORHOOD, "send", "recv"])
def test_the_three_forms_have_one_base_and_the_same_operands(op: str) -> None:
    call = MADE[op]
    for form in (steps.nonblocking(call, R), steps.persistent(call, R)):
        assert steps.base(form.op) == op
        assert {name: form[name] for name in call.operands} == dict(call.operands)
        assert form["request"] == R

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from omb_py.engine.program import steps
from omb_py.engine.program.language import Requests, Result, Step
from omb_py.engine.program.step_text import describe
from tests.support.every_step import TEXTS, A, B, R, constructors

MADE = {name: step for name, (step, _) in TEXTS.items()}


def test_every_constructor_is_looked_at_here() -> None:
    assert set(MADE) == constructors() | {"isend", "irecv"}


@pytest.mark.parametrize("op", MADE)
def test_a_step_is_called_as_its_constructor(op: str) -> None:
    assert MADE[op].op == op


@pytest.mark.parametrize("op", MADE)
def test_every_step_can_be_said_in_words(op: str) -> None:
    words = describe(MADE[op])
    others = {"waitall": "wait", "startall": "start", "pready": "ready", "parrived": "ask", "recv_any": "any rank"}
    assert {**others, "recv_next": "recv 8 B from the first"}.get(op, op) in words
    assert "=" not in words, "describe does not know this step and lists its operands"


@pytest.mark.parametrize(
    ("op", "name", "value"),
    [
        ("send", "send", A),
        ("send", "peer", 1),
        ("send", "tag", 7),
        ("send", "dtype", "int32"),
        ("recv", "recv", A),
        ("recv", "peer", 0),
        ("recv", "tag", 7),
        ("isend", "request", R),
        ("irecv", "request", R),
        ("isend", "tag", 1),
        ("irecv", "tag", 1),
        ("wait", "request", R),
        ("waitall", "requests", Requests(64, 64)),
        ("bcast", "buf", A),
        ("bcast", "root", 2),
        ("allreduce", "send", A),
        ("allreduce", "recv", B),
        ("allreduce", "op", "sum"),
        ("allgather", "recv", B),
        ("alltoall", "send", B),
        ("reduce_scatter", "counts", (2, 6)),
        ("compute", "ns", 12500),
        ("flip", "recv", A),
        ("flip", "iteration", 7),
    ],
)
def test_operands_have_the_names_that_bindings_look_up(op: str, name: str, value: object) -> None:
    assert MADE[op][name] == value


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

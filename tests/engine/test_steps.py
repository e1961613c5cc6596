from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from omb_py.engine import steps
from omb_py.engine.describe import describe
from omb_py.engine.program import Region, Request, Requests, Result, Step

A, B = Region("send", 0, 8), Region("recv", 8, 16)
REQUEST = Request(2, 1)

MADE: dict[str, Step] = {
    "send": steps.send(A, 1, "int32", 7),
    "recv": steps.recv(B, 0, "int32", 7),
    "isend": steps.isend(A, 1, "int32", REQUEST),
    "irecv": steps.irecv(B, 0, "int32", REQUEST),
    "wait": steps.wait(REQUEST),
    "waitall": steps.waitall(Requests(0, 4)),
    "test": steps.test(REQUEST),
    "barrier": steps.barrier(),
    "ibarrier": steps.nonblocking(steps.barrier(), REQUEST),
    "bcast": steps.bcast(A, 3, "char"),
    "allreduce": steps.allreduce(A, B, "int32", "sum"),
    "iallreduce": steps.nonblocking(steps.allreduce(A, B, "int32", "sum"), REQUEST),
    "allgather": steps.allgather(A, B, "char"),
    "alltoall": steps.alltoall(A, B, "char"),
    "reduce": steps.reduce(A, A, 1, "int32", "sum"),
    "reduce_scatter_block": steps.reduce_scatter_block(B, A, "int32", "sum"),
    "gather": steps.gather(A, B, 1, "char"),
    "scatter": steps.scatter(B, A, 1, "char"),
    "compute": steps.compute(1000),
    "flip": steps.flip(B),
}


def constructors() -> list[str]:
    return [
        name for name, thing in vars(steps).items() if inspect.isfunction(thing) and thing.__module__ == steps.__name__
    ]


def test_every_constructor_is_looked_at_here() -> None:
    assert sorted(MADE) == sorted(constructors())


@pytest.mark.parametrize("op", MADE)
def test_a_step_is_called_as_its_constructor(op: str) -> None:
    assert MADE[op].op == op


@pytest.mark.parametrize("op", MADE)
def test_every_step_can_be_said_in_words(op: str) -> None:
    words = describe(MADE[op])
    assert ("wait" if op == "waitall" else op) in words
    assert "=" not in words, "describe does not know this step and lists its operands"


@pytest.mark.parametrize(
    ("op", "name", "value"),
    [
        ("send", "send", A), ("send", "peer", 1), ("send", "tag", 7), ("send", "dtype", "int32"),
        ("recv", "recv", B), ("recv", "peer", 0), ("recv", "tag", 7),
        ("isend", "request", REQUEST), ("irecv", "request", REQUEST), ("isend", "tag", 1), ("irecv", "tag", 1),
        ("wait", "request", REQUEST), ("waitall", "requests", Requests(0, 4)),
        ("bcast", "buf", A), ("bcast", "root", 3),
        ("allreduce", "send", A), ("allreduce", "recv", B), ("allreduce", "op", "sum"),
        ("iallreduce", "request", REQUEST), ("allgather", "recv", B), ("alltoall", "send", A),
        ("compute", "ns", 1000), ("flip", "recv", B), ("flip", "iteration", -1),
    ],
)  # fmt: skip
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

"""The text and the number of every step."""

from __future__ import annotations

import inspect

import pytest

from omb_py.engine import steps
from omb_py.engine.benchmark import Cell
from omb_py.engine.describe import describe, describe_cell, steps_of
from omb_py.engine.program import Lap, Region, Repeat, Request, Requests, Result, Stage, Step

A, B, R = Region("a", 0, 8), Region("b", 0, 32), Request(3)

TEXTS = {
    "send": (steps.send(A, 1, "char"), "send 8 B to 1"),
    "recv": (steps.recv(A, 0, "char"), "recv 8 B from 0"),
    "isend": (steps.isend(A, 1, "char", R), "isend 8 B to 1, request 3"),
    "irecv": (steps.irecv(A, 0, "char", R), "irecv 8 B from 0, request 3"),
    "wait": (steps.wait(R), "wait for request 3"),
    "waitall": (steps.waitall(Requests(64, 64)), "wait for requests 64 to 127"),
    "test": (steps.test(R), "test request 3"),
    "barrier": (steps.barrier(), "barrier"),
    "ibarrier": (steps.nonblocking(steps.barrier(), R), "ibarrier, request 3"),
    "bcast": (steps.bcast(A, 2, "char"), "bcast 8 B from root 2"),
    "allreduce": (steps.allreduce(A, A, "int32", "sum"), "allreduce 8 B int32 sum"),
    "iallreduce": (steps.nonblocking(steps.allreduce(A, A, "int32", "max"), R), "iallreduce 8 B int32 max, request 3"),
    "allgather": (steps.allgather(A, B, "char"), "allgather 8 B from each rank"),
    "alltoall": (steps.alltoall(B, B, "char"), "alltoall 32 B from each rank"),
    "reduce": (steps.reduce(A, A, 1, "int32", "sum"), "reduce 8 B int32 sum to root 1"),
    "reduce_scatter_block": (steps.reduce_scatter_block(B, A, "int32", "sum"), "reduce_scatter_block 32 B int32 sum"),
    "gather": (steps.gather(A, B, 1, "char"), "gather 8 B from each rank to root 1"),
    "scatter": (steps.scatter(B, A, 1, "char"), "scatter 8 B to each rank from root 1"),
    "compute": (steps.compute(12_500), "compute 12.5 us"),
    "flip": (steps.flip(A, 7), "flip a byte of a in iteration 7"),
}


def constructors() -> list[str]:
    found = inspect.getmembers(steps, inspect.isfunction)
    return [name for name, function in found if function.__module__ == steps.__name__ and not name.startswith("_")]


def test_there_are_constructors() -> None:
    assert {"send", "allreduce", "flip"} <= set(constructors())


@pytest.mark.parametrize("name", constructors())
def test_every_constructor_has_its_text(name: str) -> None:
    step, text = TEXTS[name]
    assert step.op == name
    assert describe(step) == text


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (steps.isend(A, 1, "char", Request(64, 1)), "isend 8 B to 1, request 64+k"),
        (steps.isend(A, 1, "char", Request(64, 2)), "isend 8 B to 1, request 64+2k"),
        (steps.waitall(Requests(5, 1)), "wait for request 5"),
        (steps.waitall(Requests(5, 0)), "wait for no requests"),
        (steps.compute(17), "compute 17 ns"),
        (steps.compute(2_000_000), "compute 2 ms"),
        (steps.compute(3_000_000_000), "compute 3 s"),
        (steps.compute(Result("main", "time")), "compute as long as lap time of stage main took"),
        (steps.flip(A), "flip a byte of a"),
        (Step("move", {"send": A, "peer": 3}), "move send=8 B of a peer=3"),
    ],
)
def test_other_operands(step: Step, text: str) -> None:
    assert describe(step) == text


def test_a_cell_without_a_size_has_only_its_name() -> None:
    assert describe_cell(Cell("allreduce", "mock", "native", 8)) == "allreduce 8 B"
    assert describe_cell(Cell("barrier", "mock", "native", 0)) == "barrier"


def test_numbers_run_through_variants_then_setup_then_teardown_and_repeats_count_once() -> None:
    send, recv, barrier = steps.send(A, 1, "char"), steps.recv(A, 1, "char"), steps.barrier()
    stage = Stage(
        variants=((Lap(), Repeat(5, (send,)), recv, Lap("time")), (recv,)),
        setup=(barrier,),
        teardown=(steps.wait(R),),
    )
    assert steps_of(stage) == (send, recv, recv, barrier, steps.wait(R))

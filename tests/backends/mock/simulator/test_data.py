"""Bytes: what collectives and messages deliver, for every type; wrong bytes; moving nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from omb_py.backends.mock.runner import MockRunner
from omb_py.backends.mock.session import MockSession
from omb_py.backends.mock.simulator.data import SMALL_BYTES
from omb_py.engine.measuring.payload import from_numbers, to_numbers
from omb_py.engine.measuring.reductions import REDUCTIONS
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.dtypes import DTYPES, OPS_OF
from omb_py.engine.program.language import Buffer, Program, Region, Stage, Step, body
from omb_py.options.table import make_cell
from omb_py.suites import find

RANKS, COUNT = 3, 5


def collective(step: Step, sent: int, received: int, text: str = "", **cell: Any) -> MockRunner:
    """A runner of one collective on RANKS ranks."""
    program = Program((Buffer("send", sent), Buffer("recv", received)), (Stage(body(step)),))
    session = MockSession({"ranks": RANKS, "settings": text})
    runner = session.load(make_cell("hand", "mock", "native", 8, **cell), dict.fromkeys(range(RANKS), program))
    runner.enter(0, {})
    return runner


def values(dtype: str, count: int, seed: int = 0) -> Any:
    """Small integers of a type, one row a rank."""
    return np.random.default_rng(seed).integers(0, 5, (RANKS, count)).astype(DTYPES[dtype].numpy)


def put(runner: MockRunner, buffer: str, rows: Any) -> None:
    for rank, row in enumerate(rows):
        runner.memory(rank, buffer)[:] = row.view(np.uint8)


def got(runner: MockRunner, buffer: str, dtype: str) -> Any:
    return np.array([runner.memory(r, buffer).view(DTYPES[dtype].numpy) for r in range(RANKS)])


DEFINED = [(op, d) for op in REDUCTIONS for d in DTYPES if op in OPS_OF[DTYPES[d].kind]]
"""Bitwise and logical reductions are defined for integers only, order for real numbers only."""
KINDS = ("int8", "uint32", "bfloat16", "float64", "complex64")
"""A type of each kind, and the one that NumPy lacks."""


@pytest.mark.parametrize(("op", "dtype"), [each for each in DEFINED if each[0] == "sum" or each[1] in KINDS])
def test_allreduce(op: str, dtype: str) -> None:
    kind = np.dtype(DTYPES[dtype].numpy)
    n = COUNT * kind.itemsize
    runner = collective(steps.allreduce(Region("send", 0, n), Region("recv", 0, n), dtype, op), n, n)
    sent = from_numbers(values("int8", COUNT), dtype)
    put(runner, "send", sent)
    runner.run(0, 0, 1)
    expected = sent[0]
    for row in sent[1:]:
        expected = from_numbers(REDUCTIONS[op](to_numbers(expected, dtype), to_numbers(row, dtype)), dtype)
    assert got(runner, "recv", dtype).tolist() == [expected.tolist()] * RANKS
    assert got(runner, "send", dtype).tolist() == sent.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_sums_that_overflow_say_nothing(dtype: str) -> None:
    """NumPy would warn on stderr, and warnings are errors here."""
    size = DTYPES[dtype].itemsize
    largest = from_numbers(np.full((RANKS, 1), 3e38 if dtype != "float16" else 6e4, "float32"), dtype)
    call = steps.allreduce(Region("send", 0, size), Region("recv", 0, size), dtype, "sum")
    runner = collective(call, size, size)
    put(runner, "send", largest)
    runner.run(0, 0, 1)
    assert np.isinf(to_numbers(got(runner, "recv", dtype), dtype).astype("float64")).all()


def test_allreduce_in_place_and_with_a_rest() -> None:
    whole = Region("send", 0, 10)  # two integers and two bytes that belong to none
    runner = collective(steps.allreduce(whole, whole, "int32", "sum"), 10, 0)
    for rank in range(RANKS):
        runner.memory(rank, "send")[:8] = np.array([rank, 7], np.int32).view(np.uint8)
        runner.memory(rank, "send")[8:] = rank
    runner.run(0, 0, 1)
    for rank in range(RANKS):
        assert runner.memory(rank, "send")[:8].view(np.int32).tolist() == [3, 21]
        assert runner.memory(rank, "send")[8:].tolist() == [rank, rank]


@pytest.mark.parametrize(("root", "dtype"), [(0, "int8"), (1, "bfloat16"), (2, "complex64")])
def test_bcast(root: int, dtype: str) -> None:
    n = COUNT * DTYPES[dtype].itemsize
    runner = collective(steps.bcast(Region("send", 0, n), root, dtype), n, 0)
    sent = values(dtype, COUNT)
    put(runner, "send", sent)
    runner.run(0, 0, 1)
    assert got(runner, "send", dtype).tolist() == [sent[root].tolist()] * RANKS


def test_flip_steps() -> None:
    runner = collective(steps.flip(Region("send", 1, 2), iteration=1), 3, 0)
    runner.run(0, 0, 1)
    assert runner.memory(2, "send").tolist() == [0, 0, 0]
    runner.run(0, 1, 1)
    assert [runner.memory(r, "send").tolist() for r in range(RANKS)] == [[0, 255, 0]] * RANKS


@pytest.mark.parametrize("text", ["flip=1", "flip=1:8", "flip=1:8:0", "flip=1::0"])
def test_an_injected_wrong_byte(text: str) -> None:
    step = steps.allgather(Region("send", 0, 2), Region("recv", 0, 6), "char")
    runner = collective(step, 2, 6, text)
    runner.run(0, 0, 1)
    assert [runner.memory(r, "recv").tolist() for r in range(RANKS)] == [[0] * 6, [255, 0, 0, 0, 0, 0], [0] * 6]


def test_the_root_of_a_broadcast_receives_nothing_to_spoil() -> None:
    runner = collective(steps.bcast(Region("send", 0, 2), 1, "char"), 2, 0, "flip=1,flip=2")
    runner.run(0, 0, 1)
    assert [runner.memory(r, "send").tolist() for r in range(RANKS)] == [[0, 0], [0, 0], [255, 0]]


def test_a_wrong_byte_in_a_window_hits_one_message() -> None:
    found = find("bw")
    cell = make_cell("bw", "mock", "native", 4, window=3, distinct=True)
    session = MockSession({"ranks": 2, "settings": "flip=1"})
    runner = session.load(cell, {r: found.program(World(r, 2), cell) for r in range(2)})
    runner.memory(0, "send")[:] = range(12)
    runner.run(0, 0, 1)
    assert runner.memory(1, "recv").tolist() == [255, *range(1, 12)]


# -- buffers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numpy", "bytearray"])
def test_buffers_are_writable_and_apart(kind: str) -> None:
    runner = collective(steps.barrier(), 4, 4, buffer=kind)
    runner.memory(0, "send")[:] = 1
    assert runner.memory(0, "send").tolist() == [1] * 4
    assert runner.memory(1, "send").tolist() == runner.memory(0, "recv").tolist() == [0] * 4
    with pytest.raises(KeyError):
        runner.memory(0, "other")


def test_ranks_may_have_other_buffers() -> None:
    a = Program((Buffer("a", 8),), (Stage(body(steps.send(Region("a", 4, 4), 1, "char"))),))
    b = Program((Buffer("b", 4),), (Stage(body(steps.recv(Region("b", 0, 4), 0, "char"))),))
    runner = MockSession({"ranks": 2}).load(make_cell("hand", "mock", "native", 4), {0: a, 1: b})
    runner.memory(0, "a")[:] = range(8)
    runner.run(0, 0, 1)
    assert runner.memory(1, "b").tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize(
    ("text", "nbytes", "cell", "moves"),
    [
        ("", SMALL_BYTES // (2 * RANKS), {}, True),
        ("", SMALL_BYTES, {}, False),
        ("", SMALL_BYTES, {"validate": True}, True),
        ("", SMALL_BYTES, {"distinct": True}, True),
        ("data=on", SMALL_BYTES, {}, True),
        ("data=off", 8, {}, False),
        ("data=off", 8, {"distinct": True}, False),
    ],
)
def test_when_bytes_are_moved(text: str, nbytes: int, cell: dict[str, bool], moves: bool) -> None:
    whole = Region("send", 0, nbytes)
    step = steps.allreduce(whole, Region("recv", 0, nbytes), "int32", "sum")
    runner = collective(step, nbytes, nbytes, text, **cell)
    assert runner.moves == moves
    runner.memory(0, "send")[:] = 1
    times = runner.run(0, 0, 1)
    assert set(times) == set(range(RANKS))
    if moves:
        assert runner.memory(2, "recv")[0] == 1
    else:  # scratch, shared by all
        assert runner.memory(0, "send") is runner.memory(2, "recv")


def test_data_does_not_change_times() -> None:
    n = 1 << 10
    step = steps.allreduce(Region("send", 0, n), Region("recv", 0, n), "int32", "sum")
    moving, still = (collective(step, n, n, f"noise=0.1,data={data}") for data in ("on", "off"))
    assert moving.run(0, 0, 5)[1].tolist() == still.run(0, 0, 5)[1].tolist()

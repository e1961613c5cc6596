"""A loop that runs when its communicator is aborted calls on none."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from omb_py.backends.nccl import session
from omb_py.backends.nccl.python_bindings.by_nccl4py import Nccl4pyBinding
from omb_py.backends.nccl.runner import NcclRunner
from omb_py.backends.nccl.session import NcclSession
from omb_py.engine.devices import synchronise
from omb_py.engine.native import opcodes
from omb_py.engine.program.language import Lap, Region, Stage, body
from omb_py.engine.program.steps import allreduce

COMM, OTHER = 0x7F00_1000, 0x7F00_2000


def running(step: int) -> tuple[NcclRunner, Any]:
    """A runner whose loop is at a step of: allreduce, synchronise."""
    rows = np.zeros((2, opcodes.WIDTH), np.int64)
    rows[0, opcodes.FN], rows[0, opcodes.ARG0 + 5], rows[0, opcodes.STRIDE0] = COMM, COMM, COMM
    rows[1, opcodes.ARG0 : opcodes.ARG0 + 2] = OTHER, COMM
    stage = Stage(body(Lap(), allreduce(Region("a", 0, 8), Region("b", 0, 8), "float32", "sum"), synchronise("lap")))
    runner = NcclRunner.__new__(NcclRunner)
    word = np.array([0, 3, step, 0])
    runner.session = SimpleNamespace(machine=SimpleNamespace(word=word))  # type: ignore[assignment]
    runner._running = SimpleNamespace(rows=rows), stage  # type: ignore[assignment]
    return runner, (rows, word)


def test_operands_alone_are_taken_and_a_loop_that_waits_for_its_device_is_not_waited_for() -> None:
    runner, (rows, _) = running(step=1)
    runner.revoke([COMM], enough_s=60)
    assert (rows[0, opcodes.ARG0 + 5], rows[0, opcodes.FN], rows[0, opcodes.STRIDE0]) == (0, COMM, COMM)
    assert rows[1, opcodes.ARG0 : opcodes.ARG0 + 2].tolist() == [OTHER, 0]


def test_a_call_that_is_under_way_may_end() -> None:
    runner, (_, word) = running(step=0)
    leave = threading.Timer(0.05, lambda: word.__setitem__(2, 1))
    leave.start()
    runner.revoke([COMM], enough_s=60)
    assert word[2] == 1
    leave.join()


def test_a_call_that_blocks_is_left_to_the_abort() -> None:
    runner, (rows, word) = running(step=0)
    began = time.monotonic()
    runner.revoke([COMM], enough_s=0.01)
    assert time.monotonic() - began >= 0.01 and word[2] == 0 and rows[0, opcodes.ARG0 + 5] == 0
    runner._running = None
    runner.revoke([COMM], enough_s=60)  # nothing runs


def test_the_time_of_the_first_communicator_is_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: Any = SimpleNamespace(_start_us=5.0, started=None, rank=3)
    monkeypatch.setattr(session.time, "perf_counter_ns", lambda: 3_000_000)
    session.NcclSession._note_start(waiting, 1_000_000)
    assert waiting.started == {"init": {3: 2005.0}}
    session.NcclSession._note_start(waiting, 0)
    assert waiting.started == {"init": {3: 2005.0}}, "of later ones nothing is noted"


@pytest.mark.parametrize(
    ("version", "op", "has"),
    [
        ("2.28.3", "alltoall", True),
        ("2.30", "gather", True),
        ("2.27.9", "alltoall", False),
        ("2.28.3", "allreduce", False),
        ("of unknown version", "alltoall", False),
    ],
)
def test_nccl4py_has_the_newer_collectives_where_the_library_has(version: str, op: str, has: bool) -> None:
    binding: Any = SimpleNamespace(library_version=version, comm=SimpleNamespace(alltoall=print, gather=print))
    assert bool(Nccl4pyBinding.has(binding, op)) == has


def test_buffers_of_one_kind_of_communicators_are_given_back_before_those_of_another_are_made() -> None:
    """Together they may not fit, and each is measured alone."""
    held: list[str] = []

    class Memory:
        def __init__(self, name: str) -> None:
            self.name = name

        def reserve(self, buffer: str, nbytes: int) -> None:
            if buffer == "send":
                held.append(f"{self.name} {nbytes}")

        def close(self) -> None:
            held.append(f"{self.name} given back")

    usual, windows = (SimpleNamespace(memory=Memory(name)) for name in ("usual", "windows"))
    ours = NcclSession.__new__(NcclSession)
    ours.comms, ours._holding, ours._in_use, ours._sizes = usual, usual, [usual, windows], {}  # type: ignore[assignment]
    ours.device, ours._left = SimpleNamespace(memory_left=lambda: 0), [0]  # type: ignore[assignment]
    ours.reserve("numpy", {"send": 64})
    ours._hold(windows, {"send": 8})  # type: ignore[arg-type]
    assert list(dict.fromkeys(held)) == ["usual 64", "usual given back", "windows 64", "windows 8"]

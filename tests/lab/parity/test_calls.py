"""Loops found among calls, and looked for among others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.parity import calls

TIMES = calls.ITERATIONS + calls.WARMUP
SEND, RECV, BARRIER = "MPI_Send count=64 peer=1 tag=1", "MPI_Recv count=64 peer=1 tag=1", "MPI_Barrier"
LATENCY = [BARRIER, *[SEND, RECV] * TIMES, BARRIER, BARRIER]


def test_a_loop_is_what_repeats_once_an_iteration() -> None:
    assert calls.loops(LATENCY, TIMES) == [[SEND, RECV] * TIMES]
    assert calls.loops([BARRIER, *[SEND] * (TIMES - 1)], TIMES) == []


def test_the_same_loop_between_other_calls_is_the_same() -> None:
    assert calls.wrong_loops(LATENCY, [*[BARRIER] * 70, *[SEND, RECV] * TIMES, *[BARRIER] * 9]) == []


@pytest.mark.parametrize(
    "ours",
    [
        [SEND, RECV, BARRIER] * TIMES,
        [SEND.replace("tag=1", "tag=2"), RECV] * TIMES,
        [SEND.replace("64", "32"), RECV] * TIMES,
        [SEND, RECV] * (TIMES - 1),
    ],
)
def test_another_call_operand_or_number_is_said(ours: list[str]) -> None:
    (line,) = calls.wrong_loops(LATENCY, ours)
    assert line.startswith(f"not in omb-py: 1 x {SEND}, 1 x {RECV}")


def test_roots_that_begin_elsewhere_are_another_loop() -> None:
    """``-k rotate`` on 3 ranks: the roots go on from the warm-ups."""
    theirs = [f"MPI_Gather root={number % 3}" for number in range(TIMES)]
    assert calls.wrong_loops(theirs, theirs) == []
    assert calls.wrong_loops(theirs, theirs[1:] + theirs[:1]) != []


def test_calls_are_read_with_the_operands_that_are_compared(tmp_path: Path) -> None:
    file = tmp_path / "0"
    file.write_text(f"MPI_Send 1 8 {0x4C000101} 1 100 7 0\nMPI_Send 1 1 {-872415232} 1 100 7 0\nMPI_Barrier 7\n")
    names = {"MPI_Send": ("send", "count", "dtype", "peer", "tag", "comm"), "MPI_Barrier": ("comm",)}
    assert calls.read(file, names) == [
        f"MPI_Send count=8 dtype={0x4C000101} peer=1 tag=100",
        "MPI_Send count=1 dtype=* peer=1 tag=100",
        "MPI_Barrier",
    ]
    assert calls.read(tmp_path / "none", names) == []

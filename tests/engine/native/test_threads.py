"""Threads of a rank share out the iterations, start together, and are seen from outside."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.engine.native.threads import Crew, ThreadGate, share, stages_of
from omb_py.engine.program.language import Lap, Stage
from omb_py.engine.session import StepFailed
from tests.support.patience import PATIENCE_S


@given(st.integers(-300, 300), st.integers(0, 200), st.integers(1, 9))
def test_shares_are_all_iterations_once(first: int, iterations: int, threads: int) -> None:
    played = []
    for thread in range(threads):
        begin, count = share(first, iterations, threads, thread)
        played += [own * threads + thread for own in range(begin, begin + count)]
    assert sorted(played) == list(range(first, first + iterations))


def test_variants_are_dealt_out_in_turn() -> None:
    stage = Stage(tuple((Lap(name),) for name in "abcdef"), threads=3)
    assert [part.variants for part in stages_of(stage)] == [
        ((Lap("a"),), (Lap("d"),)),
        ((Lap("b"),), (Lap("e"),)),
        ((Lap("c"),), (Lap("f"),)),
    ]
    with pytest.raises(ValueError, match="6 variants cannot be shared among 4 threads"):
        stages_of(Stage(stage.variants, threads=4))


class Toy:
    """Notes which thread ran which of its iterations; fails or waits if told."""

    labels = ("send", "recv")

    def __init__(self, gate: ThreadGate, fails: bool = False, waits: threading.Event | None = None) -> None:
        self.gate, self.fails, self.waits = gate, fails, waits
        self.thread = 0
        self.at = (0, 0)

    def run(self, first: int, iterations: int) -> np.ndarray:
        self.thread = threading.get_ident()
        self.gate.wait()
        self.at = (first, 1)
        if self.fails:
            raise StepFailed(1, 5, "truncated")
        if self.waits:
            self.waits.wait(PATIENCE_S)
        return np.arange(first, first + iterations, dtype=np.int64)[:, None]

    def position(self) -> tuple[int, int]:
        return self.at


def test_samples_come_back_in_the_order_of_the_iterations_from_real_threads() -> None:
    gate = ThreadGate()
    works = [Toy(gate) for _ in range(3)]
    crew = Crew(works, gate)
    assert crew.run(-2, 9, 1)[:, 0].tolist() == [i // 3 for i in range(-2, 7)]
    assert len({work.thread for work in works} | {threading.get_ident()}) == 4
    assert crew.run(4, 1, 1)[:, 0].tolist() == [1]  # one thread alone does not wait for the others


def test_a_failure_is_told_at_once_with_its_thread_while_another_hangs() -> None:
    gate, end = ThreadGate(), threading.Event()
    crew = Crew([Toy(gate, waits=end), Toy(gate, fails=True)], gate)
    with pytest.raises(StepFailed) as caught:
        crew.run(0, 2, 1)
    assert (caught.value.step, caught.value.text) == (3, "truncated")
    assert crew.labels[3] == "thread 1: recv"
    end.set()


def test_the_position_is_that_of_the_thread_that_is_behind_and_not_done() -> None:
    gate, end = ThreadGate(), threading.Event()
    crew = Crew([Toy(gate), Toy(gate, waits=end)], gate)
    runs = threading.Thread(target=crew.run, args=(0, 20, 1), daemon=True)
    runs.start()
    deadline = time.monotonic() + PATIENCE_S
    while crew.position() != (1, 3) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert crew.position() == (1, 3)
    assert crew.labels[3] == "thread 1: recv"
    end.set()
    runs.join(PATIENCE_S)
    assert crew.position() == (0, 0)

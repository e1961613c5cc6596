"""The skew of a barrier: how many barriers it is measured with, on a simulated clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from omb_py.backends.mpi import clocks as skew


class Ranks:
    """One rank of two, and the runner of its program: each barrier moves the clock on, the other rank is 3 us late."""

    rank, size, hosts, traffic = 0, 2, ("a", "a"), None

    def __init__(self, barrier_s: float) -> None:
        self.barrier_s, self.clock, self.timed = barrier_s, 0.0, 0
        self.barriers = 0

    def barrier(self) -> None:
        self.barriers += 1
        self.clock += self.barrier_s

    def load(self, cell: Any, programs: Any) -> Ranks:
        return self

    def enter(self, stage: int, results: Any) -> None: ...

    def leave(self, stage: int) -> None: ...

    def run(self, stage: int, first: int, iterations: int) -> dict[int, Any]:
        for _ in range(iterations):
            self.barrier()
        self.timed = iterations
        return {0: np.arange(iterations)[:, None] * 10**6}

    def gather(self, value: Any) -> list[Any]:
        exits, late = value
        return [(exits, late), ([ns + 3000 for ns in exits], late)]

    def share(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize(("barrier_s", "rounds"), [(1e-6, 60), (0.008, 60), (0.1, 5), (0.4, 5), (3.0, 5)])
def test_slow_barriers_are_measured_less_often(barrier_s: float, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """63 barriers of 64 ranks on two loaded cores, 0.4 s each, would take longer than what is measured."""
    ranks = Ranks(barrier_s)
    monkeypatch.setattr(skew.time, "perf_counter", lambda: ranks.clock)
    assert skew.measured_skew(ranks, "barrier") == pytest.approx(3.0)
    assert ranks.timed == rounds
    assert ranks.barriers <= 1.05 * rounds + 4

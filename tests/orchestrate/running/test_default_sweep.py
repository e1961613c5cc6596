"""What a default sweep costs, counted in calls against OMB 7.5's fixed counts, on a simulated clock."""

from __future__ import annotations

from typing import Any

import pytest

import omb_py
from omb_py.backends.mock.runner import MockRunner
from omb_py.suites.registry import find

HALF = 0.5
"""The aim for a sweep's wall time, of C OMB's."""
CALM, NOISY = "noise=0.02", "noise=0.2"
"""Samples that differ by 2 %: a median is then known to 1 % at the first checkpoint. By 20 %: at none."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sweeps and counts: (iterations that the backend ran, whatever they were for; those that OMB would run)."""
    ran: list[int] = []
    run = MockRunner.run

    def counted(self: MockRunner, stage: int, first: int, iterations: int) -> Any:
        ran.append(iterations)
        return run(self, stage, first, iterations)

    monkeypatch.setattr(MockRunner, "run", counted)

    def sweep(benchmark: str, ranks: int, mock: str, least: int = 16, **more: str) -> tuple[int, int]:
        ran.clear()
        run = omb_py.run(benchmark, backends=("mock",), ranks=ranks, mock=mock, seed=1, store=None, quiet=True, **more)
        frame = run.frame
        counts = find(benchmark).counts
        assert len(frame) >= least
        assert (frame["iterations"] >= [min(100, counts.of(size)[0]) for size in frame["size_bytes"]]).all()
        return sum(ran), sum(sum(counts.of(size)) for size in frame["size_bytes"])

    return sweep


@pytest.mark.slow
@pytest.mark.parametrize(("benchmark", "ranks"), [("latency", 2), ("allreduce", 2), ("alltoall", 4)])
def test_a_calm_sweep_makes_less_than_half_of_the_calls(benchmark: str, ranks: int, calls: Any) -> None:
    ours, theirs = calls(benchmark, ranks, CALM)
    assert ours < HALF * theirs


def test_a_noisy_sweep_makes_hardly_more_than_ombs_calls(calls: Any) -> None:
    """Five iterations are dropped after each checkpoint."""
    ours, theirs = calls("allreduce", 2, NOISY, least=3, sizes="8:512:8")
    assert theirs <= ours < 1.02 * theirs


@pytest.mark.slow
def test_bw_makes_the_windows_of_c(calls: Any) -> None:
    """100 and 20 windows a size are already few: the contract allows no fewer. Nothing else sends one."""
    ours, theirs = calls("bw", 2, NOISY)
    assert ours == theirs == 14 * (100 + 10) + 9 * (20 + 2)

"""What a default sweep costs, counted in calls against OMB 7.5's fixed counts, on a simulated clock."""

from __future__ import annotations

import pytest

import omb_py
from omb_py.suites.registry import find

HALF = 0.5
"""The aim for a sweep's wall time, of C OMB's."""
CALM = "noise=0.02"
"""Samples that differ by 2 %: a median is then known to 1 % at the first checkpoint."""


def calls(benchmark: str, ranks: int, mock: str) -> tuple[int, int]:
    """Calls of all sizes of a default sweep, warm-ups included, and those that OMB would make."""
    frame = omb_py.run(benchmark, backends=("mock",), ranks=ranks, mock=mock, seed=1, store=None, quiet=True).frame
    counts = find(benchmark).counts
    ours = int((frame["iterations"] + frame["warmup"]).sum())
    theirs = sum(sum(counts.of(size)) for size in frame["size_bytes"])
    assert len(frame) > 15 and (frame["iterations"] >= [min(100, counts.of(b)[0]) for b in frame["size_bytes"]]).all()
    return ours, theirs


@pytest.mark.parametrize(
    ("benchmark", "ranks"), [("latency", 2), ("allreduce", 2), ("allreduce", 4), ("alltoall", 2), ("alltoall", 4)]
)
def test_a_calm_sweep_makes_less_than_half_of_the_calls(benchmark: str, ranks: int) -> None:
    ours, theirs = calls(benchmark, ranks, CALM)
    assert ours < HALF * theirs


def test_bw_makes_the_calls_of_c() -> None:
    """100 and 20 windows a size are already few: the contract allows no fewer."""
    assert len(set(calls("bw", 2, CALM))) == 1

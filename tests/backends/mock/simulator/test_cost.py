"""Costs, noise and launch effects of the simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.backends.mock.config import Config, parse
from omb_py.backends.mock.simulator.network import Costs
from omb_py.backends.mock.simulator.timing import Noise, launch_factor

A, B = 1000.0, 0.5


def test_message() -> None:
    assert Costs(A, B, 2).message(8) == 1004
    assert Costs(A, B, 2).wire(8) == 4


@pytest.mark.parametrize(("ranks", "rounds"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11)])
def test_rounds(ranks: int, rounds: int) -> None:
    assert Costs(A, B, ranks).rounds == rounds
    assert Costs(A, B, ranks).barrier() == rounds * A


def test_short_collectives_on_eight_ranks() -> None:
    costs = Costs(A, B, 8)
    assert costs.bcast(8) == 3 * (A + 8 * B)
    assert costs.allreduce(8) == 3 * (A + 8 * B)
    assert costs.allgather(8) == 3 * A + 7 * 8 * B
    assert costs.alltoall(8) == 3 * A + 3 * 4 * 8 * B


def test_long_collectives_on_eight_ranks() -> None:
    costs, n = Costs(A, B, 8), 1 << 20
    assert costs.bcast(n) == 10 * A + 2 * 7 / 8 * n * B
    assert costs.allreduce(n) == 6 * A + 2 * 7 / 8 * n * B
    assert costs.allgather(n) == 3 * A + 7 * n * B
    assert costs.alltoall(n) == 7 * (A + n * B)


@pytest.mark.parametrize(
    ("op", "formula"),
    [
        ("barrier", "barrier"),
        ("bcast", "bcast"),
        ("allreduce", "allreduce"),
        ("reduce", "allreduce"),
        ("reduce_scatter", "reduce_scatter"),
        ("reduce_scatter_block", "reduce_scatter"),
        ("gather", "allgather"),
        ("gatherv", "allgather"),
        ("scatter", "allgather"),
        ("scatterv", "allgather"),
        ("allgather", "allgather"),
        ("allgatherv", "allgather"),
        ("alltoall", "alltoall"),
        ("alltoallv", "alltoall"),
        ("alltoallw", "alltoall"),
    ],
)
def test_by_name(op: str, formula: str) -> None:
    costs = Costs(A, B, 8)
    expected = costs.barrier() if op == "barrier" else getattr(costs, formula)(64)
    assert costs.collective(op, 64) == expected


@given(ranks=st.integers(1, 4096), small=st.integers(0, 1 << 22), more=st.integers(0, 1 << 22))
def test_more_bytes_never_cost_less(ranks: int, small: int, more: int) -> None:
    costs = Costs(A, B, ranks)
    for op in ("barrier", "bcast", "allreduce", "allgather", "alltoall"):
        assert 0 <= costs.collective(op, small) <= costs.collective(op, small + more)


def test_one_rank_at_a_time_draws_what_all_at_once_get() -> None:
    ranks, draws = 1000, 200
    config = parse("noise=0.1,spike=0.1:5")
    one, all_ = Noise(config, (7, 1), ranks), Noise(config, (7, 1), ranks)
    together = np.array([all_.row(k) for k in range(draws)])
    # rank 3 runs far ahead of rank 900
    assert [one.draw(3) for _ in range(draws)] == together[:, 3].tolist()
    assert [one.draw(900) for _ in range(draws)] == together[:, 900].tolist()
    assert one.used[3] == draws and one.used[0] == 0


def test_forgetting_keeps_what_is_still_needed() -> None:
    text, ranks, draws = "noise=0.1", 5000, 100
    noise, again = Noise(parse(text), (7,), ranks), Noise(parse(text), (7,), ranks)
    noise.used[:] = [40] * ranks
    noise.row(39)
    noise.forget()
    assert [noise.draw(2) for _ in range(draws)] == [again.row(40 + k)[2] for k in range(draws)]


def test_seeds_decide() -> None:
    config = parse("noise=0.1")

    def first(*seeds: int) -> float:
        return Noise(config, seeds, 2).draw(0)

    assert first(1, 2) == first(1, 2)
    assert len({first(1, 2), first(2, 1), first(1, 3), first(-1, 2), first(1, -2)}) == 5


def test_median_spread_and_spikes() -> None:
    noise = Noise(parse("noise=0.2"), (3,), 1)
    logs = np.log([noise.draw(0) for _ in range(20000)])
    assert abs(np.median(logs)) < 0.01
    assert abs(logs.std() - 0.2) < 0.01
    spikes = Noise(parse("spike=0.03:10"), (3,), 1)
    factors = [spikes.draw(0) for _ in range(20000)]
    assert set(factors) == {1.0, 10.0}
    assert abs(np.mean(np.array(factors) == 10) - 0.03) < 0.006


def test_launch_effect_and_drift() -> None:
    assert launch_factor(Config(), 1, 5) == 1.0
    assert launch_factor(parse("drift=0.1"), 1, 0) == 1.0
    assert launch_factor(parse("drift=0.1"), 1, 2) == pytest.approx(1.21)
    config = parse("launch=0.1")
    logs = [math.log(launch_factor(config, 1, k)) for k in range(2000)]
    assert launch_factor(config, 1, 3) == launch_factor(config, 1, 3)
    assert abs(float(np.mean(logs))) < 0.01
    assert abs(float(np.std(logs)) - 0.1) < 0.01

"""HCA3: each rank's model of the common clock, over a fake communicator of threads."""

from __future__ import annotations

import itertools
import queue
import threading
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.backends.mpi.clocks import ClockModel, fit, synchronise
from tests.support.patience import PATIENCE_S

S = 1e9


class Threads:
    """Ranks as threads: as much of a communicator as the clocks need."""

    def __init__(self, rank: int, size: int, mail: dict[tuple[int, int], queue.Queue[float]]) -> None:
        self.rank, self.size, self.mail = rank, size, mail

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Send(self, array: Any, to: int, tag: int) -> None:
        self.mail[self.rank, to].put(float(array[0]))

    def Recv(self, array: Any, source: int, tag: int) -> None:
        array[0] = self.mail[source, self.rank].get(timeout=PATIENCE_S)


@pytest.mark.parametrize("ranks", [1, 2, 5, 6])
def test_every_rank_finds_the_offset_of_its_clock(ranks: int) -> None:
    mail: dict[tuple[int, int], queue.Queue[float]] = defaultdict(queue.Queue)
    for pair in ((a, b) for a in range(ranks) for b in range(ranks)):
        mail[pair]  # made before the threads look
    offsets = [0, *(int(7 * S) * rank for rank in range(1, ranks))]
    models: dict[int, ClockModel] = {}
    readings = itertools.count()

    def now() -> int:
        """A clock that moves by 100 ns a reading, in whatever order threads get their turns."""
        return 100 * next(readings)

    def one(rank: int) -> None:
        models[rank] = synchronise(Threads(rank, ranks, mail), lambda: now() + offsets[rank])

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(models) == list(range(ranks))
    end = now()
    for rank, model in models.items():
        # a fit point is off by the readings of others between two of its own; the clocks are apart by seconds
        assert abs(model.common(end + offsets[rank]) - end) < 0.05 * S, rank


@given(
    slope=st.floats(-1e-4, 1e-4), intercept=st.floats(-1e12, 1e12), noise=st.floats(0, 300), seed=st.integers(0, 999)
)
def test_a_line_through_noisy_points_predicts_them(slope: float, intercept: float, noise: float, seed: int) -> None:
    local = np.linspace(5 * S, 5.1 * S, 40)
    true = intercept + slope * (local - local.mean())
    model = fit(local, true + np.random.default_rng(seed).normal(0, noise, 40))
    # a slope that cannot be told from none is left out: it moves the ends by less than three errors do
    assert np.abs(np.array([model.common(t) for t in local]) - local - true).max() <= 6 * noise + 1
    assert model.error <= 2 * noise + 1


def test_drift_is_found_where_it_is_larger_than_the_noise() -> None:
    local = np.linspace(0, 0.1 * S, 40)
    rng = np.random.default_rng(1)
    assert fit(local, 1e-3 * local + rng.normal(0, 100, 40)).slope == pytest.approx(1e-3, rel=1e-2)
    assert fit(local, rng.normal(0, 100, 40)).slope == 0

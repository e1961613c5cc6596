"""Speed of the store: ``pytest tests/lab/speed/bench_store.py -m bench``. Not collected by default.

Bars: a finished cell journaled and summed up in a few ms. What launches cost to write and to read at scale says
``make bench-store``.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from omb_py.results.statistics.summary import summarise
from omb_py.results.store.journal import Journal
from omb_py.results.store.read import load
from omb_py.results.store.recovery import recover

pytestmark = pytest.mark.bench

CELLS, SAMPLES = 200, 1000


@pytest.fixture
def rows(make_row) -> list[dict[str, Any]]:
    """Cells with random samples, which compress badly, as in a real run."""
    rng = np.random.default_rng(0)
    made = []
    for index in range(CELLS):
        samples = rng.lognormal(1, 0.1, SAMPLES)
        made.append(
            make_row(
                size_bytes=2 ** (index % 21),
                samples_us=samples.tolist(),
                samples_avg_us=(samples * 0.9).tolist(),
                rank_mean_us=[1.0] * 8,
                slowest_rank_share=[0.125] * 8,
                hosts=["n1"] * 8,
                **summarise(samples),
            )
        )
    return made


def test_a_cell_into_the_journal(benchmark, rows, tmp_path) -> None:
    with Journal(tmp_path, "r1-0", {"run_id": "r1"}) as journal:
        turn = itertools.cycle(rows)
        benchmark.pedantic(lambda: journal.append(next(turn)), rounds=200)
    assert benchmark.stats.stats.median < 0.02


def test_the_statistics_of_a_cell(benchmark) -> None:
    samples = np.random.default_rng(0).lognormal(1, 0.1, 10_000)
    benchmark.pedantic(summarise, args=(samples,), rounds=20)
    assert benchmark.stats.stats.median < 0.02


def test_a_recovery(benchmark, rows, tmp_path) -> None:
    def journal() -> tuple[tuple[Any], dict[str, Any]]:
        with Journal(tmp_path, "r1-0", {"run_id": "r1"}) as written:
            for row in rows:
                written.append(row)
        return (tmp_path,), {}

    benchmark.pedantic(recover, setup=journal, rounds=3)
    assert len(load(tmp_path, columns=["value"])) == CELLS

from __future__ import annotations

import math

import numpy as np
import pytest

from omb_py.errors import UsageError
from omb_py.results.analysis.cost_model import lower_bound_us
from omb_py.results.statistics.bandwidth import FORMULAS
from omb_py.results.statistics.rank_scaling import predict

GROWTHS = {
    "log2 p": lambda p: 1.0 + 2.0 * math.log2(p),
    "p - 1": lambda p: 1.0 + 0.5 * (p - 1),
    "(p - 1) / p": lambda p: 5.0 + 400.0 * (p - 1) / p,
}


@pytest.mark.parametrize("term", list(GROWTHS))
def test_the_term_is_found_and_the_time_predicted(term: str) -> None:
    truth = GROWTHS[term]
    found = predict({p: truth(p) for p in (2, 4, 8, 16)}, 64)
    assert found.term == term and found.time_us == pytest.approx(truth(64), rel=0.01) and found.error < 0.01


@pytest.mark.slow
def test_the_band_holds_the_truth_most_of_the_time() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for turn in range(40):
        truth = list(GROWTHS.values())[turn % 3]
        found = predict({p: truth(p) * rng.lognormal(0, 0.03) for p in (2, 4, 8, 16, 32)}, 64)
        held += found.low_us <= truth(64) <= found.high_us
    assert held >= 34


def test_refusals() -> None:
    times = {2: 1.0, 4: 2.0, 8: 3.0}
    assert predict(times, 32).ranks == 32
    for known, ranks, says in (
        (times, 33, "33 ranks are more than 4 times the largest measured (8): measure up to 9 ranks first"),
        ({1: 0.1, 2: 1.0, 4: 2.0}, 8, "at 3 or more numbers of ranks, and there are two: 2 and 4"),
        ({4: 2.0}, 8, "at 3 or more numbers of ranks, and there is one: 4"),
        ({1: 2.0}, 8, "at 3 or more numbers of ranks, and there is none"),
        (times, 1, "2 ranks or more, not 1"),
    ):
        with pytest.raises(UsageError) as caught:
            predict(known, ranks)
        assert says in str(caught.value)


def test_the_bounds_are_those_of_the_table() -> None:
    p, size, alpha, beta = 8, 1 << 20, 1.0, 1e-4
    for formula, share in (
        ("broadcast", 1),
        ("reduce", 1),
        ("scatter", 7 / 8),
        ("gather", 7 / 8),
        ("all_gather", 7 / 8),
        ("reduce_scatter", 7 / 8),
        ("all_reduce", 14 / 8),
        ("alltoall", 7 / 8),
    ):
        assert formula in FORMULAS
        assert lower_bound_us(f"nccl-tests:{formula}", "x", size, p, alpha, beta) == pytest.approx(share * size * beta)
        assert lower_bound_us(f"nccl-tests:{formula}", "x", 8, p, alpha, beta) == 3.0
    assert lower_bound_us(None, "ibarrier", 0, 9, alpha, beta) == 4.0
    assert lower_bound_us(None, "latency", 8, 2, alpha, beta) is None
    assert lower_bound_us("nccl-tests:all_reduce", "allreduce", 8, 1, alpha, beta) is None

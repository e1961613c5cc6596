from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from omb_py.results.statistics.holm import holm

values = st.lists(st.floats(0, 1), min_size=0, max_size=40)


def by_definition(p: list[float], alpha: float) -> list[bool]:
    """Step down: the smallest against alpha / m, the next against alpha / (m - 1), until one fails."""
    rejected = [False] * len(p)
    for step, i in enumerate(np.argsort(p, kind="stable")):
        if p[i] * (len(p) - step) > alpha:
            break
        rejected[i] = True
    return rejected


@given(values, st.floats(0.001, 0.5))
def test_rejects_what_holms_steps_reject(p: list[float], alpha: float) -> None:
    assert [q <= alpha for q in holm(p)] == by_definition(p, alpha)


@given(values)
def test_lies_between_none_and_bonferroni_and_keeps_the_order(p: list[float]) -> None:
    adjusted = holm(p)
    assert all(one <= other <= min(1.0, len(p) * one) for one, other in zip(p, adjusted, strict=True))
    assert [adjusted[i] for i in np.argsort(p, kind="stable")] == sorted(adjusted)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_is_never_below_benjamini_hochberg(p: list[float]) -> None:
    # Holm controls more than the false discovery rate, so it can only be stricter than SciPy's correction for that
    known = stats.false_discovery_control(p)
    assert all(h >= k - 1e-12 for h, k in zip(holm(p), known, strict=True))

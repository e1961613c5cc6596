from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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

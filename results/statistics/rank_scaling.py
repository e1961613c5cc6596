"""Predicted times at more ranks than were measured, up to 4 times as many."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from omb_py.errors import UsageError
from omb_py.results.statistics.curve_fit import Array, robust

FURTHEST = 4
"""Predictions reach this many times the largest measured number of ranks."""
LEAST = 3
"""Fewest numbers of ranks that must have been measured."""

_TERMS: Mapping[str, Callable[[Array], Array]] = {
    "log2 p": lambda p: np.log2(p),
    "p - 1": lambda p: p - 1,
    "(p - 1) / p": lambda p: (p - 1) / p,
}
"""Terms that grow with p ranks: rounds of a tree; messages of a ring or of a root; the share of the others' data."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The time of an operation at a number of ranks that was not measured."""

    ranks: int
    time_us: float
    low_us: float
    high_us: float
    term: str
    """The term in T(p) = a + b · term."""
    error: float
    """Largest relative error when each number of ranks is predicted from the others."""


def predict(measured: Mapping[int, float], ranks: int) -> Prediction:
    """Predict the time at `ranks` ranks from times at other numbers of ranks.

    T(p) = a + b g(p) with a, b >= 0, by the robust loss of :mod:`.curve_fit`. The term g is the one with the least
    error where each p is left out once; the band is exp(± largest such error · (1 + log2(ranks / largest p))).

    Args:
        measured: ranks -> time in µs. A time of one rank is left out.
        ranks: number of ranks to predict, 2 or more.

    Raises:
        UsageError: there are fewer than :data:`LEAST` numbers of ranks, or `ranks` is under 2 or over
            :data:`FURTHEST` times the largest.
    """
    known = {p: t for p, t in sorted(measured.items()) if p >= 2}
    if len(known) < LEAST:
        there = ("is none", "is one", "are two")[len(known)] + (": " if known else "") + " and ".join(map(str, known))
        raise UsageError(f"a prediction needs times at {LEAST} or more numbers of ranks, and there {there}")
    largest = max(known)
    if ranks > FURTHEST * largest:
        raise UsageError(
            f"{ranks} ranks are more than {FURTHEST} times the largest measured ({largest}): "
            f"measure up to {math.ceil(ranks / FURTHEST)} ranks first"
        )
    if ranks < 2:
        raise UsageError(f"a prediction is for 2 ranks or more, not {ranks}")
    p, t = np.array(list(known), dtype=np.float64), np.array(list(known.values()))
    errors = {name: _predict_left_out(p, t, name) for name in _TERMS}
    term = min(errors, key=lambda name: float(np.sqrt(np.mean(errors[name] ** 2))))
    time = float(_predict(p, t, term, float(ranks)))
    worst = float(np.abs(errors[term]).max())
    # left-out numbers of ranks lay among the others or one step beyond; each doubling beyond adds as much again
    width = worst * (1 + max(0.0, math.log2(ranks / largest)))
    return Prediction(ranks, time, time * math.exp(-width), time * math.exp(width), term, math.expm1(worst))


def _predict(p: Array, t: Array, term: str, where: float) -> float:
    grow = _TERMS[term]
    c, _ = robust(np.column_stack([np.ones_like(p), grow(p)]), t)
    return float(c[0] + c[1] * grow(np.array([where]))[0])


def _predict_left_out(p: Array, t: Array, term: str) -> Array:
    """Log of predicted over measured time at each number of ranks, predicted from the others."""
    rest = [np.arange(p.size) != i for i in range(p.size)]
    return np.array([math.log(_predict(p[r], t[r], term, p[i]) / t[i]) for i, r in enumerate(rest)])

"""Times at more ranks than were measured, with a band, and not further than 4 times. Derived in docs/statistics.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from omb_py.errors import UsageError
from omb_py.results.statistics.curve_fit import Array, robust

FURTHEST = 4
"""Times the largest number of ranks that was measured."""
LEAST = 3
"""Numbers of ranks that must have been measured."""

_TERMS: Mapping[str, Callable[[Array], Array]] = {
    "log2 p": lambda p: np.log2(p),
    "p - 1": lambda p: p - 1,
    "(p - 1) / p": lambda p: (p - 1) / p,
}
"""What grows with the ranks: rounds of a tree, messages of a ring or of a root, the share of the others' data."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The time of an operation at a number of ranks that was not measured."""

    ranks: int
    time_us: float
    low_us: float
    high_us: float
    term: str
    """T(p) = a + b · term."""
    error: float
    """Largest leave-one-out error: each number of ranks predicted from the others, relative."""


def predict(measured: Mapping[int, float], ranks: int) -> Prediction:
    """The time at `ranks` from times at other numbers of ranks.

    Args:
        measured: ranks -> time in µs; numbers of ranks from 2 on.
        ranks: where it is wanted.

    Raises:
        UsageError: under :data:`LEAST` numbers of ranks, or `ranks` beyond :data:`FURTHEST` times the largest.
    """
    known = {p: t for p, t in sorted(measured.items()) if p >= 2}
    if len(known) < LEAST:
        listed = ", ".join(map(str, known)) or "none"
        raise UsageError(f"a prediction needs times at {LEAST} or more numbers of ranks; there are {listed}")
    largest = max(known)
    if ranks > FURTHEST * largest:
        raise UsageError(
            f"{ranks} ranks are more than {FURTHEST} times the largest measured ({largest}): "
            f"measure up to {math.ceil(ranks / FURTHEST)} ranks first"
        )
    if ranks < 2:
        raise UsageError(f"a prediction is for 2 ranks or more, not {ranks}")
    p, t = np.array(list(known), dtype=np.float64), np.array(list(known.values()))
    errors = {name: _left_out(p, t, name) for name in _TERMS}
    term = min(errors, key=lambda name: float(np.sqrt(np.mean(errors[name] ** 2))))
    time = float(_at(p, t, term, float(ranks)))
    worst = float(np.abs(errors[term]).max())
    # what was left out lay within the others or one step beyond; each doubling further adds as much again
    width = worst * (1 + max(0.0, math.log2(ranks / largest)))
    return Prediction(ranks, time, time * math.exp(-width), time * math.exp(width), term, math.expm1(worst))


def _at(p: Array, t: Array, term: str, where: float) -> float:
    grow = _TERMS[term]
    c, _ = robust(np.column_stack([np.ones_like(p), grow(p)]), t)
    return float(c[0] + c[1] * grow(np.array([where]))[0])


def _left_out(p: Array, t: Array, term: str) -> Array:
    """Log of predicted over measured of each number of ranks, from the others."""
    rest = [np.arange(p.size) != i for i in range(p.size)]
    return np.array([math.log(_at(p[r], t[r], term, p[i]) / t[i]) for i, r in enumerate(rest)])

"""Rounds of sign flips combined into one verdict on many questions.

A question that is open after a round may be measured again in pairs of its own. The p-values of its rounds are combined
by the inverse normal method with weights that were fixed before, so that no round is lost and none is counted twice,
however the questions of the next round were chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from omb_py.results.statistics.sign_flips import Array, Flips, Indices, share_above

SPENDING: tuple[tuple[float, ...], ...] = ((1.0,), (0.2, 0.8), (0.2, 0.4, 0.4))
"""Shares of the chance of an error that the rounds may spend, for one, two and three rounds."""
MOST_ROUNDS = len(SPENDING)
_STEP, _FAR = 0.004, 12.0


@dataclass(frozen=True, slots=True)
class Combined:
    """The outcome for each question; arrays have an entry a question."""

    direction: NDArray[np.intp]
    """1 where NEW is larger, -1 where it is smaller, 0 where nothing is shown."""
    adjusted: Array
    """Two-sided p-value among all questions of the family, over the rounds in which the question was measured."""
    alpha: Array
    """What :attr:`adjusted` is compared with: the level of the last round of the question."""
    rounds: NDArray[np.intp]


@lru_cache(maxsize=64)
def boundaries(alpha: float, rounds: int) -> tuple[float, ...]:
    """Smallest combined normal score that shows a change in one direction, for each round.

    The score of round k is (z₁ + … + z_k) / √k, where z is the normal score of a round's p-value and counts 0 where it
    is negative. With these boundaries the chance that the score of any round reaches its own, without a change, is at
    most `alpha` over both directions; round k spends its share (:data:`SPENDING`). The sums are integrated numerically
    (P. Armitage, C. McPherson and B. Rowe, Journal of the Royal Statistical Society A 132, 1969).

    Raises:
        ValueError: there are fewer rounds than 1 or more than :data:`MOST_ROUNDS`.

    >>> [round(b, 3) for b in boundaries(0.01, 3)]
    [3.09, 2.841, 2.791]
    """
    if not 1 <= rounds <= MOST_ROUNDS:
        raise ValueError(f"rounds are 1 to {MOST_ROUNDS}, not {rounds}")
    grid = np.arange(_STEP / 2, _FAR, _STEP)
    normal = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi) * _STEP
    at_zero, above = 1.0, np.zeros_like(grid)  # the distribution of the sum where no boundary was reached
    limits: list[float] = []
    for number, share in enumerate(SPENDING[rounds - 1], start=1):
        low, high = 0.0, _FAR
        for _ in range(50):
            middle = (low + high) / 2
            reached = at_zero * scipy.special.ndtr(-middle) + above @ scipy.special.ndtr(grid - middle)
            low, high = (low, middle) if reached <= share * alpha / 2 else (middle, high)
        limits.append(high / np.sqrt(number))
        # the sum of two midpoints lies half a step beyond a midpoint: shared out between its two neighbours
        both = np.convolve(above, normal)[: len(grid)]
        both = (both + np.concatenate([[0.0], both[:-1]])) / 2
        above = np.where(grid < high, above / 2 + at_zero * normal + both, 0.0)
        at_zero /= 2
    return tuple(map(float, limits))


def can_show(pairs: int, alpha: float, rounds: int, done: int = 0) -> bool:
    """Could a change be shown in a round after the first `done`, if all pairs of all rounds agreed?

    Args:
        pairs: pairs of each round.
        alpha: chance of a false direction.
        rounds: rounds that were declared.
        done: rounds that are over.

    >>> [next(n for n in range(1, 20) if can_show(n, 0.01, rounds)) for rounds in (1, 2, 3)]
    [8, 5, 5]
    """
    score = -float(scipy.special.ndtri(0.5**pairs))
    bounds = boundaries(alpha, rounds)
    return any(score * np.sqrt(number) >= bounds[number - 1] for number in range(done + 1, rounds + 1))


def combine(rounds: Sequence[Flips], measured: Sequence[NDArray[np.bool_]], alpha: float, declared: int) -> Combined:
    """Judge all questions by the rounds so far.

    Step by step, the clearest questions are rejected and leave the family, and those that are left are judged anew
    among themselves (P. Westfall and S. Young, Resampling-Based Multiple Testing, 1993).

    Args:
        rounds: the pairs of each round. All have the same columns.
        measured: of each round, which questions it measured. What round k measured, the rounds before it measured too.
        alpha: chance of any false direction among all questions and rounds.
        declared: rounds that were declared before the first one.
    """
    bounds = boundaries(alpha, declared)
    count = len(measured[0])
    direction = np.zeros(count, dtype=np.intp)
    scores = np.zeros((2, count))
    times = np.zeros(count, dtype=np.intp)
    for number in range(1, len(rounds) + 1):
        times[measured[number - 1]] = number
        while True:
            family = [np.flatnonzero(asked & (direction == 0)) for asked in measured[:number]]
            latest = family[-1]
            if not latest.size:
                break
            of_family, clearness = _scores(rounds, family, latest)
            scores[:, latest] = of_family
            largest = of_family.max(axis=0)
            clear = np.flatnonzero(largest >= bounds[number - 1])
            if not clear.size:
                break
            # half of the clear ones at a time: the others are then judged by a spread without these
            clear = clear[np.argsort(-clearness[clear], kind="stable")][: (clear.size + 1) // 2]
            direction[latest[clear]] = np.where(of_family[0, clear] >= of_family[1, clear], 1, -1)
    last = np.asarray(bounds)[np.maximum(times, 1) - 1]
    adjusted = np.minimum(1.0, 2 * scipy.special.ndtr(-scores.max(axis=0)))
    return Combined(direction, adjusted, 2 * scipy.special.ndtr(-last), times)


def _scores(rounds: Sequence[Flips], family: Sequence[Indices], latest: Indices) -> tuple[Array, Array]:
    """Combined normal scores of the latest questions, upwards and downwards, and how clear each is."""
    scores, clearness = np.zeros((2, latest.size)), np.zeros(latest.size)
    for flips, columns in zip(rounds, family, strict=False):
        observed, largest = flips.statistics(columns)
        observed = observed[np.searchsorted(columns, latest)]
        for direction, signed in enumerate((observed, -observed)):
            scores[direction] += np.maximum(0.0, -scipy.special.ndtri(share_above(signed, largest)))
        clearness += observed
    return scores / np.sqrt(len(family)), np.abs(clearness)

"""Verdicts on the median of launches by counting: how many launches lie beyond a limit. Pure.

A count needs no assumption about how launches are distributed: when the median is the limit, a launch is beyond it with
probability 1/2, for one mode or two, light tails or heavy ones. Launches that follow each other may share a slow hour,
so the side of a launch is modelled as a Markov chain that stays where it is with the chance of :func:`stays_of`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

_CORRELATIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_STAYS = (0.5, 0.533, 0.57, 0.607, 0.65, 0.7, 0.745, 0.8, 0.855, 0.911, 0.946)
"""For each correlation of an AR(1) process the chance with which the chain has its share of 24 launches on one side."""
INDEPENDENT = 0.5
"""The chance to stay of launches that know nothing of each other."""
MOST_NEEDED = 1000
"""Most launches that :func:`launches_to_decide` searches."""


def stays_of(correlation: float) -> float:
    """Chance that a launch lies on the side of the one before, for the correlation of successive launches.

    >>> stays_of(0.0), stays_of(0.5), round(stays_of(0.85), 3)
    (0.5, 0.7, 0.883)
    """
    return float(np.interp(correlation, _CORRELATIONS, _STAYS))


@lru_cache(maxsize=16384)
def count_tail(launches: int, count: int, stays: float = INDEPENDENT) -> float:
    """Probability that at most `count` of `launches` launches lie beyond their median.

    Args:
        launches: 1 or more.
        count: 0 or more.
        stays: chance that a launch is on the same side as the one before; 0.5, of launches that know nothing of each
            other, gives the binomial distribution.

    >>> count_tail(5, 0), round(count_tail(8, 0, 0.7), 4)
    (0.03125, 0.0412)
    """
    return float(_states((launches,), (min(count, launches),), stays).sum())


def _states(looks: Sequence[int], counts: Sequence[int], stays: float) -> NDArray[np.float64]:
    """Probability of each (side of the last launch, count) at the last look, having exceeded all earlier counts.

    At an earlier look a count of `counts` or fewer ends the series. Columns end at the last of `counts`.
    """
    widest = max(counts[-1], *counts, 0)
    states = np.zeros((2, widest + 2))  # sides: within, beyond; the last column holds all larger counts
    states[0, 0] = states[1, 1] = 0.5
    seen = 1
    for look, (launches, count) in enumerate(zip(looks, counts, strict=True), 1):
        for _ in range(seen, launches):
            states = _step(states, stays)
        seen = launches
        if look < len(looks):
            states[:, : count + 1] = 0.0
    return states[:, : counts[-1] + 1]


def _step(states: NDArray[np.float64], stays: float) -> NDArray[np.float64]:
    """Probabilities one launch later; the last column keeps all larger counts."""
    within = stays * states[0] + (1 - stays) * states[1]
    beyond = (1 - stays) * states[0] + stays * states[1]
    after = np.stack([within, np.concatenate([[0.0], beyond[:-1]])])
    after[1, -1] += beyond[-1]
    return after


@lru_cache(maxsize=4096)
def allowed_counts(looks: tuple[int, ...], rounds: int, alpha: float, stays: float = INDEPENDENT) -> tuple[int, ...]:
    """Compute how many launches may lie beyond a limit at each look for "the median is within it".

    If the median is at the limit or beyond it, the chance that any of the looks finds so few is at most `alpha`. A look
    may spend its even share of what the earlier ones left, or, so that a verdict comes early, all that is left where
    only a count of 0 is possible. Counts of earlier looks do not depend on later ones.

    Args:
        looks: number of launches at each look so far, rising.
        rounds: number of looks that are declared; at least as many as `looks`.
        alpha: chance of an error over all looks.
        stays: as in :func:`count_tail`.

    Returns:
        A count for each look; -1 where not even 0 is rare enough.

    >>> allowed_counts((8, 16, 24), 3, 0.05), allowed_counts((8, 16, 24), 3, 0.05, 0.7)
    ((0, 3, 7), (0, 1, 3))
    """
    counts: list[int] = []
    left = alpha
    for number, launches in enumerate(looks):
        reached = _states(looks[: number + 1], [*counts, launches], stays).sum(axis=0).cumsum()
        share = left / max(1, rounds - number)
        count = int(np.searchsorted(reached, share * (1 + 1e-9), side="right")) - 1
        if count < 0 and reached[0] <= left:
            count = 0
        counts.append(count)
        left -= float(reached[count]) if count >= 0 else 0.0
    return tuple(counts)


def fewest_launches(alpha: float, stays: float = INDEPENDENT) -> int:
    """Compute the fewest launches that can show at level `alpha` that their median is within a limit.

    >>> fewest_launches(0.05), fewest_launches(0.05, 0.7)
    (5, 8)
    """
    return max(1, math.ceil(1 + math.log(2 * alpha) / math.log(stays) - 1e-9)) if alpha < 0.5 else 1


def launches_to_decide(count: int, launches: int, alpha: float, stays: float = INDEPENDENT) -> int | None:
    """Estimate how many launches it takes if the same share of them lies beyond the limit as now.

    Args:
        count: launches beyond the limit (or within it, whichever is fewer), of `launches`.
        launches: 1 or more.
        alpha: level of the verdict.
        stays: as in :func:`count_tail`.

    Returns:
        A number above `launches`; None where half of them lie beyond the limit, or over :data:`MOST_NEEDED` are needed.
    """
    if 2 * count >= launches:
        return None
    states = np.zeros((2, MOST_NEEDED + 1))
    states[0, 0] = states[1, 1] = 0.5
    for needed in range(2, MOST_NEEDED + 1):
        states = _step(states, stays)
        expected = math.ceil(count / launches * needed - 1e-9)
        if needed > launches and float(states[:, : expected + 1].sum()) <= alpha:
            return needed
    return None


def share_bound(count: int, launches: int, level: float) -> float:
    """Upper limit of a share that `count` of `launches` launches have (C. J. Clopper and E. S. Pearson, 1934).

    Args:
        count: 0 to `launches`.
        launches: 1 or more independent launches.
        level: one-sided confidence such as 0.95.

    >>> round(share_bound(0, 20, 0.95), 3), round(share_bound(1, 20, 0.95), 3), share_bound(3, 3, 0.95)
    (0.139, 0.216, 1.0)
    """
    return 1.0 if count >= launches else float(scipy.special.betaincinv(count + 1, launches - count, level))


def median(values: Sequence[float]) -> float:
    """The median; of an even number of values the mean of the two in the middle. Raises ValueError for none.

    >>> median([3.0, 1.0, 2.0]), median([1.0, 2.0])
    (2.0, 1.5)
    """
    if not values:
        raise ValueError("no launches")
    return float(statistics.median(values))

"""Questions whose launches were interleaved: after each round all pairs so far are judged, all questions together.

The chance of an error is divided between the looks before the first launch. A question that is measured again keeps all
of its pairs, and whatever made it stop, it stays in the family: so no choice of what is measured again adds errors.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Generic, TypeVar

import numpy as np
import scipy

from omb_py.results.statistics.launch_kinds import bounded
from omb_py.results.statistics.rotations import Array, Rotations, exchanges, judge_family
from omb_py.results.statistics.t_test import Estimate, rounding

Key = TypeVar("Key", bound=Hashable)

SPENDING: tuple[tuple[float, ...], ...] = ((1.0,), (0.3, 0.7), (0.1, 0.3, 0.6))
"""Shares of the chance of a false SLOWER or FASTER that the looks spend, for one, two and three rounds."""
MOST_ROUNDS = len(SPENDING)
SAME_SCORES: tuple[tuple[float, ...], ...] = ((1.645,), (2.373, 1.678), (2.962, 2.094, 1.710))
"""Normal scores of the interval that SAME needs at each look: in all, a change of the tolerance is SAME in 5 %
(P. O'Brien and T. Fleming, Biometrics 35, 1979)."""
_FEWEST_PAIRS = 6
"""Fewest pairs that show a change: where each second launch is slow, fewer agree by chance too often."""


def fewest_pairs(level: float) -> int:
    """The fewest pairs that show a change at a level. A smaller chance of an error leans on more launches.

    >>> fewest_pairs(0.01), fewest_pairs(0.001), fewest_pairs(1e-5)
    (6, 6, 9)
    """
    return max(_FEWEST_PAIRS, math.ceil(math.log2(2 / level) / 2))


def can_show(pairs: int, alpha: float, rounds: int) -> bool:
    """Could a change be shown in so many rounds of so many pairs each?

    >>> [next(n for n in range(1, 20) if can_show(n, 0.01, rounds)) for rounds in (1, 2, 3)]
    [6, 3, 2]
    """
    return any(look * pairs >= fewest_pairs(share * alpha) for look, share in enumerate(SPENDING[rounds - 1], 1))


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of one question in one round."""

    names: tuple[str, ...]
    """Which pair each is: the pairs of all questions with one name were made together."""
    base: tuple[float, ...]
    new: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """What the launches say of one question. Differences and limits are logs of ratios."""

    estimate: Estimate
    """Over all launches of all rounds; its spread is shared between questions."""
    direction: int
    """1 if NEW is shown to be slower, -1 if faster, else 0."""
    interval: tuple[float, float]
    """Of this question alone, at the level of SAME."""
    adjusted: float
    """p-value among all questions and looks."""
    alpha: float
    """What :attr:`adjusted` is compared with."""
    strict: float
    """Level at which a question alone would have to be tested to be found among all."""
    round: int
    reason: str = ""
    """Why nothing can be decided, in two or three words."""


class Interleaved(Generic[Key]):
    """Judges all questions of a report that were interleaved."""

    def __init__(
        self, questions: Mapping[Key, Sequence[Pairs]], kinds: Mapping[Key, int], alpha: float, rounds: int
    ) -> None:
        """Arrange the launches.

        Args:
            questions: the rounds of each question, at least one; each has at least one pair.
            kinds: kind of each question, from 0: those of a kind share a spread.
            alpha: chance of any false direction.
            rounds: rounds that were declared.
        """
        self._keys, self._alpha, self._declared = list(questions), alpha, rounds
        self._rounds = [list(questions[key])[:rounds] for key in self._keys]
        self._kinds = np.array([kinds[key] for key in self._keys], dtype=np.intp)
        launches = [[x for pairs in of_one for x in (*pairs.base, *pairs.new)] for of_one in self._rounds]
        self._floors = math.sqrt(2) * np.array([rounding(logs) for logs in launches])

    def outcomes(self) -> dict[Key, QuestionOutcome]:
        if not self._keys:
            return {}
        made = np.array(list(map(len, self._rounds)))
        count = len(self._keys)
        direction, adjusted = np.zeros(count, dtype=np.intp), np.ones(count)
        for look in range(1, int(made.max()) + 1):
            rotations, differences = self._pool(look)
            share = SPENDING[self._declared - 1][look - 1]
            asked = (made >= look) & (direction == 0) & (rotations.counts >= fewest_pairs(share * self._alpha))
            exchanged = cache(partial(Rotations, differences, self._kinds, self._floors, exchanges))
            found = judge_family(rotations, exchanged, direction == 0, asked, share * self._alpha)
            direction = np.where(asked, found.direction, direction)
            adjusted = np.where(asked, np.minimum(adjusted, found.adjusted / share), adjusted)
        errors, freedom = rotations.errors(np.arange(count))
        strict = self._find_strict_level(rotations, freedom)
        outcomes = {}
        for place, key in enumerate(self._keys):
            pairs = int(rotations.counts[place])
            known = freedom[place] > 0 and pairs > 1
            estimate = Estimate(
                float(np.nanmean(differences[:, place])),
                float(errors[place]) if known else math.inf,
                float(freedom[place]) if known else 0.0,
                pairs,
                pairs,
                paired=True,
            )
            score = SAME_SCORES[self._declared - 1][made[place] - 1]
            interval = estimate.limits(2 * float(scipy.special.ndtr(score)) - 1)
            shown = int(direction[place])
            if not (interval[0] > 0 if shown > 0 else interval[1] < 0):
                shown = 0  # later rounds took back what an earlier one showed
            p = float(adjusted[place])
            outcomes[key] = QuestionOutcome(estimate, shown, interval, p, self._alpha, strict, int(made[place]))
        return outcomes

    def _pool(self, looks: int) -> tuple[Rotations, Array]:
        """All pairs of the first rounds, bounded: a row a pair, a column a question."""
        every = dict.fromkeys(name for of_one in self._rounds for pairs in of_one[:looks] for name in pairs.names)
        rows = {name: number for number, name in enumerate(every)}
        differences: Array = np.full((len(rows), len(self._keys)), np.nan)
        for place, of_one in enumerate(self._rounds):
            names = [rows[name] for pairs in of_one[:looks] for name in pairs.names]
            sides = bounded(
                [x for pairs in of_one[:looks] for x in pairs.base], [x for pairs in of_one[:looks] for x in pairs.new]
            )
            differences[names, place] = np.subtract(sides[1], sides[0])
        return Rotations(differences, self._kinds, self._floors), differences

    def _find_strict_level(self, rotations: Rotations, freedom: Array) -> float:
        """Level that a single question is held to among all at the last look, told from the largest of chance."""
        level = self._alpha * SPENDING[self._declared - 1][-1]
        divided = level / len(self._keys)
        _, largest = rotations.statistics(np.arange(len(self._keys)))
        critical = float(largest[min(len(largest) - 1, math.ceil(len(largest) * (1 - level / 2)))])
        needed = 2 * float(scipy.special.stdtr(max(1.0, float(np.median(freedom))), -critical))
        return min(level, max(divided, needed))

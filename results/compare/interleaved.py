"""Questions whose launches were interleaved: sign flips of all questions together, round after round. Pure."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import scipy

from omb_py.results.statistics.combined_rounds import Combined, can_show, combine
from omb_py.results.statistics.sign_flips import SMALLEST, Array, Flips, alone
from omb_py.results.statistics.t_test import Estimate, quantile, rounding

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of one question in one round."""

    names: tuple[str, ...]
    """Which pair each is: the pairs of all questions with one name were made together."""
    base: tuple[float, ...]
    new: tuple[float, ...]

    @property
    def differences(self) -> list[float]:
        """NEW minus BASE of each pair."""
        return [new - base for base, new in zip(self.base, self.new, strict=True)]


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """What the launches say of one question. Differences and limits are logs of ratios."""

    estimate: Estimate
    """Over all launches of all rounds; its spread is shared between questions."""
    direction: int
    """1 if NEW is shown to be slower, -1 if faster, else 0."""
    interval: tuple[float, float]
    """Of this question alone, at the level of the report."""
    narrow: tuple[float, float]
    """At the level of SAME."""
    p: float
    """Of this question alone."""
    adjusted: float
    """Among all questions."""
    alpha: float
    """What :attr:`adjusted` is compared with."""
    strict: float
    """Level at which a question alone would have to be tested to be found among all."""
    round: int
    suspicious: bool = False
    """A Student's t test of this question alone would be significant at the level of the screen."""
    reason: str = ""
    """Why nothing can be decided, in two or three words."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels of the tests."""

    alpha: float
    """Chance of any false direction."""
    same: float
    """Confidence level of :attr:`QuestionOutcome.narrow`."""
    screen: float
    rounds: int


class Interleaved(Generic[Key]):
    """Judges all questions of a report that were interleaved."""

    def __init__(self, questions: Mapping[Key, Sequence[Pairs]], kinds: Mapping[Key, int], levels: Levels) -> None:
        """Arrange the launches.

        Args:
            questions: the rounds of each question, at least one; each has at least one pair.
            kinds: kind of each question, from 0: those of a kind share a spread.
        """
        self._keys, self._levels = list(questions), levels
        self._rounds = [list(questions[key])[: levels.rounds] for key in self._keys]
        self._kinds = np.array([kinds[key] for key in self._keys], dtype=np.intp)
        launches = [[x for pairs in rounds for x in (*pairs.base, *pairs.new)] for rounds in self._rounds]
        self._floors = math.sqrt(2) * np.array([rounding(logs) for logs in launches])

    def outcomes(self) -> dict[Key, QuestionOutcome]:
        if not self._keys:
            return {}
        most = max(map(len, self._rounds))
        flips = [self._flips(number) for number in range(most)]
        measured = [np.array([len(rounds) > number for rounds in self._rounds]) for number in range(most)]
        combined = combine(flips, measured, self._levels.alpha, self._levels.rounds)
        strict = self._strict(flips[0])
        errors, freedom = flips[0].errors(np.arange(len(self._keys)))
        spreads = errors * np.sqrt(flips[0].counts)
        pooled = [np.array([d for pairs in rounds for d in pairs.differences]) for rounds in self._rounds]
        outcomes: dict[int, QuestionOutcome] = {}
        counts = np.array(list(map(len, pooled)))
        for count in np.unique(counts):
            places = np.flatnonzero(counts == count)
            differences = np.stack([pooled[place] for place in places], axis=1)
            tested = alone(differences, (1 - self._levels.alpha, self._levels.same))
            student = _students(differences, self._floors[places])
            for column, place in enumerate(places):
                estimate = Estimate(
                    float(differences[:, column].mean()),
                    float(spreads[place]) / math.sqrt(count) if freedom[place] > 0 else math.inf,
                    _rounded(freedom[place] + count - flips[0].counts[place]) if freedom[place] > 0 else 0.0,
                    int(count),
                    int(count),
                    paired=True,
                )
                ends = [(float(low[column]), float(high[column])) for low, high in tested.intervals]
                outcomes[int(place)] = self._outcome(
                    combined, int(place), estimate, student[column], float(tested.p[column]), ends, strict
                )
        return {key: outcomes[place] for place, key in enumerate(self._keys)}

    def _outcome(
        self,
        combined: Combined,
        place: int,
        estimate: Estimate,
        student: Estimate,
        p: float,
        ends: Sequence[tuple[float, float]],
        strict: float,
    ) -> QuestionOutcome:
        # sign flips of few pairs have no interval; Student's knows the clock's resolution, where flips may see a point
        whole, of_same = ends
        if not math.isfinite(whole[0]):
            whole = limits(student, 1 - self._levels.alpha)
        narrow = limits(student, self._levels.same)
        if math.isfinite(of_same[0]):
            narrow = min(narrow[0], of_same[0]), max(narrow[1], of_same[1])
        direction = int(combined.direction[place])
        if not (whole[0] > 0 if direction > 0 else whole[1] < 0):
            direction = 0  # later rounds took back what an earlier one showed
        number = int(combined.rounds[place])
        return QuestionOutcome(
            estimate,
            direction,
            whole,
            narrow,
            p,
            float(combined.adjusted[place]),
            float(combined.alpha[place]),
            strict,
            number,
            student.p <= self._levels.screen and self._may_show(place),
        )

    def _may_show(self, place: int) -> bool:
        levels, done = self._levels, self._rounds[place]
        return can_show(len(done[0].names), levels.alpha, levels.rounds, len(done))

    def _flips(self, number: int) -> Flips:
        """The differences of a round: a row a pair, a column a question."""
        asked = [(place, rounds[number]) for place, rounds in enumerate(self._rounds) if len(rounds) > number]
        rows: dict[str, int] = {}
        for _, pairs in asked:
            for name in pairs.names:
                rows.setdefault(name, len(rows))
        differences: Array = np.full((len(rows), len(self._keys)), np.nan)
        for place, pairs in asked:
            differences[[rows[name] for name in pairs.names], place] = pairs.differences
        return Flips(differences, self._kinds, self._floors)

    def _strict(self, first: Flips) -> float:
        """Level that a single question is held to among all, told from the largest statistics of chance."""
        questions = np.arange(len(self._keys))
        divided = self._levels.alpha / len(questions)
        _, largest = first.statistics(questions)
        _, freedom = first.errors(questions)
        place = math.ceil(len(largest) * (1 - self._levels.alpha / 2))
        if place >= len(largest):
            return divided
        needed = 2 * float(scipy.special.stdtr(max(1.0, float(np.median(freedom))), -float(largest[place])))
        return _rounded(min(self._levels.alpha, max(divided, needed)))


def _rounded(value: float) -> float:
    """Two digits: enough for the launches needed, and the same for many questions, whose quantiles are then cached."""
    return float(f"{value:.2g}")


def _students(differences: Array, floors: Array) -> list[Estimate]:
    """Student's t of each question alone, with the spread of its own pairs."""
    count = len(differences)
    means = differences.mean(axis=0)
    if count < 2:
        return [Estimate(float(mean), math.inf, 0.0, count, count, paired=True) for mean in means]
    spreads = np.maximum(differences.std(axis=0, ddof=1), np.maximum(floors, SMALLEST)) / math.sqrt(count)
    return [
        Estimate(float(mean), float(spread), count - 1.0, count, count, paired=True)
        for mean, spread in zip(means, spreads, strict=True)
    ]


def limits(estimate: Estimate, level: float) -> tuple[float, float]:
    """Student's confidence limits of a difference; infinite where the spread is unknown."""
    if estimate.freedom <= 0:
        return -math.inf, math.inf
    half = quantile(0.5 + level / 2, estimate.freedom) * estimate.error
    return estimate.difference - half, estimate.difference + half

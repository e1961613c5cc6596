"""The decision on one bound: by counting launches, by nights of a baseline, or by a line through a soak. Pure.

Derived in docs/statistics.md, Acceptance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from omb_py.results.formats.units import counted, share_text
from omb_py.results.statistics import guarded_mean, order_statistics
from omb_py.results.statistics.guarded_mean import CORRELATION
from omb_py.results.statistics.nights import nights_to_decide, one_more_night, spread_of
from omb_py.results.statistics.order_statistics import (
    MOST_NEEDED,
    allowed_counts,
    fewest_launches,
    launches_to_decide,
    share_bound,
)
from omb_py.results.statistics.sequential import Decision, Rule, Word
from omb_py.results.statistics.sequential import decide as decide_by_mean
from omb_py.results.statistics.t_test import Estimate, quantile


@dataclass(frozen=True, slots=True)
class Answer:
    """A decision with the numbers that led to it."""

    decision: Decision
    middle: float
    """The log cost that is shown as measured."""
    evidence: str
    """What the decision rests on, as a clause; empty where it cannot be said in short."""
    beyond: int | None = None
    """Launches whose log cost is beyond the limit; None where launches are not counted."""
    share_at_most: float | None = None
    """Upper limit of the share of such launches, at the rule's confidence."""


@dataclass(frozen=True, slots=True)
class Launches:
    """A bound on the median of launches."""

    costs: tuple[float, ...]
    """Log cost of each launch, or its difference to what it is compared with."""
    limit: float
    show: Callable[[float], float]
    """Turns a log cost into the number that is shown."""
    correlation: float = CORRELATION
    """Of a launch with the one before, over all cells of the report; less than this counts as this."""

    def answer(self, rule: Rule, questions: int, looks: tuple[int, ...]) -> Answer:
        """Judge the bound.

        PASS when so few launches are beyond the limit that their median is within it, whatever their distribution. FAIL
        when so few are within it that their median is beyond, and the mean is too (:mod:`.guarded_mean`), by a t test
        corrected for the number of questions.

        Args:
            rule: the declared rule.
            questions: number of bounds in the report.
            looks: number of launches at each round so far, the last one being those of `costs`.
        """
        ordered, n = sorted(self.costs), len(self.costs)
        alpha = 1 - rule.confidence
        allowed = allowed_counts(looks, max(rule.rounds, len(looks)), alpha, self._stays)[-1]
        beyond = sum(cost > self.limit for cost in ordered)
        pessimistic = ordered[n - 1 - allowed] if 0 <= allowed < n else math.inf
        optimistic = ordered[allowed] if 0 <= allowed < n else -math.inf
        mean = guarded_mean.distance(self.costs, self.limit, self.correlation)
        margin = quantile(1 - rule.spent / max(1, questions), mean.freedom) * mean.error if mean.freedom else math.inf
        if self._alike and beyond and n < fewest_launches(alpha / max(1, questions), self._stays):
            margin = math.inf  # no spread is known: the count alone carries the correction
        optimistic = min(optimistic, self.limit + mean.difference - margin)
        word: Word = "PASS" if pessimistic <= self.limit else "FAIL" if optimistic > self.limit else "MARGINAL"
        share = share_bound(beyond, n, rule.confidence)
        count = f"{beyond} of {counted(n, 'launch')} beyond"
        if self.correlation > CORRELATION:
            count += f"; launches may resemble the one before (correlation {self.correlation:.2f}), so it takes more"
        sure = f"{share_text(rule.confidence)} sure"
        evidence = {
            "PASS": f"median within the bound, {sure}; {count} (at most {_percent(share)} are)",
            "FAIL": f"median beyond the bound, {sure}; {count}",
        }.get(word, count)
        decision = Decision(word, optimistic, pessimistic)
        return Answer(decision, order_statistics.median(self.costs), evidence, beyond, share)

    def missing(self, rule: Rule, questions: int) -> str:
        """Say how many launches would decide, if the same share of them were beyond the limit."""
        alpha = rule.spent
        beyond = sum(cost > self.limit for cost in self.costs)
        n = len(self.costs)
        fewer = min(beyond, n - beyond)
        needed = launches_to_decide(fewer, n, alpha, self._stays)
        if needed is None:
            return "no number of launches decides: half of them are beyond the bound"
        if 2 * beyond > n:  # FAIL needs the mean, too
            if self._alike:
                needed = fewest_launches((1 - rule.confidence) / max(1, questions), self._stays)
                return f"its launches are all alike, so their spread is unknown: about {needed} launches would decide"
            needed = self._until_mean(max(needed, 4), alpha / max(1, questions))
            if needed is None:
                return f"launches differ too much: over {MOST_NEEDED} would be needed"
        return f"about {needed} launches would decide" if needed > n else "one more round would decide"

    @property
    def _stays(self) -> float:
        return order_statistics.stays_of(self.correlation)

    @property
    def _alike(self) -> bool:
        """Whether the clock is too coarse to show how much launches differ."""
        return len(self.costs) > 1 and len(set(self.costs)) == 1

    def _until_mean(self, least: int, alpha: float) -> int | None:
        """Fewest launches, from `least` on, that show by this spread that the mean is beyond the limit."""
        estimate = guarded_mean.clipped(self.costs, self.limit)
        for launches in range(least, MOST_NEEDED + 1):
            mean = guarded_mean.widened(estimate, launches, self.correlation)
            if mean.freedom and quantile(1 - alpha, mean.freedom) * mean.error < mean.difference:
                return launches
        return None


@dataclass(frozen=True, slots=True)
class Nights:
    """A bound on how much a night differs from those of a baseline."""

    earlier: tuple[float, ...]
    """Log cost of each night of the baseline."""
    tonight: float
    limit: float
    show: Callable[[float], float]

    def answer(self, rule: Rule, questions: int, looks: tuple[int, ...]) -> Answer:
        """Judge the bound once: more launches tonight tell nothing about other nights, so there are no rounds."""
        estimate = one_more_night(self.earlier, self.tonight)
        decision = decide_by_mean(estimate, self.limit, _once(rule), questions)
        nights = len(self.earlier)
        known = nights > 1
        evidence = f"its {nights} nights differ by {_percent(math.expm1(spread_of(self.earlier)))}" if known else ""
        return Answer(decision, estimate.difference, evidence)

    def missing(self, rule: Rule, questions: int) -> str:
        """Say how many nights would decide, if they differed as they do."""
        if len(self.earlier) == 1:
            return "the baseline is one night, so how much nights differ is unknown: measure it on 5 nights or more"
        over = one_more_night(self.earlier, self.tonight).difference - self.limit
        alpha = _once(rule).spent / (max(1, questions) if over > 0 else 1)
        needed = nights_to_decide(spread_of(self.earlier), abs(over), alpha)
        if needed is None:
            return "nights differ too much for one more to decide so near the bound"
        return f"a baseline of about {needed} nights would decide"


def _once(rule: Rule) -> Rule:
    return Rule(rule.launches, rule.launches, rule.confidence, rule.undecided)


@dataclass(frozen=True, slots=True)
class Mean:
    """A bound on an estimate with a standard error of its own, such as the rise of a line."""

    estimate: Estimate
    limit: float
    show: Callable[[float], float]

    def answer(self, rule: Rule, questions: int, looks: tuple[int, ...]) -> Answer:
        """Judge the bound by Student's t."""
        return Answer(decide_by_mean(self.estimate, self.limit, rule, questions), self.estimate.difference, "")

    def missing(self, rule: Rule, questions: int) -> str:
        """Nothing is said: how fast the limits of an estimate narrow depends on how it was made."""
        return ""


Question = Launches | Nights | Mean


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"

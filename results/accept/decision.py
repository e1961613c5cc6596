"""The decision on one bound: by counting launches, by nights of a baseline, or by a line through a soak. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

from omb_py.results.statistics import guarded_mean, order_statistics
from omb_py.results.statistics.guarded_mean import CORRELATION
from omb_py.results.statistics.nights import nights_to_decide, one_more_night, spread_of
from omb_py.results.statistics.order_statistics import (
    allowed_counts,
    fewest_launches,
    launches_to_decide,
    share_bound,
)
from omb_py.results.statistics.sequential import AcceptRule, Decision, Word
from omb_py.results.statistics.sequential import decide as decide_by_mean
from omb_py.results.statistics.t_test import Estimate
from omb_py.results.units import counted, share_text

TWO_SIDED = 3 / 8
"""Share of the launches that either side of a bound has at least, where they may be of two modes."""
MOST_FOR_MEAN = 200
"""Most launches of which it is said that their mean would decide."""


@dataclass(frozen=True, slots=True)
class BoundAnswer:
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
class LaunchBound:
    """A bound on the median of launches."""

    costs: tuple[float, ...]
    """Log cost of each launch, or its difference to what it is compared with."""
    limit: float
    show: Callable[[float], float]
    """Turns a log cost into the number that is shown."""
    correlation: float = CORRELATION
    """Of a launch with the one before, over all cells of the report; less than this counts as this."""
    two_sided: int = 0
    """Bounds of the report that have launches on either side (:attr:`has_two_sides`)."""

    def answer(self, rule: AcceptRule, questions: int, looks: tuple[int, ...]) -> BoundAnswer:
        """Judge the bound.

        PASS when so few launches are beyond the limit that their median is within it, whatever their distribution. FAIL
        when so few are within it that their median is beyond, and the mean is too (:mod:`.guarded_mean`), corrected for
        the number of questions. The count is corrected for those that show two modes: each of these may have all of its
        launches in one of them by chance.

        Args:
            looks: number of launches at each round so far, the last one being those of `costs`.
        """
        ordered, n = sorted(self.costs), len(self.costs)
        alpha = 1 - rule.confidence
        to_pass, to_fail = (
            allowed_counts(looks, max(rule.rounds, len(looks)), alpha / verdicts, self._stays)[-1]
            for verdicts in (1, max(1, self.two_sided))
        )
        beyond = self._beyond
        pessimistic = ordered[n - 1 - to_pass] if 0 <= to_pass < n else math.inf
        optimistic = ordered[to_fail] if 0 <= to_fail < n else -math.inf
        mean = guarded_mean.distance(self.costs, self.limit, self.correlation)
        margin = mean.margin(rule.spent / max(1, questions))
        if self._clock_is_coarse and beyond and n < fewest_launches(alpha / max(1, questions), self._stays):
            margin = math.inf  # no spread is known: the count alone carries the correction
        optimistic = min(optimistic, self.limit + mean.mean - margin)
        word: Word = "PASS" if pessimistic <= self.limit else "FAIL" if optimistic > self.limit else "MARGINAL"
        share = share_bound(beyond, n, rule.confidence)
        count = f"{beyond} of {counted(n, 'launch')} beyond"
        if self.correlation > CORRELATION:
            count += f"; launches may resemble the one before (correlation {self.correlation:.2f}), so it takes more"
        if 2 * beyond > n and self.two_sided > 1:
            count += f"; {self.two_sided} bounds have launches on either side, so a FAIL takes more"
        sure = f"{share_text(rule.confidence)} sure"
        evidence = {
            "PASS": f"median within the bound, {sure}; {count} (at most {_percent(share)} are)",
            "FAIL": f"median beyond the bound, {sure}; {count}",
        }.get(word, count)
        decision = Decision(word, optimistic, pessimistic)
        return BoundAnswer(decision, order_statistics.median(self.costs), evidence, beyond, share)

    def missing(self, rule: AcceptRule, questions: int) -> str:
        """Say how many launches would decide, if the same share of them were beyond the limit."""
        beyond, n = self._beyond, len(self.costs)
        failing = 2 * beyond > n
        level = rule.spent / (max(1, self.two_sided) if failing else 1)
        needed = launches_to_decide(min(beyond, n - beyond), n, level, self._stays)
        if needed is None:
            return "no number of launches decides: half of them are beyond the bound"
        if failing:  # it needs the mean, too
            if self._clock_is_coarse:
                needed = fewest_launches((1 - rule.confidence) / max(1, questions), self._stays)
                return f"its launches are all alike, so their spread is unknown: about {needed} launches would decide"
            needed = self._until_mean(needed, rule.spent / max(1, questions))
            if needed is None:
                return f"launches differ too much: over {MOST_FOR_MEAN} would be needed"
        return f"about {needed} launches would decide" if needed > n else "one more round would decide"

    @property
    def has_two_sides(self) -> bool:
        """Whether its launches may be of two modes, one on each side of the bound, that are about equally frequent."""
        return min(self._beyond, len(self.costs) - self._beyond) >= TWO_SIDED * len(self.costs)

    @property
    def _beyond(self) -> int:
        return sum(cost > self.limit for cost in self.costs)

    @property
    def _stays(self) -> float:
        return order_statistics.stays_of(self.correlation)

    @property
    def _clock_is_coarse(self) -> bool:
        """Whether the clock is too coarse to show how much launches differ."""
        return len(self.costs) > 1 and len(set(self.costs)) == 1

    def _until_mean(self, least: int, alpha: float) -> int | None:
        """Fewest launches, from `least` on, that show by this spread that the mean is beyond the limit."""
        now = guarded_mean.distance(self.costs, self.limit, self.correlation)
        numbers = range(max(least, guarded_mean.FEWEST), MOST_FOR_MEAN + 1)
        place = bisect_left(numbers, True, key=lambda n: replace(now, launches=n).p_beyond < alpha)
        return numbers[place] if place < len(numbers) else None


@dataclass(frozen=True, slots=True)
class NightBound:
    """A bound on how much a night differs from those of a baseline."""

    earlier: tuple[float, ...]
    """Log cost of each night of the baseline."""
    tonight: float
    limit: float
    show: Callable[[float], float]

    def answer(self, rule: AcceptRule, questions: int, looks: tuple[int, ...]) -> BoundAnswer:
        """Judge the bound once: more launches tonight tell nothing about other nights, so there are no rounds."""
        estimate = one_more_night(self.earlier, self.tonight)
        decision = decide_by_mean(estimate, self.limit, _once(rule), questions)
        nights = len(self.earlier)
        known = nights > 1
        evidence = f"its {nights} nights differ by {_percent(math.expm1(spread_of(self.earlier)))}" if known else ""
        return BoundAnswer(decision, estimate.difference, evidence)

    def missing(self, rule: AcceptRule, questions: int) -> str:
        """Say how many nights would decide, if they differed as they do."""
        if len(self.earlier) == 1:
            return "the baseline is one night, so how much nights differ is unknown: measure it on 5 nights or more"
        over = one_more_night(self.earlier, self.tonight).difference - self.limit
        alpha = _once(rule).spent / (max(1, questions) if over > 0 else 1)
        needed = nights_to_decide(spread_of(self.earlier), abs(over), alpha)
        if needed is None:
            return "nights differ too much for one more to decide so near the bound"
        return f"a baseline of about {needed} nights would decide"


def _once(rule: AcceptRule) -> AcceptRule:
    return AcceptRule(rule.launches, rule.launches, rule.confidence, rule.undecided)


@dataclass(frozen=True, slots=True)
class MeanBound:
    """A bound on an estimate with a standard error of its own, such as the rise of a line."""

    estimate: Estimate
    limit: float
    show: Callable[[float], float]

    def answer(self, rule: AcceptRule, questions: int, looks: tuple[int, ...]) -> BoundAnswer:
        """Judge the bound by Student's t."""
        return BoundAnswer(decide_by_mean(self.estimate, self.limit, rule, questions), self.estimate.difference, "")

    def missing(self, rule: AcceptRule, questions: int) -> str:
        """Nothing is said: how fast the limits of an estimate narrow depends on how it was made."""
        return ""


Question = LaunchBound | NightBound | MeanBound


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"

"""The decision on one bound: by counting launches, by nights of a baseline, or by a line through a soak. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omb_py.results.statistics import order_statistics
from omb_py.results.statistics.nights import nights_to_decide, one_more_night, spread_of
from omb_py.results.statistics.order_statistics import allowed_counts, launches_to_decide, share_bound, stays_of
from omb_py.results.statistics.sequential import AcceptRule, Decision, Word
from omb_py.results.statistics.sequential import decide as decide_by_mean
from omb_py.results.statistics.t_test import Estimate
from omb_py.results.units import counted, share_text


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


FAR = 45
"""Times the extent of n launches over n√n: a bound that is so far from all of them (:func:`shared`)."""


def shared(
    correlation: float, beyond: ArrayLike, extent: ArrayLike, launches: int, questions: int
) -> NDArray[np.float64]:
    """Return the correlation that counts: none where a bound is so far that no slow hour can have moved all launches.

    It is where the nearest of n launches is farther from it than the launches are from each other, times :data:`FAR`
    over n√n; for a FAIL among 10 questions twice as far, among 100 three times. Of 8 AR(1) launches whose median is
    the bound 0.3 % are on its one side and so far with a correlation of 0.9, and 0.005 % with 0.7. Launches that are
    all alike show nothing.

    Args:
        beyond: how far the nearest launch is beyond the bound; minus how far it is within it; 0 between launches.
        extent: distance of the largest launch from the smallest.
        launches: their number.
        questions: number of bounds in the report.
    """
    far = FAR * np.where(np.asarray(beyond) > 0, 1 + math.log10(max(1, questions)), 1.0)
    is_far = (np.asarray(extent) > 0) & (np.abs(beyond) * launches**1.5 >= far * np.asarray(extent))
    return np.where(is_far, 0.0, correlation)


def may_miss(rule: AcceptRule, questions: int, looks: tuple[int, ...], correlation: float) -> tuple[int, int]:
    """Compute how many launches may be beyond a bound for a PASS, and how many within it for a FAIL.

    So few are rare where the median of launches is the bound, whatever their distribution. A PASS is wrong with at most
    one minus the confidence, over all looks. So is any FAIL of a report, hence it is corrected for the number of
    questions; a PASS needs no correction, since a machine that misses one bound must pass that very one.

    Args:
        looks: number of launches at each round so far.
        correlation: of a launch with the one before.

    Returns:
        Two counts; -1 where not even 0 is rare enough.
    """
    alpha, rounds, stays = 1 - rule.confidence, max(rule.rounds, len(looks)), stays_of(correlation)
    to_pass, to_fail = (allowed_counts(looks, rounds, share, stays)[-1] for share in (alpha, alpha / max(1, questions)))
    return to_pass, to_fail


@dataclass(frozen=True, slots=True)
class LaunchBound:
    """A bound on the median of launches."""

    costs: tuple[float, ...]
    """Log cost of each launch, or its difference to what it is compared with."""
    limit: float
    show: Callable[[float], float]
    """Turns a log cost into the number that is shown."""
    correlation: float = 0.0
    """Of a launch with the one before, over all cells of the report."""

    def answer(self, rule: AcceptRule, questions: int, looks: tuple[int, ...]) -> BoundAnswer:
        """Judge the bound by counts (:func:`may_miss`).

        Args:
            looks: number of launches at each round so far, the last one being those of `costs`.
        """
        ordered, n = sorted(self.costs), len(self.costs)
        to_pass, to_fail = may_miss(rule, questions, looks, self._share_error(questions))
        pessimistic = ordered[n - 1 - to_pass] if 0 <= to_pass < n else math.inf
        optimistic = ordered[to_fail] if 0 <= to_fail < n else -math.inf
        word: Word = "PASS" if pessimistic <= self.limit else "FAIL" if optimistic > self.limit else "MARGINAL"
        beyond = self._beyond
        share = share_bound(beyond, n, rule.confidence)
        count = f"{beyond} of {counted(n, 'launch')} beyond"
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
        level = rule.spent / (max(1, questions) if 2 * beyond > n else 1)
        needed = launches_to_decide(min(beyond, n - beyond), n, level, stays_of(self._share_error(questions)))
        if needed is not None:
            more = f": raise the suite's most-launches, {rule.most}" if needed > rule.most else ""
            return f"about {needed} launches would decide{more}"
        near = "half of them are beyond the bound" if 2 * beyond == n else "about half of them are beyond the bound"
        return f"no number of launches decides: {near}"

    def _share_error(self, questions: int) -> float:
        least, most = min(self.costs), max(self.costs)
        beyond = max(0.0, least - self.limit) - max(0.0, self.limit - most)
        return float(shared(self.correlation, beyond, most - least, len(self.costs), questions))

    @property
    def _beyond(self) -> int:
        return sum(cost > self.limit for cost in self.costs)


@dataclass(frozen=True, slots=True)
class NoBound(LaunchBound):
    """No bound is known: launches show where their median is."""

    def answer(self, rule: AcceptRule, questions: int, looks: tuple[int, ...]) -> BoundAnswer:
        """Return the limits of the median, and no verdict."""
        answer = LaunchBound.answer(self, rule, 1, looks)
        return BoundAnswer(replace(answer.decision, word="NO BOUND"), answer.middle, "no bound is known")


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
        decision = decide_by_mean(estimate, self.limit, _decide_once(rule), questions)
        nights = len(self.earlier)
        known = nights > 1
        evidence = f"its {nights} nights differ by {_percent(math.expm1(spread_of(self.earlier)))}" if known else ""
        return BoundAnswer(decision, estimate.difference, evidence)

    def missing(self, rule: AcceptRule, questions: int) -> str:
        """Say how many nights would decide, if they differed as they do."""
        if len(self.earlier) == 1:
            return "its baseline is one night, so how much nights differ is unknown"
        over = one_more_night(self.earlier, self.tonight).difference - self.limit
        alpha = _decide_once(rule).spent / (max(1, questions) if over > 0 else 1)
        needed = nights_to_decide(spread_of(self.earlier), abs(over), alpha)
        if needed is None:
            return "nights differ too much for one more to decide so near the bound"
        return f"a baseline of about {needed} nights would decide"


def _decide_once(rule: AcceptRule) -> AcceptRule:
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

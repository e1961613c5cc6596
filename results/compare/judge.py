"""Verdicts of a comparison. Pure: stored launches, running comparisons and simulations are judged by one function.

A *cell* has two *questions*: did the median change, and did the tail? Each has its own verdict. The family over which
the error rate is controlled is all questions of a report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from omb_py.results.compare.interleaved import Interleaved, Pairs, QuestionOutcome, fewest_pairs
from omb_py.results.statistics.holm import holm
from omb_py.results.statistics.launch_kinds import LaunchKinds, kinds_of
from omb_py.results.statistics.nights import FEWEST_NIGHTS, SHARED_NIGHTS, by_night, drift_allowed_for
from omb_py.results.statistics.order_statistics import median
from omb_py.results.statistics.t_test import (
    Estimate,
    detectable,
    launches_needed,
    of_few_pairs,
    ratio_of,
    rounding,
    welch_of_rounded,
)

Verdict = Literal["SLOWER", "LIKELY SLOWER", "FASTER", "LIKELY FASTER", "SAME", "UNCLEAR", "NOT COMPARABLE"]
WORDS: tuple[Verdict, ...] = ("SLOWER", "LIKELY SLOWER", "FASTER", "LIKELY FASTER", "SAME", "UNCLEAR", "NOT COMPARABLE")
"""Worst first, as a report lists them."""
OPEN: frozenset[Verdict] = frozenset({"LIKELY SLOWER", "LIKELY FASTER", "UNCLEAR", "NOT COMPARABLE"})
"""Verdicts that decide nothing."""
Question = Literal["median", "tail"]
QUESTIONS: tuple[Question, ...] = ("median", "tail")
SAME_LEVEL = 0.90
"""SAME: this interval lies wholly inside the tolerance, which is two one-sided tests at 5 %. Over several looks it is
wider at the first ones (:data:`omb_py.results.compare.interleaved.SAME_SCORES`)."""


@dataclass(frozen=True, slots=True)
class CompareRules:
    """The rules that verdicts follow. They are fixed before anything is measured, and printed with the report."""

    alpha: float = 0.01
    """Chance of any false SLOWER or FASTER in a report."""
    delta: float = 0.03
    """Relative change of a median that counts; smaller ones are not reported."""
    tail_delta: float = 0.10
    """Relative change of a tail that counts."""
    power: float = 0.8
    """Chance of detection for which the smallest detectable change and the launches needed are computed."""
    rounds: int = 1
    trust_sides: bool = False
    """Nothing but the side differs between the days of BASE and NEW, says the user: launches that were not interleaved
    are judged as if they had been."""

    def tolerance(self, question: Question) -> float:
        """Tolerance of a question, as a difference of logs."""
        return math.log1p(self.delta if question == "median" else self.tail_delta)


@dataclass(frozen=True, slots=True)
class Launched:
    """The statistics of one cell in one launch, in µs."""

    median_us: float | None
    """None where only a mean is known, as in imported rows: the mean stands for it, and no tail is asked."""
    mean_us: float
    p99_us: float | None = None
    """None under 100 samples."""
    samples: int | None = None
    """How many; None where it is not known."""


@dataclass(frozen=True, slots=True)
class CompareRound:
    """The launches of a cell in one round. Paired: launch k of BASE ran next to launch k of NEW."""

    base: tuple[Launched, ...]
    new: tuple[Launched, ...]
    paired: bool
    pairs: tuple[str, ...] = ()
    """Name of each pair: pairs of one name were made together, whatever the cell. Empty: by their number."""
    nights: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    """Night of each launch of BASE and of NEW, in days; needed where they are not paired. Empty: not known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict on one question of one cell, from the launches of all rounds in which the cell was measured."""

    verdict: Verdict
    statistic: str
    """Statistic of each launch that was compared: ``median``, ``p99`` or ``mean``."""
    base_us: float
    """Median over the launches of BASE, in µs."""
    new_us: float
    """Median over the launches of NEW, in µs."""
    ratio: float
    """Of these medians."""
    low: float
    """Lower end of the interval of the change, of this question alone, at the level of SAME. It holds the ratio."""
    high: float
    """Upper end of it: NEW is at most so much slower."""
    adjusted: float
    """p-value among all questions of the report, and all looks."""
    alpha: float
    """What the adjusted p-value is compared with."""
    round: int
    """Number of the last round, from 1."""
    launches: tuple[int, int]
    """Launches of BASE and of NEW in all rounds."""
    paired: bool
    detectable: float
    """Smallest change that the launches find with the chance of the rules, as a ratio over 1; infinite where they find
    none."""
    needed: int | None
    """Launches a side that would detect the change, or a change of the tolerance where that is larger."""
    flagged: bool = False
    """True: the cell should be measured again."""
    kinds: LaunchKinds | None = None
    """The two kinds of its launches; None where they are all of one."""
    reason: str = ""
    """Why it is open, where more launches of the same kind would not help."""
    beyond: int = 0
    """Of a LIKELY change: launches of NEW that are beyond all of BASE, in its direction."""


@dataclass(slots=True)
class JudgedCell:
    """The answers of one cell."""

    answers: dict[Question, Answer] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        return self.answers["median"].verdict

    @property
    def flagged(self) -> bool:
        return any(answer.flagged for answer in self.answers.values())

    @property
    def alarm(self) -> bool:
        return any(answer.verdict in ("SLOWER", "FASTER") for answer in self.answers.values())


def count_text(counts: Mapping[str, int]) -> str:
    """Count verdicts: ``3 slower, 1 faster, 62 same``. Counts of 0 are left out, except for slower."""
    return ", ".join(f"{counts.get(word, 0)} {word.lower()}" for word in WORDS if counts.get(word) or word == "SLOWER")


def judge(cells: Sequence[Sequence[CompareRound]], rules: CompareRules) -> list[JudgedCell]:
    """Verdicts on the cells of one report.

    Args:
        cells: the rounds of each cell, in order. A cell that was not measured again has fewer rounds. In each round
            both sides have launches.

    Returns:
        One entry a cell, in the same order; a cell without a round has no answers.
    """
    asked = {(i, q): _ask(rounds, q, rules) for i, rounds in enumerate(cells) if rounds for q in _questions(rounds)}
    turns = {key: pairs for key, question in asked.items() if (pairs := question.interleaved())}
    apart = [key for key in asked if key not in turns]
    # the questions of either kind are a family; together they err with the chance that was declared
    alpha = rules.alpha / (2 if turns and apart else 1)
    kinds = {key: QUESTIONS.index(key[1]) for key in turns}
    outcomes = Interleaved(turns, kinds, alpha, rules.rounds).outcomes()
    outcomes |= _judge_apart({key: asked[key] for key in apart}, alpha, rules.trust_sides)
    judged = [JudgedCell() for _ in cells]
    for (i, question), data in asked.items():
        judged[i].answers[question] = _answer(question, data, outcomes[i, question], rules)
    untold = [key for key in apart if outcomes[key].reason == APART]
    for (i, question), estimate in _estimate_likely({key: asked[key] for key in untold}, alpha).items():
        answer, logs = judged[i].answers[question], asked[i, question].logs
        judged[i].answers[question] = _answer_likely(answer, estimate, logs, rules.tolerance(question))
    return judged


Key = tuple[int, Question]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question of one cell, with the numbers of its launches."""

    statistic: str
    rounds: tuple[tuple[CompareRound, tuple[float, ...], tuple[float, ...]], ...]
    """Each round, and the logs of its launches of BASE and of NEW."""

    @property
    def logs(self) -> tuple[list[float], list[float]]:
        return [x for _, base, _ in self.rounds for x in base], [x for _, _, new in self.rounds for x in new]

    @property
    def nights(self) -> tuple[list[float], list[float]]:
        """Night of each launch of BASE and of NEW, or nothing."""
        base, new = ([x for measured, _, _ in self.rounds for x in measured.nights[side]] for side in (0, 1))
        return base, new

    def interleaved(self) -> list[Pairs]:
        """The pairs of each round; nothing where the sides did not take turns."""
        if all(measured.paired for measured, _, _ in self.rounds):
            return [Pairs(_names(k, measured), base, new) for k, (measured, base, new) in enumerate(self.rounds)]
        if not all(self.nights):
            return []
        (base_days, base), (new_days, new) = (
            by_night(nights, logs) for nights, logs in zip(self.nights, self.logs, strict=True)
        )
        shared = sorted(set(base_days.tolist()) & set(new_days.tolist()))
        if len(shared) < SHARED_NIGHTS:
            return []
        sides = [
            tuple(values[np.searchsorted(days, shared)].tolist())
            for days, values in ((base_days, base), (new_days, new))
        ]
        return [Pairs(tuple(map(str, shared)), *sides)]


def _names(number: int, measured: CompareRound) -> tuple[str, ...]:
    return measured.pairs or tuple(f"{number}.{k}" for k in range(len(measured.base)))


def _ask(rounds: Sequence[CompareRound], question: Question, rules: CompareRules) -> _Asked:
    rounds = rounds[: rules.rounds]
    launches = [launch for measured in rounds for launch in (*measured.base, *measured.new)]
    statistic = "median" if _has_medians(rounds) else "mean"
    if question == "tail":
        # a p99 of more samples is another number, even of the same calls
        equal = len({launch.samples for launch in launches}) == 1
        statistic = "p99" if equal and all(launch.p99_us is not None for launch in launches) else "mean"
    name = f"{statistic}_us"

    def logs(side: Sequence[Launched]) -> tuple[float, ...]:
        return tuple(math.log(getattr(launch, name)) for launch in side)

    return _Asked(statistic, tuple((measured, logs(measured.base), logs(measured.new)) for measured in rounds))


def _has_medians(rounds: Sequence[CompareRound]) -> bool:
    return all(launch.median_us is not None for measured in rounds for launch in (*measured.base, *measured.new))


def _questions(rounds: Sequence[CompareRound]) -> tuple[Question, ...]:
    return QUESTIONS if _has_medians(rounds) else ("median",)


def _judge_apart(questions: Mapping[Key, _Asked], alpha: float, trusted: bool) -> dict[Key, QuestionOutcome]:
    """Judge questions whose sides were not measured in turn: by their nights, or by launches if sides are trusted."""
    estimates, reasons = {}, {}
    for key, question in questions.items():
        logs, nights = question.logs, question.nights
        reasons[key] = ""
        if trusted:
            estimates[key] = welch_of_rounded(*logs)
            reasons[key] = "" if estimates[key].freedom > 0 else TOO_FEW
            continue
        if not all(nights):
            nights = [0.0] * len(logs[0]), [0.0] * len(logs[1])
        sides = [by_night(side, values) for side, values in zip(nights, logs, strict=True)]
        estimates[key] = drift_allowed_for(sides[0], sides[1], rounding([*logs[0], *logs[1]]))
        if estimates[key].freedom <= 0:
            reasons[key] = APART
    decidable = [key for key in estimates if not reasons[key]]
    adjusted = dict(zip(decidable, holm([estimates[key].p for key in decidable]), strict=True))
    outcomes = {}
    for key, estimate in estimates.items():
        shown = adjusted.get(key, 1.0) <= alpha
        outcomes[key] = QuestionOutcome(
            estimate,
            int(np.sign(estimate.difference)) if shown else 0,
            estimate.limits(SAME_LEVEL),
            adjusted.get(key, 1.0),
            alpha,
            alpha / max(1, len(decidable)),
            1,
            reason=reasons[key],
        )
    return outcomes


APART, TOO_FEW = "not interleaved", "one launch"
"""Reasons of a verdict on launches that were not made in turn: they are of too few nights; a side has a single one."""


def _estimate_likely(questions: Mapping[Key, _Asked], alpha: float) -> dict[Key, Estimate]:
    """What launches alone would show to be changed, if nothing but the side differed between the days."""
    estimates = {key: welch_of_rounded(*question.logs) for key, question in questions.items()}
    adjusted = holm([estimate.p for estimate in estimates.values()])
    return {key: estimate for (key, estimate), p in zip(estimates.items(), adjusted, strict=True) if p <= alpha}


def _detectable(outcome: QuestionOutcome, question: Question, rules: CompareRules) -> float:
    estimate, pairs = outcome.estimate, min(outcome.estimate.base, outcome.estimate.new)
    if pairs < (fewest_pairs(rules.alpha) if estimate.paired else FEWEST_NIGHTS):
        return math.inf
    if estimate.paired:
        estimate = replace(estimate, error=of_few_pairs(estimate.error, pairs))
    return detectable(estimate, outcome.strict, rules.power, rules.tolerance(question))


def _answer(question: Question, asked: _Asked, outcome: QuestionOutcome, rules: CompareRules) -> Answer:
    estimate, tolerance = outcome.estimate, rules.tolerance(question)
    base, new = asked.logs
    kinds = kinds_of(base, new) if estimate.paired else None
    verdict: Verdict = "UNCLEAR"
    if outcome.direction and outcome.direction * estimate.difference >= tolerance:
        verdict = "SLOWER" if outcome.direction > 0 else "FASTER"
    elif outcome.interval[0] > -tolerance and outcome.interval[1] < tolerance:
        verdict = "UNCLEAR" if kinds and kinds.shares_differ and _means_differ(base, new, tolerance) else "SAME"
    change = math.exp(max(abs(estimate.difference), tolerance))
    needed = None
    if verdict == "UNCLEAR" and not outcome.reason:
        constant = len(set(base)) == len(set(new)) == 1
        needed = launches_needed(estimate, change, outcome.strict, rules.power, constant)
        if needed is not None:
            fewest = fewest_pairs(rules.alpha) if estimate.paired else FEWEST_NIGHTS
            needed = max(needed, fewest, min(estimate.base, estimate.new) + 1)
    medians = median(base), median(new)
    difference = medians[1] - medians[0]
    return Answer(
        verdict,
        asked.statistic,
        math.exp(medians[0]),
        math.exp(medians[1]),
        math.exp(difference),
        ratio_of(min(outcome.interval[0], difference)),
        ratio_of(max(outcome.interval[1], difference)),
        outcome.adjusted,
        outcome.alpha,
        outcome.round,
        (len(base), len(new)),
        estimate.paired,
        _detectable(outcome, question, rules),
        needed,
        flagged=verdict == "UNCLEAR" and estimate.paired and outcome.round < rules.rounds,
        kinds=kinds,
        reason=outcome.reason if verdict == "UNCLEAR" else "",
    )


def _answer_likely(
    answer: Answer, estimate: Estimate, logs: tuple[list[float], list[float]], tolerance: float
) -> Answer:
    """The answer as LIKELY where the change counts, with the interval that its launches would give."""
    (base, new), slower = logs, estimate.difference > 0
    if abs(estimate.difference) < tolerance:
        return answer
    low, high = estimate.limits(SAME_LEVEL)
    return replace(
        answer,
        verdict="LIKELY SLOWER" if slower else "LIKELY FASTER",
        low=min(answer.ratio, ratio_of(low)),
        high=max(answer.ratio, ratio_of(high)),
        beyond=sum(x > max(base) for x in new) if slower else sum(x < min(base) for x in new),
    )


def _means_differ(base: Sequence[float], new: Sequence[float], tolerance: float) -> bool:
    """Whether the times of all launches, slow ones in full, differ by more than the tolerance in the mean."""
    means = [math.fsum(map(math.exp, side)) / len(side) for side in (base, new)]
    return abs(math.log(means[1] / means[0])) > tolerance

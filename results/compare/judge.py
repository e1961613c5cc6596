"""Verdicts of a comparison. Pure: stored launches, running comparisons and simulations are judged by one function.

A *cell* has two *questions*: did the median change, and did the tail? Each has its own verdict. The family over which
the error rate is controlled is all questions of a report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from omb_py.results.statistics.multiple_testing import holm
from omb_py.results.statistics.sequential import COMPARISON, last_answers
from omb_py.results.statistics.t_test import Estimate, detectable, launches_needed, paired, welch

Verdict = Literal["SLOWER", "FASTER", "SAME", "UNCLEAR", "NOT COMPARABLE"]
WORDS: tuple[Verdict, ...] = ("SLOWER", "FASTER", "SAME", "UNCLEAR", "NOT COMPARABLE")
"""Worst first, as a report lists them."""
Question = Literal["median", "tail"]
QUESTIONS: tuple[Question, ...] = ("median", "tail")
SAME_LEVEL = 0.90
"""SAME: this interval lies wholly inside the tolerance, which is two one-sided tests at 5 %."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that verdicts follow. They are fixed before anything is measured, and printed with the report."""

    alpha: float = 0.01
    """Chance of any false SLOWER or FASTER in a report."""
    delta: float = 0.03
    """Relative change of a median that counts; smaller ones are not reported."""
    tail_delta: float = 0.10
    """Relative change of a tail that counts."""
    screen: float = 0.05
    """Uncorrected p-value of a question up to which its cell is measured again."""
    power: float = 0.8
    """Chance of detection for which the smallest detectable change and the launches needed are computed."""
    rounds: int = 1
    """Most rounds of fresh launches."""

    @property
    def level(self) -> float:
        """Confidence level of the printed intervals."""
        return 1 - self.alpha

    @property
    def spending(self) -> tuple[float, ...]:
        """The part of :attr:`alpha` that each round may spend."""
        return COMPARISON.spending(self.alpha, self.rounds)

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


@dataclass(frozen=True, slots=True)
class Round:
    """The launches of a cell that are judged together. Paired: launch k of BASE ran next to launch k of NEW."""

    base: tuple[Launched, ...]
    new: tuple[Launched, ...]
    paired: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict on one question of one cell, from the last round that asked it."""

    verdict: Verdict
    statistic: str
    """Statistic of each launch that was compared: ``median``, ``p99`` or ``mean``."""
    base_us: float
    """Geometric mean over the launches of BASE, in µs."""
    new_us: float
    """Geometric mean over the launches of NEW, in µs."""
    ratio: float
    low: float
    """Lower end of the interval of the ratio, at :attr:`Rules.level`."""
    high: float
    """Upper end of it."""
    p: float
    """p-value of this question alone."""
    adjusted: float
    """p-value adjusted by Holm over the family of the round."""
    alpha: float
    """Part of alpha that the round could spend."""
    round: int
    """Number of the round, from 1."""
    launches: tuple[int, int]
    """Launches of BASE and of NEW in that round."""
    paired: bool
    detectable: float
    """Smallest change that the launches can detect, as a ratio over 1."""
    needed: int | None
    """Launches a side that would detect the change, or a change of the tolerance where that is larger."""
    flagged: bool = False
    """True: the cell should be measured again."""


@dataclass(slots=True)
class Judged:
    """The answers of one cell."""

    answers: dict[Question, Answer] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the median."""
        return self.answers["median"].verdict

    @property
    def flagged(self) -> bool:
        """True if the cell should be measured again."""
        return any(answer.flagged for answer in self.answers.values())

    @property
    def alarm(self) -> bool:
        """True if the median or the tail is called changed."""
        return any(answer.verdict in ("SLOWER", "FASTER") for answer in self.answers.values())


def judge(cells: Sequence[Sequence[Round]], rules: Rules) -> list[Judged]:
    """Verdicts on the cells of one report.

    Args:
        cells: the rounds of each cell, in order. A cell that was not measured again has fewer rounds. In each round
            both sides have launches.
        rules: the declared rules.

    Returns:
        One entry a cell, in the same order; a cell without a round has no answers.
    """
    questions = [(i, q) for i, rounds in enumerate(cells) if rounds for q in _questions(rounds[0])]
    measured = (
        (number, {(i, q): cells[i][number - 1] for i, q in questions if len(cells[i]) >= number})
        for number in range(1, rules.rounds + 1)
    )
    answers = last_answers(
        measured, lambda number, family: _answers(family, rules, number), lambda answer: answer.flagged
    )
    judged = [Judged() for _ in cells]
    for (i, question), answer in answers.items():
        judged[i].answers[question] = answer
    return judged


Key = tuple[int, Question]


def _answers(family: Mapping[Key, Round], rules: Rules, number: int) -> dict[Key, Answer]:
    estimates = {key: _estimate(measured, key[1]) for key, measured in family.items()}
    adjusted = dict(zip(estimates, holm([e.p for _, e in estimates.values()]), strict=True))
    size = max(1, len(family))
    return {
        key: _answer(key[1], family[key], statistic, estimate, adjusted[key], rules, number, size)
        for key, (statistic, estimate) in estimates.items()
    }


def _has_medians(measured: Round) -> bool:
    return all(launch.median_us is not None for launch in (*measured.base, *measured.new))


def _questions(measured: Round) -> tuple[Question, ...]:
    return QUESTIONS if _has_medians(measured) else ("median",)


def _estimate(measured: Round, question: Question) -> tuple[str, Estimate]:
    statistic = "median" if _has_medians(measured) else "mean"
    if question == "tail":
        whole = all(launch.p99_us is not None for launch in (*measured.base, *measured.new))
        statistic = "p99" if whole else "mean"
    compare = paired if measured.paired else welch
    return statistic, compare(_logs(measured.base, statistic), _logs(measured.new, statistic))


def _logs(launches: Sequence[Launched], statistic: str) -> list[float]:
    return [math.log(getattr(launch, f"{statistic}_us")) for launch in launches]


def _answer(
    question: Question,
    measured: Round,
    statistic: str,
    estimate: Estimate,
    adjusted: float,
    rules: Rules,
    number: int,
    size: int,
) -> Answer:
    spending = rules.spending
    alpha = spending[number - 1]
    tolerance = rules.tolerance(question)
    large = abs(estimate.difference) >= tolerance
    suspicious = large and estimate.p <= rules.screen
    verdict: Verdict = "UNCLEAR"
    if large and alpha > 0 and adjusted <= alpha:
        verdict = "SLOWER" if estimate.difference > 0 else "FASTER"
    elif _inside(estimate, tolerance):
        verdict = "SAME"
    # the strictest level that Holm may ask in the last round, so that figures do not promise too much
    level = spending[-1] / size
    change = math.exp(max(abs(estimate.difference), tolerance))
    low, high = estimate.interval(rules.level)
    return Answer(
        verdict,
        statistic,
        _mean(measured.base, statistic),
        _mean(measured.new, statistic),
        estimate.ratio,
        low,
        high,
        estimate.p,
        adjusted,
        alpha,
        number,
        (estimate.base, estimate.new),
        estimate.paired,
        detectable(estimate, level, rules.power),
        launches_needed(estimate, change, level, rules.power) if verdict == "UNCLEAR" else None,
        flagged=number < rules.rounds and suspicious and verdict not in ("SLOWER", "FASTER"),
    )


def _inside(estimate: Estimate, tolerance: float) -> bool:
    low, high = estimate.interval(SAME_LEVEL)
    return low > math.exp(-tolerance) and high < math.exp(tolerance)


def _mean(launches: Sequence[Launched], statistic: str) -> float:
    logs = _logs(launches, statistic)
    return math.exp(math.fsum(logs) / len(logs))

"""From launches to verdicts. Pure: the same function judges stored launches, a comparison that runs, and a simulation.

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
    """How verdicts are made; fixed before anything is measured, and printed with the report."""

    alpha: float = 0.01
    """Chance of any false SLOWER or FASTER in a report."""
    delta: float = 0.03
    """Smaller changes of a median are nobody's business."""
    tail_delta: float = 0.10
    """The same for the tail."""
    screen: float = 0.05
    """p-value of a single question, without correction, up to which a cell is measured again."""
    power: float = 0.8
    """For the smallest detectable change, and the launches needed."""
    rounds: int = 1
    """How often fresh launches may be looked at."""

    @property
    def level(self) -> float:
        """Of the intervals that are printed."""
        return 1 - self.alpha

    @property
    def spending(self) -> tuple[float, ...]:
        """What each round may spend of :attr:`alpha`."""
        return COMPARISON.spending(self.alpha, self.rounds)

    def tolerance(self, question: Question) -> float:
        """Of a question, as a difference of logs."""
        return math.log1p(self.delta if question == "median" else self.tail_delta)


@dataclass(frozen=True, slots=True)
class Launched:
    """What one launch says of one cell, µs."""

    median_us: float | None
    """None where only a mean is known, as of imported rows: that answers the first question, and no tail is asked."""
    mean_us: float
    p99_us: float | None = None
    """None under 100 samples."""


@dataclass(frozen=True, slots=True)
class Round:
    """The launches of a cell that are judged together. Paired: number k of either side ran next to the other's."""

    base: tuple[Launched, ...]
    new: tuple[Launched, ...]
    paired: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict on one question of one cell, from the last round that asked it."""

    verdict: Verdict
    statistic: str
    """What of each launch was compared: ``median``, ``p99`` or ``mean``."""
    base_us: float
    """Geometric mean over the launches."""
    new_us: float
    ratio: float
    low: float
    """Interval of the ratio, at :attr:`Rules.level`."""
    high: float
    p: float
    """Of this question alone."""
    adjusted: float
    """By Holm over the family of the round."""
    alpha: float
    """What the round could spend."""
    round: int
    """From 1."""
    launches: tuple[int, int]
    """Of each side, in that round."""
    paired: bool
    detectable: float
    """Smallest change that is found, as a ratio over 1."""
    needed: int | None
    """Launches a side that would find a change as large as this one, or as the tolerance where this one is smaller."""
    flagged: bool = False
    """To be measured again."""


@dataclass(slots=True)
class Judged:
    """The answers of one cell."""

    answers: dict[Question, Answer] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """On the median."""
        return self.answers["median"].verdict

    @property
    def flagged(self) -> bool:
        """Measure it again, if rounds are left."""
        return any(answer.flagged for answer in self.answers.values())

    @property
    def alarm(self) -> bool:
        """Median or tail is called changed."""
        return any(answer.verdict in ("SLOWER", "FASTER") for answer in self.answers.values())


def judge(cells: Sequence[Sequence[Round]], rules: Rules) -> list[Judged]:
    """Verdicts on the cells of one report.

    Args:
        cells: for each cell its rounds, in order; those that were not measured again have fewer. A side without a
            launch is no round.
        rules: as declared.

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
    # what the last round would ask of one question among as many
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

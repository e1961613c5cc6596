"""Sequential tests: verdicts in rounds of launches, with one chance of an error for all rounds. Pure.

``guidelines`` and ``accept`` measure in rounds: a question that is open after one round is measured again in the next.
They differ in the statistic of a launch. How they spend the chance of an error, and which launches count, stands here.
``compare`` judges the pairs of all rounds together (:mod:`omb_py.results.compare.interleaved`).

A criterion of ``accept`` is judged by its *log cost*: the log of a time, or minus the log of a rate, so that more is
worse and a bound is a limit from above.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from omb_py.results.statistics.t_test import Estimate, quantile

Round = TypeVar("Round")
Question = TypeVar("Question", bound=Hashable)
Launches = TypeVar("Launches")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Scheme:
    """The way in which one kind of test goes from round to round."""

    fresh: bool
    """True: a round is decided by its own launches, and the first of several rounds names no change, it only chooses
    what is measured again. False: all launches so far decide in every round."""
    most_rounds: int = sys.maxsize
    doubling: bool = False
    """Each round from the third on makes twice as many launches as the one before."""

    def spending(self, alpha: float, rounds: int) -> tuple[float, ...]:
        """Share `alpha` out among the rounds, before the first launch.

        Every round errs with a chance of at most its part, so all together with at most `alpha` (Boole).

        Raises:
            ValueError: there are fewer rounds than 1 or more than :attr:`most_rounds`.

        >>> GUIDELINE.spending(0.01, 3), ACCEPTANCE.spending(0.06, 3)
        ((0.0, 0.005, 0.005), (0.02, 0.02, 0.02))
        """
        if not 1 <= rounds <= self.most_rounds:
            raise ValueError(f"rounds are 1 to {self.most_rounds}, not {rounds}")
        if self.fresh and rounds > 1:
            # the first round only selects what is measured again, so it needs no part of alpha
            return (0.0, *evenly(alpha, rounds - 1))
        return evenly(alpha, rounds)

    def batches(self, number: int) -> int:
        """Launches of round `number`, in multiples of the first round: always 1, or 1, 1, 2, 4, …"""
        return 1 << max(0, number - 2) if self.doubling else 1


GUIDELINE: Final = Scheme(fresh=True, most_rounds=5, doubling=True)
ACCEPTANCE: Final = Scheme(fresh=False)


def evenly(alpha: float, rounds: int) -> tuple[float, ...]:
    """Divide `alpha` into equal parts."""
    return (alpha / rounds,) * rounds


def last_answers(
    rounds: Iterable[tuple[Round, Mapping[Question, Launches]]],
    judge: Callable[[Round, Mapping[Question, Launches]], Mapping[Question, Answer]],
    stays_open: Callable[[Answer], bool] = lambda answer: True,
) -> dict[Question, Answer]:
    """Judge round by round; each question keeps the answer of the last round that judged it.

    Args:
        rounds: the rounds in order, each with the launches of its questions.
        judge: computes the answers of one round, whose questions are a family.
        stays_open: says whether a question may be judged again in the next round. Other questions are left out of its
            family.
    """
    answers: dict[Question, Answer] = {}
    closed: set[Question] = set()
    for number, measured in rounds:
        family = {question: launches for question, launches in measured.items() if question not in closed}
        of_round = judge(number, family)
        answers |= of_round
        closed |= {question for question, answer in of_round.items() if not stays_open(answer)}
    return answers


Word = Literal["PASS", "FAIL", "MARGINAL", "ERROR"]
WORDS: tuple[Word, ...] = ("FAIL", "ERROR", "MARGINAL", "PASS")
"""Verdicts on a criterion, worst first."""
Undecided = Literal["marginal", "fail", "pass"]
UNDECIDED: tuple[Undecided, ...] = ("marginal", "fail", "pass")
FEWEST = 2
"""Fewest launches that have a spread."""


@dataclass(frozen=True, slots=True)
class AcceptRule:
    """The rule that verdicts follow. It is fixed before the first launch and printed with the report."""

    launches: int = 8
    """Launches of each round; a criterion that is MARGINAL gets as many again."""
    most: int = 24
    """Most launches of one criterion, over all rounds."""
    confidence: float = 0.95
    """One minus the chance of a wrong PASS of a criterion, and of any wrong FAIL in the report."""
    undecided: Undecided = "marginal"
    """The verdict that the contract gives to a criterion that is MARGINAL after the last launch."""

    @property
    def rounds(self) -> int:
        """Number of rounds after which verdicts are given."""
        return max(1, math.ceil(self.most / self.launches))

    @property
    def spent(self) -> float:
        """Chance of an error that each round may spend: all rounds get the same (Boole)."""
        return ACCEPTANCE.spending(1 - self.confidence, self.rounds)[0]


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on one bound after some launches."""

    word: Word
    optimistic: float
    """Lower confidence limit of the log cost; FAIL when it is beyond the bound."""
    pessimistic: float
    """Upper confidence limit of the log cost; PASS when it keeps the bound."""


def decide(estimate: Estimate, limit: float, rule: AcceptRule, questions: int = 1) -> Decision:
    """Judge one bound by all launches so far.

    Args:
        estimate: estimate of the log cost. Its limits are infinite where the spread is unknown.
        limit: largest log cost that is still good.
        rule: the declared rule.
        questions: number of bounds in the report. Each could fail by chance, so FAIL is corrected for their number.

    Returns:
        PASS when even the upper limit keeps the bound: if the true log cost is beyond it, the chance of that is at most
        ``rule.spent``. FAIL when even the lower limit breaks it: if all bounds are kept, the chance of any FAIL in the
        round is at most ``rule.spent``. Else MARGINAL.
    """
    optimistic, pessimistic = -math.inf, math.inf
    if estimate.freedom > 0:
        optimistic = (
            estimate.difference - quantile(1 - rule.spent / max(1, questions), estimate.freedom) * estimate.error
        )
        pessimistic = estimate.difference + quantile(1 - rule.spent, estimate.freedom) * estimate.error
    word: Word = "PASS" if pessimistic <= limit else "FAIL" if optimistic > limit else "MARGINAL"
    return Decision(word, optimistic, pessimistic)


def worst(words: Iterable[Word]) -> Word:
    """Reduce several words to the worst one; ERROR for no word, since nothing was shown.

    >>> worst(["PASS", "MARGINAL"]), worst([])
    ('MARGINAL', 'ERROR')
    """
    present = set(words)
    return next((word for word in WORDS if word in present), "ERROR")


def settled(word: Word, rule: AcceptRule) -> Word:
    """Turn MARGINAL after the last launch into what the contract says."""
    if word != "MARGINAL" or rule.undecided == "marginal":
        return word
    return "FAIL" if rule.undecided == "fail" else "PASS"

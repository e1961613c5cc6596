"""Sequential tests: verdicts in rounds of launches, with one chance of an error for all rounds. Pure.

``compare``, ``guidelines`` and ``accept`` measure in rounds: what is open after one is measured again in the next. They
differ in the statistic of a launch; how they spend the chance of an error, and which launches count, stands here and is
derived in docs/statistics.md.

A criterion of ``accept`` is judged by its *log cost*: the log of a time, or minus the log of a rate, so that more is
worse and a bound is a limit from above.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from scipy import special

from omb_py.results.statistics.t_test import Estimate, quantile

Round = TypeVar("Round")
Question = TypeVar("Question", bound=Hashable)
Launches = TypeVar("Launches")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Scheme:
    """How one kind of test goes from round to round."""

    fresh: bool
    """A round is decided by its own launches, and the first of several names no change: it only chooses what is
    measured again. Else all launches so far decide in every round."""
    most_rounds: int = sys.maxsize
    doubling: bool = False
    """From the third round on, each makes twice as many launches as the one before."""

    def spending(self, alpha: float, rounds: int) -> tuple[float, ...]:
        """The part of `alpha` that each round may spend on changes, declared before the first launch.

        Every round errs with a chance of at most its part, so all together with at most `alpha` (Boole). Raises
        ValueError for more rounds than :attr:`most_rounds`.

        >>> COMPARISON.spending(0.01, 3), ACCEPTANCE.spending(0.06, 3)
        ((0.0, 0.005, 0.005), (0.02, 0.02, 0.02))
        """
        if not 1 <= rounds <= self.most_rounds:
            raise ValueError(f"rounds are 1 to {self.most_rounds}, not {rounds}")
        if self.fresh and rounds > 1:
            return (0.0, *evenly(alpha, rounds - 1))
        return evenly(alpha, rounds)

    def batches(self, number: int) -> int:
        """How many times as many launches as the first round round `number` makes: 1, or 1, 1, 2, 4, …"""
        return 1 << max(0, number - 2) if self.doubling else 1


COMPARISON: Final = Scheme(fresh=True, most_rounds=3)
GUIDELINE: Final = Scheme(fresh=True, most_rounds=5, doubling=True)
ACCEPTANCE: Final = Scheme(fresh=False)


def evenly(alpha: float, rounds: int) -> tuple[float, ...]:
    """`alpha` in equal parts."""
    return (alpha / rounds,) * rounds


def last_answers(
    rounds: Iterable[tuple[Round, Mapping[Question, Launches]]],
    judge: Callable[[Round, Mapping[Question, Launches]], Mapping[Question, Answer]],
    stays_open: Callable[[Answer], bool] = lambda answer: True,
) -> dict[Question, Answer]:
    """Judge round by round; each question keeps the answer of the last round that judged it.

    Args:
        rounds: in order, what each measured of its questions.
        judge: the answers of one round, whose questions are a family.
        stays_open: whether a question may be judged in the round after; others are left out of its family.
    """
    answers: dict[Question, Answer] = {}
    closed: set[Question] = set()
    for number, measured in rounds:
        family = {question: launches for question, launches in measured.items() if question not in closed}
        of_round = judge(number, family)
        answers |= of_round
        closed |= {question for question, answer in of_round.items() if not stays_open(answer)}
    return answers


def p_above(estimate: Estimate, limit: float) -> float:
    """One-sided p-value of "the true value is at most `limit`". 1 where nothing is known of the spread."""
    return _tail(estimate, estimate.difference - limit)


def p_below(estimate: Estimate, limit: float) -> float:
    """One-sided p-value of "the true value is at least `limit`". 1 where nothing is known of the spread."""
    return _tail(estimate, limit - estimate.difference)


def _tail(estimate: Estimate, over: float) -> float:
    if estimate.freedom <= 0:
        return 1.0
    if estimate.error == 0:
        return 0.0 if over > 0 else 1.0
    return float(special.stdtr(estimate.freedom, -over / estimate.error))


Word = Literal["PASS", "FAIL", "MARGINAL", "ERROR"]
WORDS: tuple[Word, ...] = ("FAIL", "ERROR", "MARGINAL", "PASS")
"""Worst first."""
Undecided = Literal["marginal", "fail", "pass"]
UNDECIDED: tuple[Undecided, ...] = ("marginal", "fail", "pass")
FEWEST = 2
"""Launches under which no spread is known."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How verdicts are made; fixed before the first launch, and printed with the report."""

    launches: int = 3
    """Of each round; a criterion that is MARGINAL gets as many again."""
    most: int = 9
    """Launches of one criterion, over all rounds."""
    confidence: float = 0.95
    undecided: Undecided = "marginal"
    """What the contract says of a criterion that is MARGINAL after the last launch."""

    @property
    def rounds(self) -> int:
        """How often verdicts may be looked at."""
        return max(1, math.ceil(self.most / self.launches))

    @property
    def spent(self) -> float:
        """Chance of an error that each round may spend: the whole is shared out evenly (Boole)."""
        return ACCEPTANCE.spending(1 - self.confidence, self.rounds)[0]


@dataclass(frozen=True, slots=True)
class Decision:
    """What the launches so far say of one bound."""

    word: Word
    """PASS, FAIL or MARGINAL."""
    optimistic: float
    """Lower limit of the log cost, for FAIL."""
    pessimistic: float
    """Upper limit of it, for PASS."""


def decide(estimate: Estimate, limit: float, rule: Rule, questions: int = 1) -> Decision:
    """Judge one bound by all launches so far.

    Args:
        estimate: of the log cost; infinite limits where nothing is known of the spread.
        limit: the log cost that is still good.
        rule: as declared.
        questions: bounds that this report asks about: so often it may call a good machine bad by chance.

    Returns:
        PASS when even the upper limit keeps the bound: with a log cost beyond the limit this happens with a chance of
        at most ``rule.spent``. FAIL when even the lower limit breaks it; with all bounds kept the chance of any FAIL in
        the round is at most ``rule.spent``. Never both.
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
    """One word for several: the worst; ERROR for none, since nothing was shown.

    >>> worst(["PASS", "MARGINAL"]), worst([])
    ('MARGINAL', 'ERROR')
    """
    present = set(words)
    return next((word for word in WORDS if word in present), "ERROR")


def settled(word: Word, rule: Rule) -> Word:
    """The word after the last launch: MARGINAL becomes what the contract says."""
    if word != "MARGINAL" or rule.undecided == "marginal":
        return word
    return "FAIL" if rule.undecided == "fail" else "PASS"

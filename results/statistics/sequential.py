"""The rule of an acceptance: verdicts in rounds of launches, with one chance of an error for all rounds. Pure.

A criterion that is open after one round is measured again in the next. It is judged by its *log cost*: the log of a
time, or minus the log of a rate, so that more is worse and a bound is a limit from above.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from omb_py.results.statistics.t_test import Estimate, quantile

Word = Literal["PASS", "FAIL", "MARGINAL", "ERROR", "NO BOUND"]
WORDS: tuple[Word, ...] = ("FAIL", "ERROR", "MARGINAL", "NO BOUND", "PASS")
"""Verdicts on a criterion, worst first."""
Undecided = Literal["marginal", "fail", "pass"]
UNDECIDED: tuple[Undecided, ...] = ("marginal", "fail", "pass")


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
        return (1 - self.confidence) / self.rounds


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

"""PASS, FAIL or MARGINAL: a bound against launches, each counted once. Pure; derived in docs/statistics.md.

Everything that is judged becomes a *badness*: the log of a time, or minus the log of a rate, so that more is worse and
a bound is a limit from above. The mean badness over the launches and its error (``results.statistics.t_test``) decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from omb_py.results.statistics.t_test import Estimate, quantile

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
    """Of each look; a criterion that is MARGINAL gets as many again."""
    most: int = 9
    """Launches of one criterion, over all looks."""
    confidence: float = 0.95
    undecided: Undecided = "marginal"
    """What the contract says of a criterion that is MARGINAL after the last launch."""

    @property
    def looks(self) -> int:
        """How often verdicts may be looked at."""
        return max(1, math.ceil(self.most / self.launches))

    @property
    def spent(self) -> float:
        """Chance of an error that each look may spend: the whole is shared out evenly (Boole)."""
        return (1 - self.confidence) / self.looks


@dataclass(frozen=True, slots=True)
class Decision:
    """What the launches so far say of one bound."""

    word: Word
    """PASS, FAIL or MARGINAL."""
    optimistic: float
    """Lower limit of the badness, for FAIL."""
    pessimistic: float
    """Upper limit of it, for PASS."""


def decide(estimate: Estimate, limit: float, rule: Rule, questions: int = 1) -> Decision:
    """Judge one bound by all launches so far.

    Args:
        estimate: of the badness; infinite limits where nothing is known of the spread.
        limit: the badness that is still good.
        rule: as declared.
        questions: bounds that this report asks about: so often it may call a good machine bad by chance.

    Returns:
        PASS when even the upper limit keeps the bound: with a badness beyond the limit this happens with a chance of
        at most ``rule.spent``. FAIL when even the lower limit breaks it; with all bounds kept the chance of any FAIL in
        the look is at most ``rule.spent``. Never both.
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
    found = set(words)
    return next((word for word in WORDS if word in found), "ERROR")


def settled(word: Word, rule: Rule) -> Word:
    """The word after the last launch: MARGINAL becomes what the contract says."""
    if word != "MARGINAL" or rule.undecided == "marginal":
        return word
    return "FAIL" if rule.undecided == "fail" else "PASS"

"""Plan a comparison by its first pairs: how launches differ here, and how many a change takes. Pure.

Without a budget the first pairs of round 1 are looked at, and nothing depends on them. With a budget, some pairs that
are not judged choose the number of launches: so that number says nothing of the launches that are judged, and the
chance of a false verdict stays what it was.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from omb_py.errors import UsageError
from omb_py.grammar.values import duration_text
from omb_py.results.compare.interleaved import SPENDING, can_show, fewest_pairs
from omb_py.results.compare.judge import CompareRules, Launched
from omb_py.results.statistics.t_test import Estimate, launches_needed

PAIRS = 3
"""Pairs of a pilot."""
USUAL = 10
"""Launches of a side in a round, where nothing else is asked for."""
_MEDIAN_OF_THREE = math.sqrt(math.log(2))
"""Median of the standard deviation of three normal values whose own is 1: two degrees of freedom."""
_LARGE = 0.10
"""The larger one of the two changes for which launches are told."""


class BudgetTooShort(UsageError):
    """A time in which no change can be shown."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a few pairs say of all that will be made."""

    spread: float
    """Standard deviation of the log of NEW over BASE in a pair, the median over the cells."""
    cells: int
    pair_s: float
    """Seconds that a pair of launches takes."""

    def launches(self, change: float, rules: CompareRules) -> int | None:
        """Launches a side that find a change of this share with the power of the rules; None: more than are made."""
        strict = rules.alpha * SPENDING[rules.rounds - 1][-1] / max(1, self.cells)
        freedom = (PAIRS - 1.0) * self.cells
        estimate = Estimate(0.0, max(self.spread, 1e-6) / math.sqrt(PAIRS), freedom, PAIRS, PAIRS, paired=True)
        needed = launches_needed(estimate, 1 + change, strict, rules.power)
        return None if needed is None else max(needed, fewest_pairs(strict))

    def within(self, budget_s: float, rules: CompareRules) -> tuple[CompareRules, int]:
        """The rounds and the launches of each that a time allows.

        A round has as many launches as find a change of the tolerance, at least :data:`USUAL` since so few pairs can
        look too calm by chance, and no more than its share of the time.

        Raises:
            BudgetTooShort: the time is too short for a change to be shown.
        """
        pairs = max(0, int(budget_s / max(self.pair_s, 1e-9)))
        rounds = next((n for n in range(rules.rounds, 0, -1) if can_show(pairs // n, rules.alpha, n)), 0)
        if not rounds:
            needed = fewest_pairs(rules.alpha)
            raise BudgetTooShort(
                f"the time is enough for {pairs} more launches a side, of {_seconds(self.pair_s)} a pair, and a "
                f"change needs {needed}: give it {_seconds((needed + PAIRS + 1) * self.pair_s)}"
            )
        chosen, most = replace(rules, rounds=rounds), pairs // rounds
        wanted = self.launches(rules.delta, chosen)
        return chosen, most if wanted is None else min(most, max(wanted, USUAL))

    def sentence(self, rules: CompareRules, launches: int, chosen: bool) -> str:
        """Say what launches can show here.

        Args:
            rules: the rules that hold from now on.
            launches: of each side in each round.
            chosen: whether a budget chose them.
        """
        by = f"{100 * self.spread / math.sqrt(2):.2g} %"
        changes = sorted({max(_LARGE, rules.delta), rules.delta}, reverse=True)
        takes = ", one ".join(f"of {100 * change:g} % {self._takes(change, rules)}" for change in changes)
        rounds = f", up to {rules.rounds} rounds" if rules.rounds > 1 else ""
        most = _seconds(rules.rounds * launches * self.pair_s)
        more = "" if chosen else "; --budget TIME chooses"
        return (
            f"launches here differ by {by}: a change {takes}; going on with {launches}{rounds} ({most} at most){more}"
        )

    def _takes(self, change: float, rules: CompareRules) -> str:
        needed = self.launches(change, rules)
        if needed is None:
            return "cannot be shown"
        return f"takes about {needed} launches a side ({_seconds(needed * self.pair_s)})"


def pilot_of(base: Sequence[Sequence[Launched]], new: Sequence[Sequence[Launched]], pair_s: float) -> Pilot | None:
    """The pilot that these pairs make; None where no cell has two pairs.

    Args:
        base: launches of each cell, in the order of the pairs.
        new: the same of the other side.
        pair_s: seconds of a pair.
    """
    spreads = [
        statistics.stdev(math.log(_time(b) / _time(a)) for a, b in zip(*cell, strict=True))
        for cell in zip(base, new, strict=True)
        if len(cell[0]) > 1
    ]
    if not spreads:
        return None
    return Pilot(statistics.median(spreads) / _MEDIAN_OF_THREE, len(spreads), pair_s)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else duration_text(math.ceil(seconds))


def _time(launched: Launched) -> float:
    return launched.mean_us if launched.median_us is None else launched.median_us

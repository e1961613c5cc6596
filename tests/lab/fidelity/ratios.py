"""The arithmetic of the fidelity benchmark: from block values to a verdict. Pure functions.

A *block* is one run of one side: it gives the number that this side prints.  A *quad* is four blocks, A B B A or
B A A B in turn, so that each side comes first equally often and drift cancels.  It holds two *pairs* of neighbouring
blocks; a pair's value is log A - log B.  A *launch* gives one value a cell: the median of its pairs, which a few
blocks that something else interrupted cannot move far.  (Tried on the reference against itself, where the true value
is 0: the launch-to-launch spread is 0.9 % with the median of pairs, 1.2 % with that of whole quads, 1.7 % with the
ratio of the two sides' medians.)  Over the launches (the sample) stand the mean and Student's 95 % interval: the
cell passes when the whole interval lies inside the bar.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95


def orders(quads: int) -> list[str]:
    """The order of the blocks of each quad: ABBA and BAAB in turn, so that neither side always comes first."""
    return ["ABBA" if q % 2 == 0 else "BAAB" for q in range(quads)]


def pair_log_ratios(order: str, values: Sequence[float]) -> list[float]:
    """log A - log B of each pair of neighbouring blocks.

    Raises ValueError on a value that is not positive and finite, or when a pair lacks a side.
    """
    if len(order) != len(values) or any(not v > 0 or math.isinf(v) for v in values):
        raise ValueError(f"cannot take logs of {list(values)} in order {order}")
    pairs = []
    for first in range(0, len(order), 2):
        sides = dict(zip(order[first : first + 2], values[first : first + 2], strict=True))
        if sides.keys() != {"A", "B"}:
            raise ValueError(f"order {order} has a pair without both sides")
        pairs.append(math.log(sides["A"] / sides["B"]))
    return pairs


def launch_log_ratio(pairs: Sequence[float]) -> float:
    """The launch's value: the median over its pairs."""
    return statistics.median(pairs)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A cell over all launches; ratios A/B - 1 as fractions."""

    launches: int
    ratio: float
    low: float
    high: float
    bar: float

    @property
    def inside(self) -> bool:
        """The whole interval lies inside the bar."""
        return -self.bar < self.low and self.high < self.bar

    @property
    def word(self) -> str:
        """PASS: inside. UNDECIDED: not, but the interval is wider than the bar and reaches into it. FAIL: else."""
        if self.inside:
            return "PASS"
        reaches = self.low < self.bar and self.high > -self.bar
        return "UNDECIDED" if self.half_width > self.bar and reaches else "FAIL"

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def judge(launches: Sequence[float], bar: float) -> Verdict:
    """Mean and Student's 95 % interval of the launches' log ratios, as ratios.

    With fewer than two launches there is no interval: it is infinite, and nothing passes.
    """
    n = len(launches)
    mean = statistics.fmean(launches)
    if n < 2:
        return Verdict(n, math.expm1(mean), -1.0, math.inf, bar)
    from scipy import stats

    half = float(stats.t.ppf(0.5 + LEVEL / 2, n - 1)) * statistics.stdev(launches) / math.sqrt(n)
    return Verdict(n, math.expm1(mean), math.expm1(mean - half), math.expm1(mean + half), bar)

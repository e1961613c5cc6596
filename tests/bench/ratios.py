"""The arithmetic of the fidelity benchmark: from block values to a verdict. Pure functions.

A *block* is one run of one side: it gives the number that this side prints.  A *quad* is four blocks, A B B A or
B A A B, so that a linear drift of the machine cancels; its value is the mean log of the two A blocks minus that of
the two B blocks.  A *launch* gives one value a cell: the median of its quads, which a block that was interrupted by
something else cannot move far.  Over the launches (the sample) stand the mean and Student's 95 % interval: the cell
passes when the whole interval lies inside the bar.
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


def quad_log_ratio(order: str, values: Sequence[float]) -> float:
    """Mean log of the A blocks minus mean log of the B blocks. Raises ValueError on a value that is not positive."""
    if len(order) != len(values) or any(not v > 0 or math.isinf(v) for v in values):
        raise ValueError(f"cannot take logs of {list(values)}")
    a = [math.log(v) for side, v in zip(order, values, strict=True) if side == "A"]
    b = [math.log(v) for side, v in zip(order, values, strict=True) if side == "B"]
    return statistics.fmean(a) - statistics.fmean(b)


def launch_log_ratio(quads: Sequence[float]) -> float:
    """The launch's value: the median over its quads."""
    return statistics.median(quads)


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

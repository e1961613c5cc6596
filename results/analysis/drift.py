"""Does a cell get slower while it is measured again and again? Passes of a soak, in logs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from omb_py.results.statistics.change_points import LEAST, MOST, change_points
from omb_py.results.statistics.t_test import Estimate

FEWEST = 3
"""Passes under which a line leaves no spread."""
_LINE = 4
"""Passes up to which a line's residuals say nothing of how passes depend on each other."""


def drift(launches: Sequence[Sequence[float]]) -> tuple[Estimate, str]:
    """What :func:`rise` says, and a note that names the steps of the longest launch (``statistics.change_points``).

    Args:
        launches: as there.
    """
    longest = max(launches, key=len, default=())
    return rise(launches), _steps(longest) if len(longest) >= FEWEST else ""


def rise(launches: Sequence[Sequence[float]]) -> Estimate:
    """How much worse the end is than the beginning, by straight lines through the passes of each launch.

    A line y = a + b·k through passes k = 0 … n - 1 has risen by b·(n - 1). Passes know of each other, so the error is
    widened by sqrt((1 + r) / (1 - r)) with r the lag-1 autocorrelation of the residuals, freed of its bias, and the
    degrees of freedom are those of so many fewer passes. Launches are averaged; the degrees of freedom of their mean
    are Welch's and Satterthwaite's, so that a launch of few passes is not trusted for the many of another.

    Args:
        launches: of each launch the logs of its passes; launches of under :data:`FEWEST` passes are passed over.
    """
    lines = [_line(np.asarray(passes, np.float64)) for passes in launches if len(passes) >= FEWEST]
    if not lines:
        return Estimate(0.0, math.inf, 0.0, 0, 0, paired=True)
    mean = math.fsum(line[0] for line in lines) / len(lines)
    whole = math.fsum(line[1] ** 2 for line in lines)
    error = math.sqrt(whole) / len(lines)
    apart = math.fsum(line[1] ** 4 / line[2] for line in lines)
    freedom = whole**2 / apart if apart else math.fsum(line[2] for line in lines)
    count = sum(map(len, launches))
    return Estimate(mean, error, freedom, count, count, paired=True)


def _line(y: np.ndarray) -> tuple[float, float, float]:
    """(rise over the whole, its standard error, degrees of freedom)."""
    n = len(y)
    k = np.arange(n) - (n - 1) / 2
    spread = float(k @ k)
    slope = float(k @ y) / spread
    left = y - y.mean() - slope * k
    total = float(left @ left)
    scale = max(1.0, float(np.abs(y).max()))
    if total <= (1e-12 * scale) ** 2 * n:  # rounding is no spread
        return slope * (n - 1), 0.0, n - 2.0
    r = float(left[1:] @ left[:-1]) / total
    if n > _LINE:  # residuals of a line: the mean of r is about rho - (2 + 4 rho) / n
        r = (n * r + 2) / (n - 4)
    r = min(max(r, 0.0), 0.99)
    fewer = max(1.0, n * (1 - r) / (1 + r) - 2)
    error = math.sqrt(total / (n - 2) / spread * (1 + r) / (1 - r))
    return slope * (n - 1), error * (n - 1), fewer


def _steps(passes: Sequence[float]) -> str:
    if len(passes) < LEAST:
        return ""
    values = list(passes)[-MOST:]
    steps = [
        f"{change.ratio:.2f} times from pass {len(passes) - len(values) + change.at + 1} on"
        for change in change_points(values)
    ]
    return f"; steps: {', '.join(steps)}" if steps else "; no step"

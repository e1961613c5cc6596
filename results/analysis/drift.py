"""Drift: how much slower a cell gets over the passes of a soak. Values are logs of times."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from omb_py.results.statistics.change_points import LEAST, MOST, change_points
from omb_py.results.statistics.t_test import Estimate

FEWEST = 3
_LINE = 4
"""Most passes whose residuals are too few to correct their autocorrelation for bias."""
CAUTION = 0.6
"""Standard errors that are added to the autocorrelation: a line of few passes shows it badly."""


def drift(launches: Sequence[Sequence[float]]) -> tuple[Estimate, str]:
    """Estimate the drift by :func:`rise`, and note the steps of the longest launch (``statistics.change_points``).

    Args:
        launches: logs of the passes of each launch.
    """
    longest = max(launches, key=len, default=())
    return rise(launches), _steps(longest) if len(longest) >= FEWEST else ""


def rise(launches: Sequence[Sequence[float]]) -> Estimate:
    """Estimate how much the passes rise from the first to the last, by a straight line through each launch.

    A line y = a + b·k through passes k = 0 … n - 1 rises by b·(n - 1). Passes are correlated, so the error is widened
    by sqrt((1 + r) / (1 - r)), where r is the lag-1 autocorrelation of the residuals, corrected for bias and made
    :data:`CAUTION` standard errors larger, and the degrees of freedom shrink as if there were that many fewer passes.
    Launches are averaged. The degrees of freedom of their mean are those of Welch and Satterthwaite, so that a launch
    of few passes does not borrow those of another.

    Args:
        launches: logs of the passes of each launch. Launches of fewer than :data:`FEWEST` passes are left out, and
            those of up to four where another has more: their residuals say nothing of the autocorrelation.
    """
    long = [passes for passes in launches if len(passes) > _LINE]
    lines = [_line(np.asarray(p, np.float64)) for p in long or launches if len(p) >= FEWEST]
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
    """Fit a line: (rise from first to last, its standard error, degrees of freedom)."""
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
    r = min(r + CAUTION * math.sqrt((1 - r * r) / n), 0.99)
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

"""The resolution of times, told from values that occur more than once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def rounding(logs: Sequence[float]) -> float:
    """Standard deviation that rounding gives to a value, in logs; 0 where no value occurs twice.

    Continuous times are never equal. Equal ones were rounded by a clock or in print, and the smallest step between
    different values is at least what they were rounded to: a value is uniform within a step, which has a standard
    deviation of step/√12.

    Args:
        logs: logs of all launches of a question.

    >>> round(rounding([0.0, 0.0, 0.05, 0.1]), 4)
    0.0144
    """
    distinct = np.unique(np.asarray(logs, dtype=float))
    if len(distinct) == len(logs) or len(distinct) < 2:
        return 0.0
    return float(np.diff(distinct).min()) / math.sqrt(12)

"""How often a drift that is exactly what is allowed is called more, or less, where 5 % are meant.

``python -m tests.bench.drift_errors`` prints the table of docs/statistics.md: seeded, the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.signal import lfilter

from omb_py.results.analysis.drift import rise
from omb_py.results.statistics.sequential import Rule, decide

CASES: tuple[tuple[tuple[int, ...], float], ...] = (
    ((5,), 0.0),
    ((10,), 0.0),
    ((10,), 0.5),
    ((10,), 0.8),
    ((30,), 0.0),
    ((30,), 0.5),
    ((30,), 0.8),
    ((100,), 0.8),
    ((3, 60), 0.0),
    ((4, 200), 0.0),
    ((10, 10, 10), 0.5),
)
"""Passes of each launch, and how each knows of the one before it (the coefficient of an AR(1) process)."""


def rates(launches: Sequence[int], correlation: float, reports: int, seed: int = 1) -> tuple[float, float]:
    """Shares of reports with FAIL and with PASS, of passes that do not drift, and none being allowed."""
    draw, words = np.random.default_rng(seed), []
    for _ in range(reports):
        passes = [lfilter([1], [1, -correlation], draw.normal(0, 0.02, n + 100))[100:].tolist() for n in launches]
        words.append(decide(rise(passes), 0.0, Rule(1, 1)).word)
    return words.count("FAIL") / reports, words.count("PASS") / reports


def main() -> None:
    print("| passes of each launch | correlation | FAIL | PASS |\n|---|---|---|---|")
    for launches, correlation in CASES:
        fail, good = rates(launches, correlation, 4000)
        print(f"| {', '.join(map(str, launches))} | {correlation:g} | {fail:.1%} | {good:.1%} |")


if __name__ == "__main__":
    main()

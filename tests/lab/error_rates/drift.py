"""How often a drift that is exactly what is allowed is called more, or less, where 5 % are meant.

``python -m tests.lab.error_rates.drift`` prints the table of evidence/accept.md: seeded, the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from omb_py.results.analysis.drift import rise
from omb_py.results.statistics.sequential import AcceptRule, decide

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
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
    ((30,), 0.3),
    ((30,), 0.9),
)
"""Passes of each launch, and how each knows of the one before it (the coefficient of an AR(1) process)."""


def normal(rng: np.random.Generator, passes: int) -> Floats:
    return rng.normal(0, 0.02, passes)


def heavy(rng: np.random.Generator, passes: int) -> Floats:
    return 0.02 * rng.standard_t(3, passes)


def bimodal(rng: np.random.Generator, passes: int) -> Floats:
    return normal(rng, passes) + math.log(2) * (rng.random(passes) < 0.1)


def in_steps(rng: np.random.Generator, passes: int) -> Floats:
    return np.round(normal(rng, passes) / 0.05) * 0.05


KINDS: Mapping[str, Draw] = {
    "normal": normal,
    "Student's t, 3 degrees of freedom": heavy,
    "10 % twice as slow": bimodal,
    "steps of 5 %": in_steps,
}


def rates(
    launches: Sequence[int], correlation: float, reports: int, seed: int = 1, kind: str = "normal"
) -> tuple[float, float]:
    """Shares of reports with FAIL and with PASS, of passes that do not drift, and none being allowed."""
    draw, words = np.random.default_rng(seed), []
    for _ in range(reports):
        passes = [lfilter([1], [1, -correlation], KINDS[kind](draw, n + 100))[100:].tolist() for n in launches]
        words.append(decide(rise(passes), 0.0, AcceptRule(1, 1)).word)
    return words.count("FAIL") / reports, words.count("PASS") / reports


def main() -> None:
    print("| passes | of each launch | correlation | FAIL | PASS |\n|---|---|---|---|---|")
    print("| promised | | | 5 % | 5 % |")
    cases = [("normal", *case) for case in CASES] + [(kind, (30,), 0.0) for kind in KINDS if kind != "normal"]
    for kind, launches, correlation in cases:
        fail, good = rates(launches, correlation, 4000, kind=kind)
        shares = f"{100 * fail:.1f} % | {100 * good:.1f} %"
        print(f"| {kind} | {', '.join(map(str, launches))} | {correlation:g} | {shares} |", flush=True)


if __name__ == "__main__":
    main()

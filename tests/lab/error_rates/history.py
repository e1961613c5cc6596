"""How often ``omb-py history`` finds a change where there is none, and where there is one: the table of evidence/history.md.

``python -m tests.lab.error_rates.history [--series N] [KIND…]`` prints the table. The series are drawn from fixed seeds,
so that the numbers are the same on every machine.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from omb_py.results.analysis.history import history
from omb_py.results.analysis.series import SIDE, Kind, Series, SeriesPoint

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator], Floats]
START = datetime(2026, 1, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Case:
    """Series of one kind: logs of launch times, shape (nights, launches of a night)."""

    name: str
    draw: Draw
    step: float = 0.0
    """Rise of the second half of the nights, relative."""
    promised: bool = True
    """False where the machine itself wanders or drifts: its changes are true ones."""


def independent(nights: int, spread: float = 0.02) -> Draw:
    """One launch a night, all independent."""
    return lambda rng: spread * rng.standard_normal((nights, 1))


def nightly(nights: int, launches: int, spread: float) -> Draw:
    """Nights that differ as much as the launches of one night."""

    def draw(rng: np.random.Generator) -> Floats:
        of_night = spread * rng.standard_normal((nights, 1))
        return np.asarray(of_night + spread * rng.standard_normal((nights, launches)))

    return draw


def mean_a_night(nights: int, launches: int, spread: float) -> Draw:
    """The same nights with one mean each."""
    of_launches = nightly(nights, launches, spread)
    return lambda rng: of_launches(rng).mean(axis=1, keepdims=True)


def bimodal(nights: int, launches: int) -> Draw:
    """Three launches in ten are 20 % slower, and three nights in ten 5 %."""

    def draw(rng: np.random.Generator) -> Floats:
        slow = np.where(rng.random((nights, launches)) < 0.3, math.log(1.2), 0.0)
        slow += np.where(rng.random((nights, 1)) < 0.3, math.log(1.05), 0.0)
        return np.asarray(slow + 0.01 * rng.standard_normal((nights, launches)))

    return draw


def autoregressive(nights: int, rho: float, spread: float = 0.02) -> Draw:
    """One launch a night, an AR(1) process."""

    def draw(rng: np.random.Generator) -> Floats:
        noise, x = rng.standard_normal(nights), np.empty(nights)
        x[0] = noise[0]
        for k in range(1, nights):
            x[k] = rho * x[k - 1] + math.sqrt(1 - rho * rho) * noise[k]
        return spread * x[:, None]

    return draw


def heavy(nights: int) -> Draw:
    """One launch a night, Student's t with 3 degrees of freedom."""
    return lambda rng: 0.02 * rng.standard_t(3, (nights, 1))


def drifting(nights: int, slope: float) -> Draw:
    """Each night takes a little longer than the one before."""
    return lambda rng: slope * np.arange(nights)[:, None] + 0.02 * rng.standard_normal((nights, 1))


def in_steps(nights: int, launches: int, tick: float = 0.05) -> Draw:
    """Times in steps of the clock: most launches of a night are equal."""
    of_launches = nightly(nights, launches, 0.02)
    return lambda rng: np.round(of_launches(rng) / tick) * tick


def unequal(nights: int, most: int) -> Draw:
    """One to so many launches a night; the others are NaN."""
    of_launches = nightly(nights, most, 0.02)

    def draw(rng: np.random.Generator) -> Floats:
        made = np.arange(most) < rng.integers(1, most + 1, (nights, 1))
        return np.where(made, of_launches(rng), np.nan)

    return draw


def spiked(draw_others: Draw, nights: int, factor: float = 5.0) -> Draw:
    """So many nights, chosen by chance, take `factor` times as long."""

    def draw(rng: np.random.Generator) -> Floats:
        logs = draw_others(rng)
        logs[rng.choice(len(logs), nights, replace=False)] += math.log(factor)
        return logs

    return draw


def rarely_slow(nights: int, share: float, factor: float) -> Draw:
    """One launch a night; this share of the nights takes `factor` times as long."""
    return lambda rng: 0.02 * rng.standard_normal((nights, 1)) + math.log(factor) * (rng.random((nights, 1)) < share)


CASES = (
    Case("30 nights, independent", independent(30)),
    Case("100 nights, independent", independent(100)),
    Case("20 nights of 5 launches, both 2 %", nightly(20, 5, 0.02)),
    Case("30 nights of 5 launches, both 5 %", nightly(30, 5, 0.05)),
    Case("30 nights of 5 launches, bimodal", bimodal(30, 5)),
    Case("30 nights, one mean each", mean_a_night(30, 5, 0.05)),
    Case("20 nights, AR(1) 0.3", autoregressive(20, 0.3)),
    Case("40 nights, AR(1) 0.3", autoregressive(40, 0.3)),
    Case("100 nights, AR(1) 0.3", autoregressive(100, 0.3)),
    Case("30 nights, Student's t, 3 degrees of freedom", heavy(30)),
    Case("20 nights, AR(1) 0.3, one night takes 5 times as long", spiked(autoregressive(20, 0.3), 1)),
    Case("30 nights, one in ten twice as slow", rarely_slow(30, 0.1, 2.0)),
    Case("30 nights of 1 to 9 launches, both 2 %", unequal(30, 9)),
    Case("30 nights of 5 launches, steps of 5 %", in_steps(30, 5)),
    Case("30 nights of 1 launch, steps of 5 %", in_steps(30, 1)),
    Case("40 nights, AR(1) 0.5", autoregressive(40, 0.5), promised=False),
    Case("40 nights, AR(1) 0.9", autoregressive(40, 0.9), promised=False),
    Case("30 nights, drift by 0.5 % a night", drifting(30, 0.005), promised=False),
    Case("20 nights of 5 launches, both 2 %", nightly(20, 5, 0.02), 0.05),
    Case("20 nights of 5 launches, both 2 %", nightly(20, 5, 0.02), 0.1),
    Case("20 nights of 5 launches, both 2 %, one night takes 5 times as long", spiked(nightly(20, 5, 0.02), 1), 0.1),
    Case("20 nights of 5 launches, both 2 %, two nights take 5 times as long", spiked(nightly(20, 5, 0.02), 2), 0.1),
    Case("40 nights, AR(1) 0.3", autoregressive(40, 0.3), 0.1),
    Case("30 nights of 5 launches, both 5 %", nightly(30, 5, 0.05), 0.2),
)


def series_of(logs: Floats, step: float = 0.0) -> Series:
    """A series of launches: a night begins each day at two, its launches five minutes apart, each a run of its own."""
    points = []
    for night, of_night in enumerate(logs):
        rise = math.log1p(step) if 2 * night >= len(logs) else 0.0
        for launch, value in enumerate(of_night[~np.isnan(of_night)]):
            run = f"r{night}-{launch}"
            started = START + timedelta(days=night, minutes=5 * launch)
            points.append(SeriesPoint(run, f"{run}-0", started.isoformat(), "5.0.9", "e", float(value) + rise))
    facts = {"benchmark": "allreduce", "backend": "mpi", "library": "Open MPI", "statistic": "median", SIDE: None}
    return Series(facts, tuple(points))


def rate(case: Case, count: int, unit: Kind | None = None) -> float:
    """Share of `count` series of a kind in which a change of any size is found."""
    changed = 0
    for seed in range(count):
        series = series_of(case.draw(np.random.default_rng([seed, 17])), case.step)
        changed += bool(history(series, lambda launch: {}, delta=0.0, unit=unit).steps)
    return changed / count


def main(words: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000, help="series of each kind")
    parser.add_argument("--only", default="", help="kinds whose name begins so")
    args = parser.parse_args(words)
    print("| series | change | found |\n|---|---|---|\n| promised | none | 1 % |")
    for case in CASES:
        if case.name.startswith(args.only):
            step = f"+{case.step:.0%}".replace("%", " %") if case.step else "none"
            print(f"| {case.name} | {step} | {100 * rate(case, args.series):.1f} % |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

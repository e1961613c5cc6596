"""How near ``-i auto`` stops to the median of the whole launch. The tables of evidence/auto_stop.md.

``python -m tests.lab.error_rates.auto [--series N]`` draws series (seeded, the same everywhere) as long as OMB's count
and replays each through the rule. ``--store STORE`` replays stored samples instead: measure them with
``omb-py latency -n 2 -m 8:64K:8 -i omb --launches 12``, and likewise allreduce and bcast.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from omb_py.engine.measuring.statistics import checkpoints, late_enough, settled

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
PRECISION = 0.01
COUNTS = (10_000, 1000)


def autoregressive(rho: float, spread: float = 0.05) -> Draw:
    """An AR(1) process in logs."""

    def draw(rng: np.random.Generator, n: int) -> Floats:
        noise = lfilter([1], [1, -rho], rng.standard_normal(n + 2000))[2000:]
        return np.asarray(np.exp(spread * math.sqrt(1 - rho * rho) * noise))

    return draw


def bimodal(slow: float, spread: float = 0.02) -> Draw:
    """A share of the calls takes 20 % longer."""
    return lambda rng, n: np.asarray(np.exp(spread * rng.standard_normal(n)) * np.where(rng.random(n) < slow, 1.2, 1.0))


def drifting(spread: float) -> Draw:
    """The last call takes 10 % longer than the first."""
    return lambda rng, n: np.asarray(np.exp(spread * rng.standard_normal(n) + np.linspace(0, math.log(1.1), n)))


def switching(dwell: float, spread: float = 0.02) -> Draw:
    """Two levels, 10 % apart, that follow each other after so many calls in the mean."""

    def draw(rng: np.random.Generator, n: int) -> Floats:
        level = np.cumsum(rng.random(n) < 1 / dwell) % 2
        return np.asarray(np.exp(spread * rng.standard_normal(n) + level * math.log(1.1)))

    return draw


def shifted(spread: float = 0.02) -> Draw:
    """One shift by 10 % at a moment of the launch that is as likely as any other."""

    def draw(rng: np.random.Generator, n: int) -> Floats:
        later = np.arange(n) >= rng.integers(0, n)
        return np.asarray(np.exp(spread * rng.standard_normal(n) + later * math.log(1.1)))

    return draw


def heavy(rng: np.random.Generator, n: int) -> Floats:
    """Student's t with 3 degrees of freedom, in logs."""
    return np.asarray(np.exp(0.02 * rng.standard_t(3, n)))


def in_steps(rng: np.random.Generator, n: int) -> Floats:
    """Times in steps of the clock, 5 % of the median."""
    return np.asarray(np.round(np.exp(0.05 * rng.standard_normal(n)) / 0.05) * 0.05)


CASES: Mapping[str, Draw] = {
    "independent, 5 %": autoregressive(0.0),
    "AR(1) 0.3, 5 %": autoregressive(0.3),
    "AR(1) 0.5, 5 %": autoregressive(0.5),
    "AR(1) 0.9, 5 %": autoregressive(0.9),
    "AR(1) 0.95, 5 %": autoregressive(0.95),
    "AR(1) 0.99, 5 %": autoregressive(0.99),
    "three calls of ten 20 % slower": bimodal(0.3),
    "45 calls of 100 20 % slower": bimodal(0.45),
    "drift by 10 %, noise 2 %": drifting(0.02),
    "drift by 10 %, noise 5 %": drifting(0.05),
    "Student's t, 3 degrees of freedom, 2 %": heavy,
    "steps of 5 %": in_steps,
    "two levels, 30 calls each": switching(30),
    "two levels, 300 calls each": switching(300),
    "one shift by 10 %, any moment": shifted(),
}

UNLIKE_BEFORE = ("two levels, 300 calls each", "one shift by 10 %, any moment")
"""Series whose later calls are unlike all that the rule has seen when it stops."""
NOT_PROMISED = " (not promised)"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the rule did with series of one kind."""

    series: int
    stopped: int
    right: int
    """Of those that stopped: within the precision of the median of the whole series."""
    used: float
    """Mean share of the samples that were taken."""

    def words(self) -> str:
        """Four cells of a table."""
        right = f"{100 * self.right / self.stopped:.0f} %" if self.stopped else "–"
        wrong = 100 * (self.stopped - self.right) / self.series
        return f"{100 * self.stopped / self.series:.1f} % | {right} | {wrong:.1f} % | {100 * self.used:.0f} %"


def stop(series: Floats, precision: float = PRECISION) -> int | None:
    """The number of samples at which the rule stops; None where it goes on to the end."""
    points = [n for n in checkpoints(series.size)[:-1] if late_enough(n, series.size)]
    return next((n for n in points if settled(series[:n], precision)), None)


def outcome(many: Iterable[Floats], precision: float = PRECISION) -> Outcome:
    """Replay series through the rule."""
    count = stopped = right = 0
    used = 0.0
    for series in many:
        count += 1
        n = stop(series, precision)
        used += (n or series.size) / series.size
        if n:
            stopped += 1
            right += abs(float(np.median(series[:n]) / np.median(series)) - 1) <= precision
    return Outcome(count, stopped, right, used / max(1, count))


def drawn(name: str, length: int, count: int) -> Iterable[Floats]:
    """Series of one kind."""
    return (CASES[name](np.random.default_rng([seed, length]), length) for seed in range(count))


def stored(store: str) -> Mapping[str, list[Floats]]:
    """The samples of each benchmark of a store."""
    import omb_py

    frame = omb_py.load(store, columns=["benchmark", "samples_us"])
    return {
        str(name): [np.asarray(samples, float) for samples in rows["samples_us"]]
        for name, rows in frame.groupby("benchmark")
    }


def main(words: list[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=400, help="series of each kind")
    parser.add_argument("--only", default="", help="kinds whose name begins so")
    parser.add_argument("--store", default="", help="replay the samples of this store")
    args = parser.parse_args(words)
    print(
        "| samples | count | stopped early | of them right | of all wrong | samples taken |\n|---|---|---|---|---|---|"
    )
    print("| promised | | | 90 % or more, where one in ten stops | 10 % or less | |")
    if args.store:
        for name, many in stored(args.store).items():
            counts = sorted({series.size for series in many}, reverse=True)
            shown = ", ".join(map(str, counts))
            print(f"| {name}, {len(many)} cells | {shown} | {outcome(many).words()} |")
        return 0
    for name in (name for name in CASES if name.startswith(args.only)):
        for length in COUNTS:
            shown = name + NOT_PROMISED * (name in UNLIKE_BEFORE)
            print(f"| {shown} | {length} | {outcome(drawn(name, length, args.series)).words()} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

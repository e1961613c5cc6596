"""A library with planted costs of its algorithms, and a whole tuning of it: search, then proof in fresh launches.

The time of candidate c at s bytes is alpha_c + beta_c·s. The lower envelope of these lines is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omb_py.orchestrate.compare.interleaving import CompareDesign as ProofDesign
from omb_py.orchestrate.compare.interleaving import conduct
from omb_py.orchestrate.tune.proof import rules_of
from omb_py.results.compare.judge import Answer, Launched
from omb_py.results.compare.match import Side
from omb_py.results.tune.elimination import SearchDesign, pairs_for
from omb_py.results.tune.search import Search
from omb_py.results.tune.segments import SizeRange, proved, segments
from tests.support.synthetic import Machine as EffectsOf

SIZES = tuple(1 << k for k in range(3, 23))
"""8 B to 4 MiB."""
FULL_LAUNCHES = 10
"""Launches of each candidate at each size in the full grid with which the cost is compared."""


@dataclass(frozen=True)
class Planted:
    """Algorithms with known costs. Candidate 0 is the default."""

    alphas: tuple[float, ...]
    """In µs."""
    betas: tuple[float, ...]
    """In µs a byte."""
    crossovers: tuple[float, ...] = ()
    """In bytes, where the fastest algorithm changes; none at which the default is as fast as the faster one."""
    spread: float = 0.02
    """Standard deviation of the log of a launch's median."""
    slow_share: float = 0.0
    """Share of the launches that take 1.5 times as long."""
    kind: str = "normal"
    """What launches are like, of those that :class:`tests.support.synthetic.Machine` makes."""

    def time(self, candidate: int, size: int) -> float:
        """The true time in µs."""
        return self.alphas[candidate] + self.betas[candidate] * size

    def best(self, size: int) -> float:
        """The smallest true time in µs."""
        return min(self.time(c, size) for c in range(len(self.alphas)))


def all_equal(candidates: int = 8, **noise: Any) -> Planted:
    """A library whose algorithms all cost the same."""
    return Planted((1.0,) * candidates, (0.001,) * candidates, **noise)


def planted(seed: int, candidates: int = 8, **noise: Any) -> Planted:
    """Draw a library: two to four algorithms are each the fastest somewhere, and the others at least 6 % slower.

    The default is one of the fastest somewhere, or 10 to 60 % slower everywhere.
    """
    rng = np.random.default_rng([seed, 20261123])
    count = int(rng.integers(2, 5))
    while True:
        places = np.sort(rng.uniform(4.5, 20.5, count - 1))
        if (np.diff(places) >= 3).all():
            break
    crossovers = tuple(float(x) for x in 2**places)
    alphas, betas = [1.0], [float(rng.uniform(0.5, 2.0)) / crossovers[0]]
    for x in crossovers:
        betas.append(betas[-1] * float(rng.uniform(0.2, 0.6)))
        alphas.append(alphas[-1] + (betas[-2] - betas[-1]) * x)
    lines = list(zip(alphas, betas, strict=True))
    default = lines.pop(int(rng.integers(len(lines)))) if rng.random() < 0.5 else None
    if default is None:
        factor = float(rng.uniform(1.1, 1.6))
        alpha, beta = lines[int(rng.integers(len(lines)))]
        default = (factor * alpha, factor * beta)
    while len(lines) < candidates - 1:
        alpha, beta = list(zip(alphas, betas, strict=True))[int(rng.integers(count))]
        factor = float(rng.uniform(1.06, 3.0))
        lines.append((factor * alpha, factor * beta))
    order = [0, *(1 + rng.permutation(len(lines)))]
    both = [default, *lines]
    return Planted(tuple(both[k][0] for k in order), tuple(both[k][1] for k in order), crossovers, **noise)


@dataclass
class Tuned:
    """The end of a tuning."""

    chosen: tuple[int, ...]
    """The candidate of each of :data:`SIZES`."""
    rules: list[SizeRange]
    share: float
    """Launches times sizes that were spent, of those of the full grid."""
    launches: int
    answers: dict[int, Answer] = field(default_factory=dict)


class Machine:
    """Makes launches of a planted library: half of a launch's effect is shared by its sizes."""

    def __init__(self, library: Planted, seed: int) -> None:
        self.library, self._rng = library, np.random.default_rng([seed, 7])
        self.launches = 0
        self._effects = EffectsOf(library.kind, len(SIZES), np.random.default_rng([seed, 8]), library.spread)

    def launch(self, candidate: int, sizes: Sequence[int]) -> dict[int, float]:
        """Size -> log of the median of one launch."""
        self.launches += 1
        library, rng = self.library, self._rng
        if library.kind != "normal":
            all_sizes = self._effects("BASE", range(len(SIZES)), 1, 0)
            places = {s: SIZES.index(s) for s in sizes}
            effects = {s: math.log((all_sizes[k].median_us or 0) / 10) for s, k in places.items() if k in all_sizes}
            return {s: math.log(library.time(candidate, s)) + effect for s, effect in effects.items()}
        shared = float(rng.standard_normal()) * library.spread * math.sqrt(0.5)
        if rng.random() < library.slow_share:
            shared += math.log(1.5)
        own = rng.standard_normal(len(sizes)) * library.spread * math.sqrt(0.5)
        return {s: math.log(library.time(candidate, s)) + shared + float(e) for s, e in zip(sizes, own, strict=True)}


def tune(library: Planted, seed: int, design: SearchDesign | None = None) -> Tuned:
    """Search, then prove in fresh launches, as ``omb-py tune`` does."""
    machine = Machine(library, seed)
    search = Search(SIZES, len(library.alphas), design or SearchDesign(seed=seed))
    while block := search.next_block():
        results: dict[int, dict[int, float]] = {}
        for wanted in block:
            times = machine.launch(wanted.candidate, [SIZES[p] for p in wanted.places])
            results[wanted.candidate] = {p: times[SIZES[p]] for p in wanted.places}
        search.add(results)
    found = segments(search.choices(), SIZES)
    answers, cells = _prove(machine, found, seed, pairs_for(search.gains()))
    rules = [] if any(a.verdict == "SLOWER" for a in answers.values()) else proved(found, answers, SIZES)
    full = len(library.alphas) * len(SIZES) * FULL_LAUNCHES
    chosen = tuple(next((r.candidate for r in rules if r.first_bytes <= s <= r.last_bytes), 0) for s in SIZES)
    return Tuned(chosen, rules, (search.spent + cells) / full, machine.launches, answers)


def _prove(machine: Machine, found: Sequence[SizeRange], seed: int, pairs: int) -> tuple[dict[int, Answer], int]:
    """Compare the default with the chosen settings; the answers by place, and the cells that were measured."""
    cells = [(place, one.candidate) for one in found for place in one.places]
    spent = 0

    def launch(side: Side, wanted: Sequence[int], number: int, pair: int) -> Mapping[int, Launched]:
        nonlocal spent
        spent += len(wanted)
        if side == "BASE":
            times = machine.launch(0, [SIZES[cells[k][0]] for k in wanted])
            return {k: _launched(times[SIZES[cells[k][0]]]) for k in wanted}
        # one launch with a file; its sizes use the settings that the file has for them
        effects = machine.launch(0, [SIZES[cells[k][0]] for k in wanted])
        library = machine.library
        return {
            k: _launched(effects[size] + math.log(library.time(cells[k][1], size) / library.time(0, size)))
            for k in wanted
            for size in (SIZES[cells[k][0]],)
        }

    if not cells:
        return {}, 0
    conducted = conduct([range(len(cells))], ProofDesign(rules_of(SearchDesign(), 1), pairs, seed), launch)
    return {cells[k][0]: judged.answers["median"] for k, judged in enumerate(conducted.judged)}, spent


def _launched(log: float) -> Launched:
    time = math.exp(log)
    return Launched(time, time)


def boundaries(chosen: Sequence[int]) -> list[float]:
    """Where the chosen candidate changes, in bytes: half way between two sizes, on a scale of logs."""
    return [math.sqrt(SIZES[k] * SIZES[k + 1]) for k in range(len(SIZES) - 1) if chosen[k] != chosen[k + 1]]


def boundaries_right(library: Planted, chosen: Sequence[int]) -> bool:
    """Whether each crossover has one boundary within one doubling, and there is no other."""
    found = boundaries(chosen)
    return len(found) == len(library.crossovers) and all(
        abs(math.log2(a / b)) <= 1 for a, b in zip(found, library.crossovers, strict=True)
    )


def worst_loss(library: Planted, chosen: Sequence[int]) -> float:
    """By how much the chosen candidate is slower than the fastest, at its worst size, as a share."""
    return max(library.time(c, s) / library.best(s) for c, s in zip(chosen, SIZES, strict=True)) - 1

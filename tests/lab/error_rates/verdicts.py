"""How often compare errs and what it finds, beside simpler rules on the same launches; seeded.

python -m tests.lab.error_rates.verdicts [--quick] [--only KIND] [--questions 3,20] [--pairs 10]

Each report is measured by the whole of a comparison in up to three rounds of 10 pairs, one question a cell. The simpler
rules see all pairs of all questions: three looks at a third of 1 % each, with Holm's correction. A row whose rate of
false reports is over 1 % beyond chance, or that finds fewer changes than the best other rule beyond chance, is marked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats
from scipy.signal import lfilter

from omb_py.orchestrate.compare.interleaving import CompareDesign, conduct, sides_of
from omb_py.results.compare.judge import CompareRules, Launched
from omb_py.results.compare.match import Side

Floats = NDArray[np.float64]
ALPHA, PAIRS, ROUNDS = 0.01, 10, 3
NIGHT, WARM_UP, HEAT = 5, 50, 0.01
REPORTS = {3: 600, 20: 240, 120: 60, 1000: 8}
"""Questions of a report -> reports of a row."""


@dataclass(frozen=True, slots=True)
class LaunchKind:
    """One kind of launches."""

    draw: Callable[[np.random.Generator, int, int, float], Floats]
    """(generator, launches, questions, spread) -> logs in the order of time."""
    new_spread: float = 1.0
    """By how much the launches of NEW spread more."""
    step: float = 0.0
    """Step to which times are rounded, of a time of 1."""


def _mixed(draw: Callable[[tuple[int, int]], Floats], launches: int, questions: int, shared: float = 0.5) -> Floats:
    """Effects of which a part of the variance is the whole launch's."""
    return np.sqrt(shared) * draw((launches, 1)) + np.sqrt(1 - shared) * draw((launches, questions))


def normal(rng: np.random.Generator, launches: int, questions: int, spread: float) -> Floats:
    return spread * _mixed(rng.standard_normal, launches, questions)


def shared(rng: np.random.Generator, launches: int, questions: int, spread: float) -> Floats:
    return spread * _mixed(rng.standard_normal, launches, questions, 0.95)


def skewed(rng: np.random.Generator, launches: int, questions: int, spread: float) -> Floats:
    return spread * _mixed(lambda shape: (np.exp(rng.standard_normal(shape)) - 1.65) / 2.16, launches, questions)


def heavy(rng: np.random.Generator, launches: int, questions: int, spread: float) -> Floats:
    return spread * _mixed(lambda shape: rng.standard_t(2, shape), launches, questions)


def modes(share: float, factor: float, whole: bool) -> Callable[[np.random.Generator, int, int, float], Floats]:
    """Launches, or cells of launches, of which a share takes `factor` times as long."""

    def draw(rng: np.random.Generator, launches: int, questions: int, spread: float) -> Floats:
        slow = rng.random((launches, 1 if whole else questions)) < share
        return normal(rng, launches, questions, spread) + np.log(factor) * slow

    return draw


def nightly(rng: np.random.Generator, launches: int, questions: int, spread: float) -> Floats:
    nights = normal(rng, -(-launches // NIGHT), questions, spread)
    return np.repeat(nights, NIGHT, axis=0)[:launches] + normal(rng, launches, questions, spread)


def correlated(rho: float) -> Callable[[np.random.Generator, int, int, float], Floats]:
    def draw(rng: np.random.Generator, launches: int, questions: int, spread: float) -> Floats:
        fresh = normal(rng, launches + WARM_UP, questions, spread * np.sqrt(1 - rho**2))
        logs: Floats = lfilter([1.0], [1.0, -rho], fresh, axis=0)[WARM_UP:]
        return logs

    return draw


def heating(rng: np.random.Generator, launches: int, questions: int, spread: float) -> Floats:
    return normal(rng, launches, questions, spread) + HEAT * np.arange(launches)[:, None]


KINDS = {
    "normal": LaunchKind(normal),
    "log-normal": LaunchKind(skewed),
    "Student's t, 2": LaunchKind(heavy),
    "1 launch in 2 twice as long": LaunchKind(modes(0.5, 2, True)),
    "1 cell in 2 twice as long": LaunchKind(modes(0.5, 2, False)),
    "1 launch in 10 twice as long": LaunchKind(modes(0.1, 2, True)),
    "1 cell in 10 twice as long": LaunchKind(modes(0.1, 2, False)),
    "nights": LaunchKind(nightly),
    "AR 0.3": LaunchKind(correlated(0.3)),
    "AR 0.7": LaunchKind(correlated(0.7)),
    "95 % shared": LaunchKind(shared),
    "heating 1 % a launch": LaunchKind(heating),
    "1 launch in 20 five times as long": LaunchKind(modes(0.05, 5, True)),
    "two decimals": LaunchKind(normal, step=0.05),
    "NEW spreads three times as much": LaunchKind(normal, new_spread=3.0),
}
SPREAD, CHANGE = 0.05, 1.10
SPREADS = ((0.02, 1.05), (0.05, 1.05), (0.05, 1.10), (0.2, 1.3))
"""Spread of launches and change, of normal launches."""


class SimulatedSides:
    """Launches of both sides, drawn before: pair k is in rows 2k and 2k + 1."""

    def __init__(
        self, kind: LaunchKind, questions: int, spread: float, change: float, seed: Sequence[int], pairs: int = PAIRS
    ) -> None:
        rng = np.random.default_rng(seed)
        self.seed = seed[-1]
        logs = kind.draw(rng, 2 * pairs * ROUNDS, questions, spread)
        self.sides: dict[Side, Floats] = {}
        new_first = np.array([sides_of(self.seed, pair)[0] == "NEW" for pair in range(pairs * ROUNDS)], dtype=int)
        self.sides["NEW"] = logs[np.arange(pairs * ROUNDS) * 2 + 1 - new_first]
        self.sides["BASE"] = logs[np.arange(pairs * ROUNDS) * 2 + new_first]
        self.changed = np.arange(questions) < (max(1, questions // 10) if change != 1 else 0)
        self.sides["NEW"] = kind.new_spread * self.sides["NEW"] + np.log(change) * self.changed
        if kind.step:
            self.sides = {
                s: np.log(np.maximum(1, np.round(np.exp(x) / kind.step)) * kind.step) for s, x in self.sides.items()
            }

    def __call__(self, side: Side, cells: Sequence[int], number: int, pair: int) -> dict[int, Launched]:
        times = np.exp(self.sides[side][pair])
        return {cell: Launched(None, float(times[cell])) for cell in cells}


def holm(p: Floats, alpha: float) -> NDArray[np.bool_]:
    order = np.argsort(p)
    passed = np.logical_and.accumulate(p[order] <= alpha / np.arange(len(p), 0, -1))
    found = np.zeros(len(p), dtype=bool)
    found[order[passed]] = True
    return found


def _paired_t(base: Floats, new: Floats) -> Floats:
    return np.asarray(stats.ttest_rel(new, base).pvalue)


def _welch(base: Floats, new: Floats) -> Floats:
    return np.asarray(stats.ttest_ind(new, base, equal_var=False).pvalue)


def _mann_whitney(base: Floats, new: Floats) -> Floats:
    n = len(base)
    ranks = stats.rankdata(np.concatenate([base, new]), axis=0)
    above = ranks[n:].sum(axis=0) - n * (n + 1) / 2
    z = (np.abs(above - n * n / 2) - 0.5) / np.sqrt(n * n * (2 * n + 1) / 12)
    return np.asarray(2 * special.ndtr(-np.maximum(z, 0)))


def _bootstrap(base: Floats, new: Floats) -> Floats:
    """A p that is 0 where the 99 % interval of the ratio of medians leaves 1 out, as tools do that correct nothing.

    Of launches drawn again only the ranks of the middle ones count, so one drawing of ranks serves all questions.
    """
    n = len(base)
    ranks = np.sort(np.random.default_rng(1).integers(0, n, (2, 300, n)), axis=2)[..., [(n - 1) // 2, n // 2]]
    middles = [np.sort(side, axis=0)[own].mean(axis=1) for side, own in zip((base, new), ranks, strict=True)]
    differences = middles[1] - middles[0]
    low, high = np.quantile(differences, [0.005, 0.995], axis=0)
    return np.where((low > 0) | (high < 0), 0.0, 1.0)


OTHERS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "paired t": _paired_t,
    "Welch": _welch,
    "Mann-Whitney": _mann_whitney,
    "bootstrap": _bootstrap,
}


@dataclass
class Tally:
    """Counts of one row: of compare, and of each other rule."""

    reports: int = 0
    changed: int = 0
    launches: int = 0
    false: dict[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)
    """Verdicts of unchanged cells."""

    def add(self, other: Tally) -> None:
        for name in ("reports", "changed", "launches"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("false", "found", "words"):
            mine = getattr(self, name)
            for key, count in getattr(other, name).items():
                mine[key] = mine.get(key, 0) + count


@dataclass(frozen=True)
class PowerRow:
    """One row of the tables."""

    name: str
    questions: int
    spread: float = SPREAD
    change: float = 1.0
    delta: float = 1e-9
    pairs: int = PAIRS
    """Pairs of a round."""

    def __str__(self) -> str:
        change = "" if self.change == 1 else f", {self.change - 1:+.0%}"
        return f"{self.name}, {self.spread:.0%}{change}"


def simulated(row: PowerRow, first: int, reports: int) -> Tally:
    """Measure and judge reports, by compare and by the other rules."""
    kind, tally = KINDS[row.name], Tally()
    rules = CompareRules(delta=row.delta, tail_delta=row.delta, rounds=ROUNDS)
    for seed in range(first, first + reports):
        sides = SimulatedSides(
            kind, row.questions, row.spread, row.change, [list(KINDS).index(row.name), seed], row.pairs
        )
        done = conduct([range(row.questions)], CompareDesign(rules, row.pairs, seed), sides)
        answers = [judged.answers["median"] for judged in done.judged]
        of_compare = np.array([{"SLOWER": 1, "FASTER": -1}.get(a.verdict, 0) for a in answers])
        looks = [row.pairs * k for k in range(1, ROUNDS + 1)]
        found = {"compare": of_compare}
        for name, p_of in OTHERS.items():
            shown = np.zeros(row.questions, dtype=int)
            for n in looks:
                base, new = (sides.sides[side][:n] for side in ("BASE", "NEW"))
                signs = np.sign((new - base).mean(axis=0)).astype(int)
                shown = np.where(shown == 0, signs * holm(p_of(base, new), ALPHA / ROUNDS), shown)
            found[name] = shown
        tally.reports += 1
        tally.changed += int(sides.changed.sum())
        tally.launches += len(done.order)
        for name, directions in found.items():
            wrong = bool(np.any(directions[~sides.changed])) or bool(np.any(directions[sides.changed] < 0))
            tally.false[name] = tally.false.get(name, 0) + wrong
            tally.found[name] = tally.found.get(name, 0) + int((directions[sides.changed] > 0).sum())
        for answer, changed in zip(answers, sides.changed, strict=True):
            if not changed:
                tally.words[answer.verdict] = tally.words.get(answer.verdict, 0) + 1
    return tally


def interval(events: int, trials: int) -> tuple[float, float]:
    """95 % interval of a rate, by Clopper and Pearson."""
    low = float(special.betaincinv(events, trials - events + 1, 0.025)) if events else 0.0
    return low, float(special.betaincinv(events + 1, trials - events, 0.975)) if events < trials else 1.0


def rows_of(questions: Sequence[int], kinds: Sequence[str]) -> list[PowerRow]:
    rows = [PowerRow(name, q) for name in kinds for q in questions]
    changes = [(name, SPREAD, CHANGE) for name in kinds if name != "normal"]
    changes += [("normal", spread, change) for spread, change in SPREADS if "normal" in kinds]
    return rows + [PowerRow(*one[:1], q, *one[1:], delta=0.03) for one in changes for q in questions]


def text_of(row: PowerRow, tally: Tally) -> str:
    """One row of the table."""
    cells = [f"| {row} | {row.questions}"]
    for name in ("compare", *OTHERS):
        if row.change == 1:
            low, high = interval(tally.false[name], tally.reports)
            shown = f"{100 * tally.false[name] / tally.reports:.1f} ({100 * low:.1f}–{100 * high:.1f})"
            cells.append(shown + (" **!**" if name == "compare" and low > ALPHA else ""))
            continue
        shown = f"{100 * tally.found[name] / tally.changed:.0f}"
        if name == "compare":
            best = max(tally.found[other] for other in OTHERS if other != "bootstrap")
            low, high = interval(tally.found[name], tally.changed)
            shown += f" ({100 * low:.0f}–{100 * high:.0f})" + (
                " **<**" if 100 * high < 100 * best / tally.changed else ""
            )
        cells.append(shown)
    n = sum(tally.words.values())
    cells.append(f"{100 * tally.words.get('SAME', 0) / n:.0f}")
    cells.append(f"{tally.launches / tally.reports:.0f}")
    return " | ".join(cells) + " |"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="share of the reports to simulate")
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    parser.add_argument("--questions", default="3,20,120,1000")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="pairs of a round")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="number of the first report")
    parser.add_argument("--power", action="store_true", help="changed launches only")
    parser.add_argument("--errors", action="store_true", help="unchanged launches only")
    given = parser.parse_args(words)
    kinds = [name for name in KINDS if given.only in name]
    rows = rows_of([int(q) for q in given.questions.split(",")], kinds)
    rows = [replace(row, pairs=given.pairs) for row in rows]
    rows = [r for r in rows if not (given.power and r.change == 1) and not (given.errors and r.change != 1)]
    print(f"| launches, change | questions | compare | {' | '.join(OTHERS)} | SAME of unchanged | launches |")
    print("|---|--:|" + "--:|" * (len(OTHERS) + 3), flush=True)
    bad = 0
    total: dict[tuple[bool, int], Tally] = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        pending = []
        for row in rows:
            count = max(2, round(given.share * REPORTS[row.questions] / (1 if row.change == 1 else 3)))
            size = -(-count // given.jobs)
            starts = range(0, count, size)
            jobs = [pool.submit(simulated, row, given.seed + k, min(size, count - k)) for k in starts]
            pending.append((row, jobs))
        for row, jobs in pending:
            tally = Tally()
            for job in jobs:
                tally.add(job.result())
            text = text_of(row, tally)
            bad += "**!**" in text
            print(text, flush=True)
            total.setdefault((row.change == 1, row.questions), Tally()).add(tally)
    for (same, questions), tally in total.items():
        name = "all kinds, unchanged" if same else "all kinds, changed"
        row = PowerRow("normal", questions, change=1.0 if same else CHANGE)
        print(text_of(row, tally).replace(str(row), name, 1), flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Verdicts on self-consistent performance guidelines. Pure.

Each launch measures both sides of a guideline, one after the other, and gives the log ratio of their medians. A
guideline is violated where the median of these logs is beyond log(1 + delta), and holds where it is under it: by the
number of launches beyond, and by one-sided tests of a guarded mean with Holm's correction. The first of several
rounds only selects what must be measured again; every later one decides by launches of its own (docs/statistics.md,
Guidelines).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from omb_py.results.compare.tags import GUIDELINE_ROUND
from omb_py.results.statistics import guarded_mean
from omb_py.results.statistics.dependence import pooled_correlation
from omb_py.results.statistics.holm import holm
from omb_py.results.statistics.order_statistics import INDEPENDENT, count_tail, fewest_launches, median
from omb_py.results.statistics.t_test import ratio_of
from omb_py.results.store.row import Row

Verdict = Literal["VIOLATED", "HOLDS", "UNCLEAR", "WRONG"]
WORDS: tuple[Verdict, ...] = ("WRONG", "VIOLATED", "UNCLEAR", "HOLDS")
"""Worst first. WRONG: a side left wrong bytes, so its time says nothing."""
FAMILY = "guideline"
"""Family of the rows of guidelines (:attr:`omb_py.engine.program.benchmark.Benchmark.family`)."""
SIDES = ("left", "right")
_CAUTION = 2.0
"""Standard errors that are added to the correlation of launches, since a report of one cell shows it badly."""
_SHOWN = 0.90
"""Confidence level of the interval of the ratio that is shown."""
MOST_ROUNDS = 5
Round = tuple[int, int]
"""(number of the round from 1, number of declared rounds)."""


@dataclass(frozen=True, slots=True)
class GuidelineRules:
    """The rules that verdicts follow. They are declared before anything is measured."""

    alpha: float = 0.01
    """Chance of any false VIOLATED in a report, and the same chance of any false HOLDS."""
    delta: float = 0.10
    """Part by which the left side may take longer; smaller differences do not matter."""
    rounds: int = 3
    """Most rounds; with 1, all launches decide at once."""


@dataclass(frozen=True, slots=True)
class GuidelinePair:
    """The times of both sides of one guideline at one size."""

    name: str
    text: str
    size_bytes: int
    left_us: tuple[float, ...]
    """Medians of the left side, one a launch."""
    right_us: tuple[float, ...]
    """Medians of the right side in the same launches."""
    limited: bool = False
    """True if most rows are ``sync_limited``: a median is under three times the skew of the barrier."""
    wrong: bool = False
    """True if a side left wrong bytes."""
    row: Row = field(default_factory=Row, compare=False)
    """One of its rows, for the columns that they share."""


@dataclass(frozen=True, slots=True)
class JudgedGuideline:
    """The verdict on one guideline at one size."""

    pair: GuidelinePair
    verdict: Verdict
    left_us: float
    """Geometric mean of the left side over the launches."""
    right_us: float
    """Geometric mean of the right side over the launches."""
    ratio: float
    """Left over right, the median over the launches."""
    low: float
    """Lower end of the 90 % interval of the ratio; 0 where it is unknown."""
    high: float
    """Upper end of it; infinite where it is unknown."""
    p: float
    """One-sided p-value of "the ratio is at most 1 + delta", of this cell alone: the larger of count and mean."""
    adjusted: float
    """p-value adjusted by Holm over the cells of the round."""
    launches: int
    beyond: int = 0
    """How many of them have a ratio beyond 1 + delta."""
    round: int = 1
    correlation: float = 0.0
    """What that of a launch with the one before may be, by all cells of the round; above 0.5 it takes more launches."""

    @property
    def lost_us(self) -> float:
        """Time in µs that a call takes longer than its mock-up; 0 where it is no slower."""
        return max(0.0, self.left_us - self.right_us)


def pairs_of(rows: Iterable[Row]) -> list[GuidelinePair]:
    """Make the pairs of stored rows, in the order in which they first come.

    A launch counts if it has both sides. Rows of other families are skipped. Libraries, rank counts and bindings are
    kept apart.
    """
    cells: dict[tuple[object, ...], dict[str, dict[str, Row]]] = {}
    for row in rows:
        side = (row.get("parameters") or {}).get("side")
        if row.get("family") == FAMILY and side in SIDES:
            key = tuple(row.get(n) for n in _APART)
            cells.setdefault(key, {}).setdefault(str(row["launch_id"]), {})[side] = row
    pairs = []
    for launches in cells.values():
        both = [sides for sides in launches.values() if len(sides) == len(SIDES)]
        if not both:
            continue
        every = [row for sides in both for row in sides.values()]
        left, right = (tuple(float(sides[s]["median_us"]) for sides in both) for s in SIDES)
        first = both[0]["left"]
        name, text = str(first["benchmark"]), str(first["parameters"].get("guideline", first["benchmark"]))
        limited = sum(bool(row.get("sync_limited")) for row in every) * 2 > len(every)
        wrong = any(row.get("validated") is False for row in every)
        pairs.append(GuidelinePair(name, text, int(first["size_bytes"]), left, right, limited, wrong, first))
    return pairs


_APART = ("backend", "library", "library_version", "binding", "device", "ranks", "nodes", "benchmark", "size_bytes")


def spent(alpha: float, place: Round) -> tuple[float, float]:
    """Compute the parts of `alpha` that a round may spend on VIOLATED and on HOLDS.

    The first of several rounds names no violation.

    >>> spent(0.01, (1, 1)), spent(0.01, (1, 3)), spent(0.01, (2, 3))
    ((0.01, 0.01), (0.0, 0.0033333333333333335), (0.005, 0.0033333333333333335))
    """
    number, rounds = (min(part, MOST_ROUNDS) for part in place)
    fresh = alpha if rounds == 1 else alpha / (rounds - 1) if number > 1 else 0.0
    return fresh, alpha / rounds


def batches(number: int) -> int:
    """Launches of round `number`, in multiples of the first round: 1, 1, 2, 4, 8."""
    return 1 << max(0, number - 2)


def can_decide(number: int, launches: int, cells: int, rules: GuidelineRules) -> bool:
    """Whether round `number`, or a later one, has launches enough for a verdict on any of so many cells.

    Args:
        number: of a round from 1.
        launches: of the first round.
        cells: all that round `number` would measure.

    >>> can_decide(2, 6, 78, GuidelineRules()), can_decide(2, 7, 78, GuidelineRules())
    (False, True)
    """
    return any(
        launches * batches(later) >= fewest_launches(max(spent(rules.alpha, (later, rules.rounds))) / cells)
        for later in range(number, rules.rounds + 1)
    )


def by_round(rows: Iterable[Row]) -> dict[Round, list[GuidelinePair]]:
    """Make the pairs of stored rows (:func:`pairs_of`), by the round in which they were measured."""
    by_place: dict[Round, list[Row]] = {}
    for row in rows:
        number, _, rounds = dict(row.get("tags") or {}).get(GUIDELINE_ROUND, "1/1").partition("/")
        by_place.setdefault((int(number), int(rounds)), []).append(row)
    return {place: pairs for place in sorted(by_place) if (pairs := pairs_of(by_place[place]))}


def decide(rounds: Mapping[Round, Sequence[GuidelinePair]], rules: GuidelineRules) -> list[JudgedGuideline]:
    """Judge every cell by the last round that measured it, and by the launches of that round alone."""
    verdicts: dict[tuple[object, ...], JudgedGuideline] = {}
    for place in sorted(rounds):
        cells = {_cell(pair): pair for pair in rounds[place]}
        verdicts |= dict(zip(cells, judge(list(cells.values()), rules, place), strict=True))
    return list(verdicts.values())


def _cell(pair: GuidelinePair) -> tuple[object, ...]:
    return pair.name, pair.size_bytes, *(pair.row.get(name) for name in _APART)


def judge(pairs: Sequence[GuidelinePair], rules: GuidelineRules, place: Round = (1, 1)) -> list[JudgedGuideline]:
    """Judge the pairs of one round, in the order of `pairs`, each with at least one launch.

    A verdict needs both: so few launches on the other side of the limit that the median is on this one, and a mean that
    is there, too. The larger of the two p-values is corrected for the number of cells by Holm: the count is right for
    launches of any distribution, and so is the family of cells. Few launches have no verdict: it is UNCLEAR. Pairs with
    wrong bytes are in no family. Where launches resemble the one before by more than 0.5, over all cells of the round,
    the mean is less sure.
    """
    limit = math.log1p(rules.delta)
    logs = [[math.log(b / a) for a, b in zip(pair.right_us, pair.left_us, strict=True)] for pair in pairs]
    beyond = [sum(value > limit for value in values) for values in logs]
    correlation = pooled_correlation(logs, _CAUTION)
    means = [guarded_mean.distance(values, limit, correlation) for values in logs]
    ps = [_p(mean.p_beyond, v, len(v) - over) for mean, v, over in zip(means, logs, beyond, strict=True)]
    kept_ps = [_p(mean.p_within, v, over) for mean, v, over in zip(means, logs, beyond, strict=True)]
    right = [k for k, pair in enumerate(pairs) if not pair.wrong]
    adjusted = dict(zip(right, holm([ps[k] for k in right]), strict=True))
    kept = dict(zip(right, holm([kept_ps[k] for k in right]), strict=True))
    violated, holds = spent(rules.alpha, place)
    verdicts = []
    for k, (pair, values) in enumerate(zip(pairs, logs, strict=True)):
        verdict: Verdict = "UNCLEAR"
        if pair.wrong:
            verdict = "WRONG"
        elif violated and adjusted[k] <= violated:
            verdict = "VIOLATED"
        elif kept[k] <= holds:
            verdict = "HOLDS"
        sides, p = (_mean(pair.left_us), _mean(pair.right_us)), (ps[k], adjusted.get(k, 1.0))
        ratio, low, high = _median_interval(values)
        of_cell = (verdict, *sides, ratio, low, high, *p, len(values), beyond[k])
        verdicts.append(JudgedGuideline(pair, *of_cell, place[0], correlation))
    return verdicts


def _p(of_mean: float, values: Sequence[float], other_side: int) -> float:
    """The larger p-value of mean and count. Launches that are all alike have no spread: there the count is alone."""
    return max(of_mean, count_tail(len(values), other_side, INDEPENDENT))


def fewest(alpha: float, rounds: int, cells: int) -> int:
    """Compute the fewest launches of a round that can show that all of so many guidelines hold.

    >>> fewest(0.01, 3, 1), fewest(0.01, 3, 195), fewest(0.01, 1, 1)
    (9, 16, 7)
    """
    return fewest_launches(spent(alpha, (1, rounds))[1] / cells, INDEPENDENT)


def _median_interval(logs: Sequence[float]) -> tuple[float, float, float]:
    """Ratio whose log is the median, and its interval between two launches; (0, inf) where there are too few."""
    ordered, n = sorted(logs), len(logs)
    count = 0
    while count < n and count_tail(n, count, INDEPENDENT) <= (1 - _SHOWN) / 2:
        count += 1
    low, high = (ratio_of(ordered[count - 1]), ratio_of(ordered[n - count])) if count else (0.0, math.inf)
    return ratio_of(median(logs)), low, high


def _mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))

"""Verdicts on self-consistent performance guidelines. Pure; derived in docs/guidelines.md.

Both sides of a guideline are measured in each launch, one after the other; the log ratio of their medians is what the
launch says.  A guideline is violated where the mean of these logs is beyond log(1 + delta), and holds where it is under
it, by one-sided t tests with Holm's correction.  Of several rounds the first only finds what must be measured again,
and every later one decides by launches of its own (docs/statistics.md, Guidelines).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from omb_py.results.statistics.multiple_testing import holm
from omb_py.results.statistics.sequential import GUIDELINE, evenly, last_answers, p_above, p_below
from omb_py.results.statistics.t_test import paired

Row = Mapping[str, Any]
Verdict = Literal["VIOLATED", "HOLDS", "UNCLEAR", "WRONG"]
WORDS: tuple[Verdict, ...] = ("WRONG", "VIOLATED", "UNCLEAR", "HOLDS")
"""Worst first. WRONG: a side left wrong bytes, so its time says nothing."""
FAMILY = "guideline"
"""Of the rows (:attr:`omb_py.engine.program.benchmark.Benchmark.family`)."""
SIDES = ("left", "right")
_SHOWN = 0.90
"""Interval of the ratio that is shown."""
ROUND_TAG = "guideline_look"
"""Of a row: ``2/3``, the second of three rounds."""
Round = tuple[int, int]
"""Its number from 1, and how many were declared."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Declared before anything is measured."""

    alpha: float = 0.01
    """Chance of any false VIOLATED in a report, and as much of any false HOLDS."""
    delta: float = 0.10
    """The left side may take longer by this part: smaller differences cost nobody anything."""
    rounds: int = 3
    """At most so many; 1: all launches decide at once."""


@dataclass(frozen=True, slots=True)
class Pair:
    """What was measured of one guideline at one size."""

    name: str
    """Of the benchmark."""
    text: str
    size_bytes: int
    left_us: tuple[float, ...]
    """Medians of the launches."""
    right_us: tuple[float, ...]
    """The same launches."""
    limited: bool = False
    """A side's median is under three times the skew of the barrier."""
    wrong: bool = False
    """A side left wrong bytes."""
    row: Row = field(default_factory=dict, compare=False)
    """One of its rows, for what they share."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one guideline at one size."""

    pair: Pair
    verdict: Verdict
    left_us: float
    """Geometric mean over the launches."""
    right_us: float
    ratio: float
    """Left over right."""
    low: float
    """Interval of the ratio, 90 %."""
    high: float
    p: float
    """One-sided, of "the ratio is at most 1 + delta", alone."""
    adjusted: float
    """By Holm over the report."""
    launches: int
    """Of the round that decides."""
    round: int = 1

    @property
    def lost_us(self) -> float:
        """What a call costs more than its mock-up; 0 where it is no slower."""
        return max(0.0, self.left_us - self.right_us)


def pairs_of(rows: Iterable[Row]) -> list[Pair]:
    """The pairs of stored rows, in the order in which they first come; a launch counts that has both sides.

    Rows of other families are passed over; those of several libraries, rank counts or bindings are kept apart.
    """
    cells: dict[tuple[Any, ...], dict[str, dict[str, Row]]] = {}
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
        pairs.append(Pair(name, text, int(first["size_bytes"]), left, right, limited, wrong, first))
    return pairs


_APART = ("backend", "library", "library_version", "binding", "device", "ranks", "nodes", "benchmark", "size_bytes")


def spent(alpha: float, place: Round) -> tuple[float, float]:
    """What a round may spend of `alpha`, on VIOLATED and on HOLDS; the first of several rounds names no violation.

    >>> spent(0.01, (1, 1)), spent(0.01, (1, 3)), spent(0.01, (2, 3))
    ((0.01, 0.01), (0.0, 0.0033333333333333335), (0.005, 0.0033333333333333335))
    """
    number, rounds = (min(part, GUIDELINE.most_rounds) for part in place)
    last = min(number, rounds) - 1
    return GUIDELINE.spending(alpha, rounds)[last], evenly(alpha, rounds)[last]


def by_round(rows: Iterable[Row]) -> dict[Round, list[Pair]]:
    """The pairs of stored rows (:func:`pairs_of`), by the round that they were measured in."""
    by_place: dict[Round, list[Row]] = {}
    for row in rows:
        number, _, rounds = dict(row.get("tags") or {}).get(ROUND_TAG, "1/1").partition("/")
        by_place.setdefault((int(number), int(rounds)), []).append(row)
    return {place: pairs for place in sorted(by_place) if (pairs := pairs_of(by_place[place]))}


def decide(rounds: Mapping[Round, Sequence[Pair]], rules: Rules) -> list[Judged]:
    """Verdicts: of each cell that of the last round that measured it, by the launches of that round alone."""
    measured = ((place, {_cell(pair): pair for pair in rounds[place]}) for place in sorted(rounds))
    verdicts = last_answers(
        measured, lambda place, pairs: dict(zip(pairs, judge(list(pairs.values()), rules, place), strict=True))
    )
    return list(verdicts.values())


def _cell(pair: Pair) -> tuple[Any, ...]:
    return pair.name, pair.size_bytes, *(pair.row.get(name) for name in _APART)


def judge(pairs: Sequence[Pair], rules: Rules, place: Round = (1, 1)) -> list[Judged]:
    """Verdicts of one round, in the order of `pairs`, each with at least one launch.

    One launch says nothing of the next: its ratio is shown, and its verdict is UNCLEAR. What left wrong bytes is no
    part of the families.
    """
    estimates = [paired(*([math.log(us) for us in side] for side in (pair.right_us, pair.left_us))) for pair in pairs]
    limit = math.log1p(rules.delta)
    ps = [p_above(estimate, limit) for estimate in estimates]
    right = [k for k, pair in enumerate(pairs) if not pair.wrong]
    adjusted = dict(zip(right, holm([ps[k] for k in right]), strict=True))
    kept = dict(zip(right, holm([p_below(estimates[k], limit) for k in right]), strict=True))
    violated, holds = spent(rules.alpha, place)
    verdicts = []
    for k, (pair, estimate) in enumerate(zip(pairs, estimates, strict=True)):
        low, high = estimate.interval(_SHOWN)
        verdict: Verdict = "UNCLEAR"
        if pair.wrong:
            verdict = "WRONG"
        elif violated and adjusted[k] <= violated:
            verdict = "VIOLATED"
        elif kept[k] <= holds:
            verdict = "HOLDS"
        means = _mean(pair.left_us), _mean(pair.right_us)
        holm_p, launches = adjusted.get(k, 1.0), len(pair.left_us)
        verdicts.append(Judged(pair, verdict, *means, estimate.ratio, low, high, ps[k], holm_p, launches, place[0]))
    return verdicts


def _mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))

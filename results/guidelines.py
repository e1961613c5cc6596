"""Verdicts on self-consistent performance guidelines. Pure; derived in docs/guidelines.md.

Both sides of a guideline are measured in each launch, one after the other; the log ratio of their medians is what the
launch says.  A guideline is violated where the mean of these logs is beyond log(1 + delta), by a one-sided t test,
with Holm's correction over all cells of a report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from scipy import special

from omb_py.results.family import holm
from omb_py.results.ttest import Estimate, paired

Row = Mapping[str, Any]
Verdict = Literal["VIOLATED", "HOLDS", "UNCLEAR", "WRONG"]
WORDS: tuple[Verdict, ...] = ("WRONG", "VIOLATED", "UNCLEAR", "HOLDS")
"""Worst first. WRONG: a side left wrong bytes, so its time says nothing."""
FAMILY = "guideline"
"""Of the rows (:attr:`omb_py.engine.benchmark.Benchmark.family`)."""
_SIDES = ("left", "right")
_HOLDS = 0.90
"""HOLDS: the upper end of this interval, a one-sided bound of 95 %, is within the tolerance."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Declared before anything is measured."""

    alpha: float = 0.01
    """Chance of any false VIOLATED in a report."""
    delta: float = 0.10
    """The left side may take longer by this part: smaller differences cost nobody anything."""


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

    @property
    def lost_us(self) -> float:
        """What a call costs more than its mock-up; 0 where it is no slower."""
        return max(0.0, self.left_us - self.right_us)


def pairs_of(rows: Iterable[Row]) -> list[Pair]:
    """The pairs of stored rows, in the order in which they first come; a launch counts that has both sides.

    Rows of other families are passed over; those of several libraries, rank counts or bindings are kept apart.
    """
    found: dict[tuple[Any, ...], dict[str, dict[str, Row]]] = {}
    for row in rows:
        side = (row.get("parameters") or {}).get("side")
        if row.get("family") == FAMILY and side in _SIDES:
            key = tuple(row.get(n) for n in _APART)
            found.setdefault(key, {}).setdefault(str(row["launch_id"]), {})[side] = row
    made = []
    for launches in found.values():
        both = [sides for sides in launches.values() if len(sides) == len(_SIDES)]
        if not both:
            continue
        every = [row for sides in both for row in sides.values()]
        left, right = (tuple(float(sides[s]["median_us"]) for sides in both) for s in _SIDES)
        first = both[0]["left"]
        name, text = str(first["benchmark"]), str(first["parameters"].get("guideline", first["benchmark"]))
        limited = sum(bool(row.get("sync_limited")) for row in every) * 2 > len(every)
        wrong = any(row.get("validated") is False for row in every)
        made.append(Pair(name, text, int(first["size_bytes"]), left, right, limited, wrong, first))
    return made


_APART = ("backend", "library", "library_version", "binding", "device", "ranks", "nodes", "benchmark", "size_bytes")


def judge(pairs: Sequence[Pair], rules: Rules) -> list[Judged]:
    """Verdicts in the order of `pairs`, each with at least one launch.

    One launch says nothing of the next: its ratio is shown, and its verdict is UNCLEAR. What left wrong bytes is no
    part of the family.
    """
    estimates = [paired(*([math.log(us) for us in side] for side in (pair.right_us, pair.left_us))) for pair in pairs]
    ps = [beyond(estimate, rules.delta) for estimate in estimates]
    counted = [k for k, pair in enumerate(pairs) if not pair.wrong]
    adjusted = dict(zip(counted, holm([ps[k] for k in counted]), strict=True))
    made = []
    for k, (pair, estimate) in enumerate(zip(pairs, estimates, strict=True)):
        low, high = estimate.interval(_HOLDS)
        verdict: Verdict = "UNCLEAR"
        if pair.wrong:
            verdict = "WRONG"
        elif adjusted[k] <= rules.alpha:
            verdict = "VIOLATED"
        elif high < 1 + rules.delta:
            verdict = "HOLDS"
        means = _mean(pair.left_us), _mean(pair.right_us)
        holm_p, launches = adjusted.get(k, 1.0), len(pair.left_us)
        made.append(Judged(pair, verdict, *means, estimate.ratio, low, high, ps[k], holm_p, launches))
    return made


def beyond(estimate: Estimate, delta: float) -> float:
    """One-sided p-value of "the ratio is at most 1 + delta". 1 where nothing is known of the spread."""
    if estimate.freedom <= 0:
        return 1.0
    over = estimate.difference - math.log1p(delta)
    if estimate.error == 0:
        return 0.0 if over > 0 else 1.0
    return float(special.stdtr(estimate.freedom, -over / estimate.error))


def _mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))

"""A side that is slower at one number of ranks or GPUs than its own scaling suggests, without a reference of its own.

Between three numbers next to each other the log of the time bends: by what the network and the algorithm do, which
other libraries on the same ranks show as well, and by a fault at one of the numbers, which they do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.view import plural
from omb_py.dashboards.changes.regions import LOG
from omb_py.dashboards.changes.sides import StoredSide

LEAST_LAUNCHES = 3
"""Fewest launches of a side at a number: with fewer, one odd launch would be a fault of the number."""
LEAST_CELLS = 8
SHARE = 0.8
"""Share of the cells that must bend by :data:`LEAST_BEND` or more: a switch of algorithm bends only some sizes."""
LEAST_BEND, LEAST_RATIO = 1.04, 1.07


Bends = Mapping[tuple[int, int], "pd.Series[Any]"]


@dataclass(frozen=True)
class OddCount:
    """A side at one number of ranks or GPUs."""

    side: StoredSide
    count: int
    ratio: float
    benchmarks: int

    def sentence(self, counted: str) -> str:
        """``MVAPICH-Plus 4.1 is 1.15× slower at 64 GPUs than its own scaling suggests, in 4 benchmarks``."""
        return (
            f"{self.side.name} is {theme.amount(self.ratio)}× slower at {self.count} {counted} than its scaling "
            f"suggests, in {plural(self.benchmarks, 'benchmark')}: no other library slows down there"
        )


def odd_counts(frame: pd.DataFrame, sides: Sequence[StoredSide]) -> list[OddCount]:
    """The sides that are slower at one count than at the others, against the other sides on the same kind of device.

    Args:
        frame: rows with :data:`omb_py.dashboards.changes.regions.LOG`.
        sides: those that are held against each other.
    """
    every: list[OddCount] = []
    for device in dict.fromkeys(side.values.get("device") for side in sides):
        own = [side for side in sides if side.values.get("device") == device]
        found: list[OddCount] = []
        bends = {at: _bends(side.rows(frame)) for at, side in enumerate(own)}
        for at, side in enumerate(own):
            others = [bends[other] for other in bends if other != at and own[other].library != side.library]
            if others:
                found += _odd(side, bends[at], others)
        # of two that are held against each other the other one seems to bend too: the farthest is the one that does
        worst = max(found, key=lambda odd: odd.ratio, default=None)
        every += [odd for odd in found if worst is not None and odd.side is worst.side]
    return every


def _bends(rows: pd.DataFrame) -> dict[tuple[int, int], pd.Series[Any]]:
    """(middle, last) of three counts next to each other -> how far the log of each cell bends there."""
    rows = rows[rows["size_bytes"].fillna(0) > 0]
    launches = rows.groupby("ranks", observed=True)["launch_id"].nunique()
    counts = sorted(int(count) for count in launches[launches >= LEAST_LAUNCHES].index)
    if len(counts) < 3:
        return {}
    rows = rows.assign(benchmark=rows["benchmark"].astype(str))
    cells = rows.pivot_table(index=["benchmark", "size_bytes"], columns="ranks", values=LOG, aggfunc="median")[counts]
    bent: dict[tuple[int, int], pd.Series[Any]] = {}
    for first, middle, last in zip(counts, counts[1:], counts[2:], strict=False):
        # over the log of the count, so that counts need not double
        share = math.log(middle / first) / math.log(last / first)
        bent[middle, last] = (1 - share) * cells[first] + share * cells[last] - cells[middle]
    return bent


def _odd(side: StoredSide, own: Bends, others: Sequence[Bends]) -> list[OddCount]:
    found: list[OddCount] = []
    for number, ((before, at), bent) in enumerate(own.items()):
        there = [other[before, at] for other in others if (before, at) in other]
        if not there:
            continue
        bend = (bent - pd.concat(there, axis=1).median(axis=1)).dropna()
        if len(bend) < LEAST_CELLS:
            continue
        benchmarks = int(bend.index.get_level_values(0).nunique())
        if (bend <= -math.log(LEAST_BEND)).mean() >= SHARE and -bend.median() >= math.log(LEAST_RATIO):
            found.append(OddCount(side, before, math.exp(-float(bend.median())), benchmarks))
        # the last number has no neighbour above: half of its log shows, unless the one before is slow
        elif number == len(own) - 1 and not any(odd.count < before for odd in found):
            twice = 2 * bend
            if (twice >= math.log(LEAST_BEND)).mean() >= SHARE and twice.median() >= math.log(LEAST_RATIO):
                found.append(OddCount(side, at, math.exp(float(twice.median())), benchmarks))
    return found

"""Regions of neighbouring message sizes and counts in which a side is slower: tested as regions, not cell by cell.

A small change that holds over many cells is lost in the noise of each of them. Here the cells of a window, some sizes
next to each other on some numbers of ranks next to each other, are one question.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from omb_py.results.statistics.change_points import DELTA

Floats = NDArray[np.float64]

FLOOR = 1e-4
"""Least standard deviation of a log: what is printed has so few digits that all launches may agree."""
LOG = "log_us"
"""Column with the log of a row's time in µs (:func:`omb_py.dashboards.changes.ratios.with_logs`)."""


@dataclass(frozen=True)
class SizeWindow:
    """Some sizes and counts next to each other, by their places."""

    sizes: slice
    counts: slice
    p: float
    difference: float
    """Mean over its cells of the log of NEW over BASE."""


@dataclass(frozen=True)
class LaunchGrid:
    """The launches of a benchmark: for each count an array of launches and sizes a side, nan where not measured. The
    logs are distances from the mean of BASE in their cell."""

    sizes: Sequence[int]
    counts: Sequence[int]
    sides: Sequence[tuple[Floats, Floats]]
    """BASE and NEW at each count."""

    @property
    def differences(self) -> Floats:
        """The log of NEW over BASE in each cell: counts, sizes."""
        return np.array([_means(new) - _means(base) for base, new in self.sides])


def _means(values: Floats, axis: int = 0) -> Floats:
    """The mean along an axis, by default over launches, nan where there is none."""
    known = ~np.isnan(values)
    number = known.sum(axis)
    sums = np.where(known, values, 0.0).sum(axis)
    return np.where(number > 0, sums / np.maximum(number, 1), np.nan)


def grids(base: pd.DataFrame, new: pd.DataFrame, over: str) -> Iterator[tuple[str, LaunchGrid]]:
    """Each benchmark that both sides measured; `over` is ``ranks`` or ``devices``."""
    both = pd.concat([base.assign(side=0), new.assign(side=1)])
    both = both.assign(count=both[over].fillna(0).astype(int), size=both["size_bytes"].fillna(0).astype("int64"))
    names = ["benchmark", "side", "count", "launch_id", "size"]
    each = both.groupby(names, observed=True)[LOG].mean().reset_index()
    for benchmark, rows in each.groupby("benchmark", observed=True):
        sizes, counts = sorted(rows["size"].unique()), sorted(rows["count"].unique())
        sides, parts = [], dict(iter(rows.groupby(["count", "side"])))
        for count in counts:
            own = [_tabulate_launches(parts.get((count, side), rows[:0]), sizes) for side in (0, 1)]
            middle = _means(own[0])
            sides.append((own[0] - middle, own[1] - middle))
        yield str(benchmark), LaunchGrid([int(s) for s in sizes], [int(c) for c in counts], sides)


def _tabulate_launches(rows: pd.DataFrame, sizes: Sequence[int]) -> Floats:
    """A line a launch, a column a size; nan where not measured. There is one row of each."""
    launches, number = np.unique(rows["launch_id"].to_numpy(dtype=object), return_inverse=True)
    values = np.full((len(launches), len(sizes)), np.nan)
    values[number, np.searchsorted(sizes, rows["size"])] = rows[LOG]
    return values


def _widths(count: int) -> list[int]:
    return sorted({*(2**power for power in range(count.bit_length())), count})


def windows(grid: LaunchGrid) -> list[SizeWindow]:
    """Every window of sizes (1, 2, 4, … or all of them) and counts, with Welch's t over launches.

    A launch gives one number a window, the mean over its sizes. Launches of several counts are strata: the differences
    of the counts are averaged, and their variances with them.
    """
    from scipy.special import stdtr

    found = []
    for width in _widths(len(grid.sizes)):
        strata = np.array([_strata(base, new, width) for base, new in grid.sides])
        for first, last in combinations(range(len(grid.counts) + 1), 2):
            differences, variances, freedoms = strata[first:last].swapaxes(0, 1)
            scaled = variances / (last - first) ** 2
            freedom = scaled.sum(axis=0) ** 2 / (scaled**2 / freedoms).sum(axis=0)
            means = differences.mean(axis=0)
            chances = 2 * stdtr(freedom, -abs(means) / np.sqrt(scaled.sum(axis=0)))
            found += [
                SizeWindow(slice(start, start + width), slice(first, last), float(p), float(mean))
                for start, (p, mean) in enumerate(zip(chances, means, strict=True))
                if not math.isnan(p)
            ]
    return found


def _strata(base: Floats, new: Floats, width: int) -> Floats:
    """Difference, its variance and its degrees of freedom at one count, of each window of so many sizes.

    nan with fewer than two launches a side.
    """
    sides = [_means(sliding_window_view(values, width, axis=1), axis=2) for values in (base, new)]
    means = [_means(each) for each in sides]
    freedoms = [np.maximum((~np.isnan(each)).sum(axis=0) - 1, 0) for each in sides]
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = [np.nansum((each - mean) ** 2, axis=0) for each, mean in zip(sides, means, strict=True)]
        variances = [np.maximum(s / f, FLOOR**2) / (f + 1) for s, f in zip(sums, freedoms, strict=True)]
        total = sum(variances)
        freedom = total**2 / sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    return np.where(np.minimum(*freedoms) > 0, [means[1] - means[0], total, freedom], np.nan)


def changed_cells(base: pd.DataFrame, new: pd.DataFrame, over: str, alpha: float) -> dict[tuple[str, int, int], str]:
    """(benchmark, count, size) -> ``slower`` or ``faster``, of the cells of windows that changed.

    A window counts where its p, times the number of all windows, is at most `alpha`, and each of its cells lies on the
    same side of 1 by delta or more.
    """
    least = math.log1p(DELTA)
    every = [(benchmark, grid, windows(grid)) for benchmark, grid in grids(base, new, over)]
    number = sum(len(several) for *_, several in every)
    changed: dict[tuple[str, int, int], str] = {}
    for benchmark, grid, several in every:
        cells = grid.differences
        for window in several:
            if window.p * number > alpha:
                continue
            own = cells[window.counts, window.sizes]
            word = "slower" if (own >= least).all() else "faster" if (own <= -least).all() else ""
            for count in grid.counts[window.counts] if word else ():
                for size in grid.sizes[window.sizes]:
                    changed[benchmark, count, size] = word
    return changed

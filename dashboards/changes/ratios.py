"""Ratios of two sides in every cell that both measured, beyond the noise of launches."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import plural
from omb_py.dashboards.changes.regions import LOG, changed_cells
from omb_py.dashboards.changes.sides import KEY, Pair, rows_of
from omb_py.results.analysis.crossover import ALPHA
from omb_py.results.statistics.change_points import DELTA
from omb_py.results.statistics.holm import holm
from omb_py.results.statistics.t_test import welch_of_rounded
from omb_py.results.units import listed, range_text, size_text

COLUMNS = ("benchmark", "ranks", "devices", "size_bytes", KEY)
"""Columns of a cell that the ratios keep."""
MOST = 0.9
"""Share of the cells of a benchmark from which on all of it is said to have changed."""


def with_logs(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that have a time, with :data:`LOG`: of the median, or of a message at a printed bandwidth."""
    times = frame["median_us"].astype("Float64")
    rates = series.in_rate(frame)
    if rates.any():
        times = times.where(~rates | times.notna(), series.message_times(frame))
    known = (times > 0).fillna(False).to_numpy(dtype=bool)
    rows, times = (frame, times) if known.all() else (frame[known], times[known])
    return rows.assign(**{LOG: np.log(times.to_numpy(dtype=np.float64))})


def ratios(pair: Pair, frame: pd.DataFrame) -> pd.DataFrame:
    """A row a cell that both sides measured: :data:`COLUMNS`, ``ratio``, ``p``, ``verdict``, and what it came from.

    Each launch gives one number, the mean log over its passes. The sides are compared by Welch's t; Holm's method keeps
    the chance of any wrong verdict among all cells of the pair at :data:`ALPHA`. A change under delta counts as none,
    as does one whose medians are the other way round.

    Args:
        pair: two sides.
        frame: rows with :data:`LOG`.

    Returns:
        ``ratio`` is NEW over BASE in times, of the medians of launches, as curves show and ``compare`` prints it;
        ``verdict`` is ``slower``, ``faster`` or "".
    """
    sides = [_launches(rows) for rows in rows_of(pair, frame)]
    about = frame[[name for name in COLUMNS if name in frame]].drop_duplicates(KEY).set_index(KEY)
    cells: list[dict[str, object]] = []
    for key, base in sides[0].items():
        new = sides[1].get(key)
        if new is None:
            continue
        estimate = welch_of_rounded(base, new)
        base_us, new_us = (statistics.median(map(math.exp, logs)) for logs in (base, new))
        cells.append(
            {
                KEY: key,
                "ratio": new_us / base_us,
                "judged": estimate.ratio,
                "p": estimate.p,
                "base_us": base_us,
                "new_us": new_us,
                "launches_base": len(base),
                "launches_new": len(new),
            }
        )
    names = [KEY, "ratio", "judged", "p", "base_us", "new_us", "launches_base", "launches_new"]
    table = pd.DataFrame(cells, columns=names)
    adjusted = holm([float(p) for p in table["p"]])
    words = []
    for ratio, of_means, p in zip(table["ratio"], table["judged"], adjusted, strict=True):
        beyond = p <= ALPHA / 2 and abs(math.log(of_means)) >= math.log1p(DELTA)
        words.append("" if not beyond or (ratio > 1) != (of_means > 1) else "slower" if ratio > 1 else "faster")
    judged = table.drop(columns="judged").assign(verdict=words).join(about, on=KEY)
    return _add_regions(judged, pair, frame) if len(judged) else judged


def _add_regions(table: pd.DataFrame, pair: Pair, frame: pd.DataFrame) -> pd.DataFrame:
    """The verdicts with those of regions, for which the other half of :data:`ALPHA` is kept."""
    over = series.counted_over(table)
    changed = changed_cells(*rows_of(pair, frame), over, ALPHA / 2)
    places = zip(table["benchmark"], table[over].fillna(0), table["size_bytes"].fillna(0), strict=True)
    words = [
        word or (region if (ratio > 1) == (region == "slower") else "")
        for word, ratio, (benchmark, count, size) in zip(table["verdict"], table["ratio"], places, strict=True)
        for region in [changed.get((str(benchmark), int(count), int(size)), "")]
    ]
    return table.assign(verdict=words)


def _launches(rows: pd.DataFrame) -> dict[str, list[float]]:
    each = rows.groupby([KEY, "launch_id"], observed=True, sort=True)[LOG].mean()
    values: dict[str, list[float]] = {}
    for key, value in zip(each.index.get_level_values(0), each, strict=True):
        values.setdefault(str(key), []).append(float(value))
    return values


@dataclass(frozen=True)
class ChangedRegion:
    """Cells of one benchmark that all became slower, or all faster."""

    benchmark: str
    verdict: str
    cells: pd.DataFrame
    """Rows of :func:`ratios`."""
    among: int
    """Cells of the benchmark that both sides measured."""
    where: str
    """Their message sizes and numbers of ranks; empty where it is all of the benchmark."""

    @property
    def ratio(self) -> float:
        """Median of the ratios of its cells."""
        return float(self.cells["ratio"].median())

    def sentence(self, pair: Pair) -> str:
        """``allreduce is 1.35× slower with Open MPI 5.0.6 than with 5.0.5, at 64 KiB to 1 MiB, 16 to 32 ranks``."""
        factor = self.ratio if self.ratio > 1 else 1 / self.ratio
        alike = pair.kind == "versions"
        base = str(pair.base.values.get("library_version")) if alike else pair.base.name
        text = f"{self.benchmark} is {theme.amount(factor)}× {self.verdict} with {pair.new.name} than with {base}"
        text += f", {self.where}" if self.where else ", everywhere"
        return f"{text} ({len(self.cells)} of {plural(self.among, 'cell')})"


def regions(table: pd.DataFrame) -> Iterator[ChangedRegion]:
    """Cells beyond the noise, by benchmark and direction; those with most cells times change first."""
    several: list[ChangedRegion] = []
    for (benchmark, verdict), cells in table[table["verdict"] != ""].groupby(["benchmark", "verdict"], observed=True):
        every = table[table["benchmark"] == benchmark]
        whole = len(cells) >= MOST * len(every)
        several.append(
            ChangedRegion(str(benchmark), str(verdict), cells, len(every), "" if whole else _where(cells, every))
        )
    yield from sorted(several, key=lambda region: -len(region.cells) * abs(math.log(region.ratio)))


def _where(cells: pd.DataFrame, every: pd.DataFrame) -> str:
    sizes, ranks = (_span(cells[name], every[name]) for name in ("size_bytes", "ranks"))
    words = [f"at {range_text([size_text(size) for size in sizes])}"] if sizes else []
    on_gpus = bool((every["devices"].fillna(0) >= every["ranks"]).all())
    words += [f"{range_text([str(count) for count in ranks])} {'GPUs' if on_gpus else 'ranks'}"] if ranks else []
    return ", ".join(words)


def _span(part: Iterable[Any], every: Iterable[Any]) -> list[int]:
    """Values in order; empty where they are all that there are."""
    chosen, known = (sorted({int(v) for v in values if not theme.absent(v)}) for values in (part, every))
    return [] if chosen == known and len(known) > 1 else chosen


def describe_missing(pair: Pair, frame: pd.DataFrame) -> str:
    """A sentence on cells that BASE has and NEW has not; empty where NEW has all."""
    left = pair.base.keys - pair.new.keys
    if not left:
        return ""
    rows = frame[frame[KEY].isin(left)].drop_duplicates(KEY)
    names = listed(sorted(map(str, rows["benchmark"].unique())))
    return f"{plural(len(left), 'cell')} of {pair.base.name} not measured with {pair.new.name}: {names}"

"""Histories with their change points, and fitted curves: what ``omb-py history`` and ``omb-py model`` compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from omb_py.dashboards.base import series
from omb_py.dashboards.base.theme import Facts
from omb_py.dashboards.base.view import Shown, View
from omb_py.dashboards.figures.launches import cell_name
from omb_py.dashboards.figures.launches import history as history_view
from omb_py.dashboards.figures.models import model as model_view
from omb_py.errors import UsageError
from omb_py.printing.analyses import environment_lines, heading
from omb_py.results.analysis.cost_model import VERSION, CostModel, models
from omb_py.results.analysis.history import History, LevelStep, enough, history
from omb_py.results.analysis.series import COLUMNS as ROW_COLUMNS
from omb_py.results.analysis.series import SIDE, WHO, TimedRow
from omb_py.results.analysis.series import series as histories_of
from omb_py.results.compare.report import percent
from omb_py.results.statistics import curve_fit
from omb_py.results.statistics.change_points import LEAST, SHORTEST
from omb_py.results.statistics.launch_time import FIELD, statistic_of, time_of
from omb_py.results.store.keys import COMPARED
from omb_py.results.store.row import Row

if TYPE_CHECKING:
    from omb_py.dashboards.views.cells import Cells
    from omb_py.results.store.provenance import Provenance


_ROW = tuple(name for name in ROW_COLUMNS if name != "parameters")  # which are text in a prepared frame
ALSO = tuple(name for name in _ROW if name not in series.NEEDED)
"""Columns needed here and by no figure."""
MESSAGES = "latency"
"""The benchmark that says what a message between two ranks costs."""


MOST_HISTORIES, MOST_FITS = 4, 2
"""Series that are judged, which takes time with the square of their launches; and curves that are fitted, which takes
the better part of a second each."""


def rows_of(frame: pd.DataFrame) -> list[TimedRow]:
    """The timed cells as :func:`omb_py.results.analysis.series.rows_of` gives them, from cells that are in memory."""
    rows: list[TimedRow] = []
    names = [*_ROW, *([FIELD] if FIELD in frame else [])]
    for values in zip(*(_plain(frame[name]) for name in names), strict=True):
        row = dict(zip(names, values, strict=True))
        # a printed mean stands in the place of the median (series.prepared)
        stored = cast(Row, {**row, "median_us": None} if row.get(FIELD) == series.PRINTED_MEAN else row)
        if time := time_of(stored):
            row |= {FIELD: statistic_of(stored), "time_us": time, "started_at": row["started_at"].isoformat()}
            rows.append(cast(TimedRow, row))
    return rows


def _plain(column: pd.Series[Any]) -> list[Any]:
    """The values of a column, None for what is null or empty."""
    if column.dtype.name == "category":
        texts = [*(text or None for text in column.cat.categories), None]  # the last one is that of -1, which is null
        return [texts[code] for code in column.cat.codes.tolist()]
    values = column.astype(object)
    return values.where(values.notna() & (values != ""), None).tolist()


def histories(frame: pd.DataFrame, provenance: Callable[[str], Provenance], most: int = MOST_HISTORIES) -> list[Shown]:
    """The series that changed most, each with its levels and changes; those with the largest changes first.

    Which `most` are judged is chosen by their largest step in units of their noise: a series of many launches that
    never moved says less than a short one with a step. A series of one night that has not changed is left out.
    """
    judged: list[tuple[float, Shown]] = []
    for part in _select_moved_most(frame, "launch_id", LEAST, most):
        for cell_series in filter(enough, histories_of(rows_of(part))):
            levels = history(cell_series, provenance)
            if levels.steps or levels.unit == "night":
                largest = max((_factor(step) for step in levels.steps), default=1.0)
                own = part[part["launch_id"].isin([point.launch_id for point in cell_series.points])]
                judged.append((largest, Shown(_history(levels), own)))
    return [shown for _, shown in sorted(judged, key=lambda pair: -pair[0])]


def _select_moved_most(
    frame: pd.DataFrame, column: str, least: int, most: int = MOST_HISTORIES
) -> Iterator[pd.DataFrame]:
    """The rows of each of the series that moved most, of those with `least` values or more in a column."""
    # a column of one value would take time and memory for nothing
    keys = series.varying(frame, ("benchmark", *WHO, "comparability_key")) or ["benchmark"]
    count = frame.groupby(keys, observed=True, dropna=False, sort=False)[column].transform("nunique")
    places = np.flatnonzero(count >= least)
    long = frame[list(dict.fromkeys([*keys, *_MOVES]))].iloc[places]  # of a million cells a copy of all takes 200 MB
    part_of = long.groupby(keys, observed=True, dropna=False, sort=False).ngroup().to_numpy()
    for number in _rank_restless(long, part_of)[:most]:
        yield frame.iloc[places[part_of == number]]


_MOVES = ("started_at", "launch_id", "median_us")
"""Columns by which :func:`_rank_restless` sees what moved."""


def _rank_restless(frame: pd.DataFrame, part_of: object) -> list[int]:
    """The numbers of the parts, those first that moved most: by the largest difference between the launches before and
    after a split, in standard errors."""
    rows = pd.DataFrame({"part": part_of, "at": frame["started_at"], "launch": frame["launch_id"]})
    rows["value"] = np.log(frame["median_us"].where(frame["median_us"] > 0).astype("float64"))
    parts = pd.Index(rows["part"].unique()).sort_values()
    rows = rows[rows["value"].notna()].sort_values(["part", "at", "launch"], kind="stable", ignore_index=True)
    by = rows.groupby("part", sort=True)["value"]
    each = pd.DataFrame({"n": by.transform("size"), "sum": by.transform("sum"), "spread": by.transform("std")})
    before, summed = by.cumcount() + 1, by.cumsum()
    after = each["n"] - before
    apart = (each["sum"] - summed) / after.where(after > 0) - summed / before
    # neighbours differ by their noise alone, but at the few steps
    steps = by.diff().abs().groupby(rows["part"]).transform("median")
    noise = steps.where(steps > 0, each["spread"] / each["n"])
    unrest = apart.abs() * np.sqrt(before * after / each["n"]) / noise.where(noise > 0)
    unrest = unrest.where((before >= SHORTEST) & (after >= SHORTEST))
    largest = unrest.groupby(rows["part"]).max().reindex(parts).fillna(0.0)
    return [int(part) for part in largest.sort_values(ascending=False, kind="stable").index]


def over_time(cells: Cells, size: int | None = None) -> list[Shown]:
    """The series that moved most, of all sizes or of one: those with levels where there are launches enough, else, as
    points, those with launches on several days."""
    rows = cells.timed if size is None else cells.timed[cells.timed["size_bytes"] == size]
    if not len(rows):
        return []
    judged = histories(rows, cells.provenance)
    if judged:
        return judged
    parts = _select_moved_most(rows, "date", 2)
    return [Shown(history_view(part, f"{cell_name(part)}, {series.short(part)}"), part) for part in parts]


def _factor(step: LevelStep) -> float:
    return max(step.ratio, 1 / step.ratio)


def _history(levels: History) -> View:
    points = [point for level in levels.levels for point in level.points]
    times = np.repeat([level.time_us for level in levels.levels], [level.launches for level in levels.levels])
    names = ("started_at", "log_time", "library_version", "environment_key")
    frame = pd.DataFrame([[getattr(point, name) for name in names] for point in points], columns=names)
    started = pd.to_datetime(frame["started_at"], format="ISO8601", utc=True)  # a whole second has no fraction
    frame = frame.assign(started_at=started, level_us=times)
    frame = frame.assign(median_us=np.exp(frame["log_time"]))
    largest = max(levels.steps, key=_factor, default=None)
    change = ""
    if largest is not None:
        why = f" ({largest.what_changed[0]})" if largest.what_changed else ""
        word = "slower" if largest.ratio > 1 else "faster"
        day = largest.after.started_at[:16].replace("T", " ")
        change = f"{percent(_factor(largest))} {word} from {day} UTC on{why}"
        change += f", the largest of {len(levels.steps)} changes" if len(levels.steps) > 1 else ""
    view = history_view(frame, _name(levels.series.facts, (levels.series.facts["size_bytes"],)), change)
    return view.noted(environment_lines(levels))


def fits(cells: Cells) -> list[Shown]:
    """The curve alpha + beta · size of the times with most cells, of those the newest; one a benchmark first."""
    frame = cells.timed
    frame = frame.assign(**{SIDE: series.sides_of(frame)})
    compared = (name for name in COMPARED if name not in ("size_bytes", "metric", "unit"))
    keys = [*WHO, VERSION, SIDE, *compared]
    fits = (frame["metric"] == "latency") & (frame["median_us"] > 0) & (frame["size_bytes"].fillna(0) > 0)
    places = np.flatnonzero(fits.fillna(False))
    timed = frame[list(dict.fromkeys(["benchmark", "size_bytes", "started_at", *keys]))].iloc[places]
    numbered = timed[["benchmark", "size_bytes", "started_at"]].assign(
        part=timed.groupby(series.varying(timed, keys) or keys[:1], observed=True, dropna=False, sort=True).ngroup()
    )
    parts = numbered.groupby("part", sort=True).agg(
        sizes=("size_bytes", "nunique"),
        cells=("size_bytes", "size"),
        benchmark=("benchmark", "first"),
        newest=("started_at", "max"),
    )
    parts = parts[parts["sizes"] >= curve_fit.LEAST].sort_values(["cells", "newest"], ascending=False, kind="stable")
    turns = parts.groupby("benchmark", observed=True, sort=False).cumcount().sort_values(kind="stable")
    messages = rows_of(frame[frame["benchmark"] == MESSAGES])
    fitted = []
    for number in turns.index[:MOST_FITS]:
        part = frame.iloc[places[(numbered["part"] == number).to_numpy()]]
        try:
            (curve,) = models(rows_of(part), messages)[:1]
        except (UsageError, ValueError):
            continue
        fitted.append(Shown(_fit(curve), part))
    return fitted


def _name(facts: Facts, sizes: Sequence[int | None] = ()) -> str:
    """A series, for a title: its backend is told by its library."""
    return heading({**facts, "backend": None} if facts.get("library") else facts, sizes)


def _fit(curve: CostModel) -> View:
    cells = [(cell.size_bytes, cell.measured_us, cell.bound_us) for cell in curve.cells]
    measured = pd.DataFrame(cells, columns=["size_bytes", "median_us", "lower_us"])
    parts = [(part.first, part.last, part.alpha_us, part.beta_us) for part in curve.curve.segments]
    segments = pd.DataFrame(parts, columns=["low_bytes", "high_bytes", "alpha_us", "beta_us_per_byte"])
    return model_view(measured, segments, _name(curve.facts))

"""What ``omb-py history`` and ``omb-py model`` compute, as views of the cells of a report or of the explorer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series as cells
from omb_py.dashboards.base import theme
from omb_py.dashboards.base.view import View
from omb_py.dashboards.figures.history import history as history_view
from omb_py.dashboards.figures.model import model as model_view
from omb_py.dashboards.terminal.history_text import environment_lines, heading
from omb_py.errors import UsageError
from omb_py.results.analysis.cost_model import Model, models
from omb_py.results.analysis.history import History, history
from omb_py.results.analysis.series import WHO, series
from omb_py.results.compare.report import percent
from omb_py.results.statistics import curve_fit
from omb_py.results.statistics.change_points import LEAST
from omb_py.results.statistics.launch_time import COLUMNS as STATISTIC
from omb_py.results.statistics.launch_time import FIELD, statistic_of, time_of
from omb_py.results.store.keys import COMPARED

if TYPE_CHECKING:
    import pandas as pd

Provenance = Callable[[str], Mapping[str, Any]]
Made = tuple[View, "pd.DataFrame"]
"""A view, and the rows that it shows."""

_ROW = tuple(
    dict.fromkeys(
        (
            "run_id",
            "launch_id",
            "launch_index",
            "started_at",
            "library_version",
            "environment_key",
            "comparability_key",
            "bytes_total",
            "bw_formula",
            *STATISTIC,
            *WHO,
            *COMPARED,
        )
    )
)
ALSO = tuple(name for name in _ROW if name not in cells.NEEDED)
"""Columns needed here and by no figure."""
MESSAGES = "latency"
"""The benchmark that says what a message between two ranks costs."""


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The timed cells as :func:`omb_py.results.analysis.series.rows_of` gives them, from cells that are in memory."""
    made: list[dict[str, Any]] = []
    for row in frame[list(_ROW)].astype(object).itertuples(index=False):
        known = {name: None if theme.absent(value) else value for name, value in zip(_ROW, row, strict=True)}
        if time := time_of(known):
            started = row[_ROW.index("started_at")].isoformat()
            made.append({**known, FIELD: statistic_of(known), "time_us": time, "started_at": started})
    return made


def histories(frame: pd.DataFrame, provenance: Provenance, most: int) -> list[Made]:
    """The series with most launches, each with its levels and changes; those with the largest changes first.

    Args:
        frame: prepared cells, with :data:`ALSO`.
        provenance: looks up launches.
        most: series that are judged, which takes time with the square of their launches.

    A series that began and ended on one day and has not changed is left out.
    """
    keys = ["benchmark", *WHO, "comparability_key"]
    count = frame.groupby(keys, observed=True, dropna=False, sort=False)["launch_id"].transform("nunique")
    groups = frame[count >= LEAST].groupby(keys, observed=True, dropna=False, sort=False)
    longest = sorted((part for _, part in groups), key=lambda part: -part["launch_id"].nunique())
    found: list[tuple[float, Made]] = []
    for part in longest[:most]:
        rows = rows_of(part)
        if len({row["launch_id"] for row in rows}) < LEAST:
            continue
        told = history(series(rows)[0], provenance)
        if told.steps or part["date"].nunique() > 1:
            far = max((max(step.ratio, 1 / step.ratio) for step in told.steps), default=1.0)
            found.append((far, (_history(told), part)))
    found.sort(key=lambda one: -one[0])
    return [made for _, made in found]


def _history(told: History) -> View:
    import numpy as np
    import pandas as pd

    points = told.series.points[told.left_out :]
    levels = np.repeat([level.time_us for level in told.levels], [level.launches for level in told.levels])
    frame = pd.DataFrame(
        {
            "started_at": pd.to_datetime([point.started_at for point in points], utc=True),
            "median_us": np.exp([point.log_time for point in points]),
            "level_us": levels,
            "library_version": [point.library_version for point in points],
            "environment_key": [point.environment_key for point in points],
        }
    )
    largest = max(told.steps, key=lambda step: max(step.ratio, 1 / step.ratio), default=None)
    said = ""
    if largest is not None:
        why = f" ({largest.what_changed[0]})" if largest.what_changed else ""
        word = "slower" if largest.ratio > 1 else "faster"
        change = percent(max(largest.ratio, 1 / largest.ratio))
        said = f"{change} {word} from {largest.after.started_at[:16].replace('T', ' ')} UTC on{why}"
        said += f", the largest of {len(told.steps)} changes" if len(told.steps) > 1 else ""
    view = history_view(frame, heading(told.series.facts, told.series.sizes), said)
    return view.noted(environment_lines(told))


def fits(frame: pd.DataFrame, most: int) -> list[Made]:
    """The curve alpha + beta · size of the times with most cells, one a benchmark first.

    Args:
        frame: prepared cells, with :data:`ALSO`.
        most: curves that are fitted, which takes the better part of a second each.
    """
    timed = frame[(frame["metric"] == "latency") & (frame["median_us"] > 0) & (frame["size_bytes"].fillna(0) > 0)]
    keys = [*WHO, *(name for name in COMPARED if name not in ("size_bytes", "metric", "unit"))]
    parts = [
        part
        for _, part in timed.groupby(keys, observed=True, dropna=False, sort=True)
        if part["size_bytes"].nunique() >= curve_fit.LEAST
    ]
    parts.sort(key=lambda part: -len(part))
    seen: dict[str, int] = {}
    turns = []
    for part in parts:
        benchmark = str(part["benchmark"].iloc[0])
        seen[benchmark] = seen.get(benchmark, 0) + 1
        turns.append((seen[benchmark], part))
    turns.sort(key=lambda turn: turn[0])
    messages = rows_of(frame[frame["benchmark"] == MESSAGES])
    made = []
    for _, part in turns[:most]:
        try:
            (found,) = models(rows_of(part), messages)[:1]
        except (UsageError, ValueError):
            continue
        made.append((_fit(found), part))
    return made


def _fit(found: Model) -> View:
    import pandas as pd

    measured = pd.DataFrame(
        [(cell.size_bytes, cell.measured_us, cell.bound_us) for cell in found.cells],
        columns=["size_bytes", "median_us", "lower_us"],
    )
    segments = pd.DataFrame(
        [(part.first, part.last, part.alpha_us, part.beta_us) for part in found.curve.segments],
        columns=["low_bytes", "high_bytes", "alpha_us", "beta_us_per_byte"],
    )
    return model_view(measured, segments, heading(found.facts, [cell.size_bytes for cell in found.cells]))

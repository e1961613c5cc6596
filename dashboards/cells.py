"""Cells as series: what makes two rows the same line of a figure, and the lines' medians over launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from omb_py.dashboards import style
from omb_py.dashboards.view import listed, plural
from omb_py.results import schema
from omb_py.results.keys import COMPARED
from omb_py.results.naming import WORDS
from omb_py.results.series import WHO

if TYPE_CHECKING:
    import pandas as pd

PANEL = ("benchmark", "metric", "unit")
"""Rows with equal values can stand on one axis."""
_MORE = ("library_version", "device_name", "thread_level", "devices", "parameters", "tags")
_APART = {*WHO, *COMPARED, *_MORE} - {*PANEL, "size_bytes"}
IDENTITY = tuple(name for name in schema.NAMES if name in _APART)
"""Rows with equal values are one line; a label names those that differ."""
NEEDED = (
    "run_id",
    "launch_id",
    "started_at",
    "family",
    *PANEL,
    *IDENTITY,
    "size_bytes",
    "value",
    "median_us",
    "mean_us",
    "min_us",
    "p25_us",
    "p75_us",
    "p99_us",
    "algbw_gbps",
    "busbw_gbps",
    "iterations",
    "stop_reason",
    "ess",
    "sync_limited",
    "validated",
    "comparability_key",
    "environment_key",
    "date",
)
"""Columns that the figures of a whole store need; the lists of samples are read for single cells."""
LISTS = (*(name for name in schema.FLOAT_LISTS if name != "samples_avg_us"), "hosts")
MOST_LINES = 6
"""In one figure: colour, dash and marker are told apart."""
_SPLIT_BY = (
    "ranks",
    "device",
    "buffer",
    "dtype",
    "op",
    "window",
    "nodes",
    "parameters",
    "process_sync",
    "binding",
    "library",
    "library_version",
    "backend",
    "tags",
)


@dataclass(frozen=True)
class Line:
    """One series of a figure."""

    label: str
    """What sets it apart from the others; plain text."""
    cells: pd.DataFrame
    """Its rows, all launches."""

    @cached_property
    def over(self) -> pd.DataFrame:
        """One row a size, sorted: medians over launches, ``launches`` and ``samples``."""
        return over_launches(self.cells)


def prepared(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy whose maps are text (``K=V, K2=V2``), so that rows can be grouped by every column."""
    made = frame.copy(deep=False)
    for name in ("parameters", "tags"):
        if name in made and len(made):
            made[name] = made[name].map(_map_text)
    return made


def _map_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={value[k]}" for k in sorted(value))
    return value if isinstance(value, str) else ""


def panels(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Rows that belong on one axis, at most :data:`MOST_LINES` lines each, with the words that name them."""
    for _, rows in frame.groupby(list(PANEL), sort=True, dropna=False, observed=True):
        yield from _split(str(rows["benchmark"].iloc[0]), rows, _SPLIT_BY)


def _split(name: str, rows: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    if _count(rows) <= MOST_LINES or not by:
        yield name, rows
        return
    column, rest = by[0], by[1:]
    if column not in rows or rows[column].nunique(dropna=False) < 2:
        yield from _split(name, rows, rest)
        return
    for value, part in rows.groupby(column, sort=True, dropna=False, observed=True):
        yield from _split(f"{name}, {word(column, value)}", part, rest)


def _count(rows: pd.DataFrame) -> int:
    return len(rows[varying(rows)].drop_duplicates()) if varying(rows) else 1


def varying(rows: pd.DataFrame) -> list[str]:
    """Columns of :data:`IDENTITY` that differ within the rows."""
    return [name for name in IDENTITY if name in rows and rows[name].nunique(dropna=False) > 1]


def word(column: str, value: Any) -> str:
    """A value for a label: ``4 ranks``."""
    if style.absent(value):
        return f"no {column}"
    if column == "tags":
        return str(value)
    return WORDS.get(column, "{}").format(value)


def lines(rows: pd.DataFrame, most: int | None = None, ignore: Sequence[str] = ()) -> list[Line]:
    """The series of one panel, in the order of their labels; `most` keeps those with most cells.

    Columns in `ignore` may differ within a series.
    """
    names = [name for name in varying(rows) if name not in ignore]
    if not names:
        return [Line("", rows)]
    shown = _telling(rows, names)
    made = []
    for values, part in rows.groupby(names, sort=True, dropna=False, observed=True):
        known = dict(zip(names, values, strict=True))
        label = " · ".join(word(name, known[name]) for name in shown)
        made.append(Line(label, part))
    if most is not None and len(made) > most:
        made = sorted(made, key=lambda one: -len(one.cells))[:most]
    return made


def _telling(rows: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Without the columns that say only what others before them say already."""
    distinct = rows[list(names)].drop_duplicates()
    shown: list[str] = []
    for name in names:
        if not shown or len(distinct[[*shown, name]].drop_duplicates()) > len(distinct[shown].drop_duplicates()):
            shown.append(name)
    return shown


_MEDIANS = ("value", "median_us", "min_us", "p25_us", "p75_us", "p99_us", "algbw_gbps", "busbw_gbps")


def over_launches(rows: pd.DataFrame) -> pd.DataFrame:
    """Medians over the launches of each size: the launch is the sample, samples of launches are never pooled."""
    grouped = rows.groupby("size_bytes", sort=True, dropna=False)
    made = grouped[[name for name in _MEDIANS if name in rows]].median()
    made["value_low"], made["value_high"] = grouped["value"].min(), grouped["value"].max()
    made["launches"], made["samples"] = grouped["launch_id"].nunique(), grouped["iterations"].sum()
    made["limited"] = grouped["sync_limited"].max()
    found: pd.DataFrame = made.reset_index()
    return found


def common(rows: pd.DataFrame) -> str:
    """What all rows share, in words: ``mpi · MPICH 5.0.2 · native · 4 ranks``."""
    parts = []
    for name in ("backend", "library", "library_version", "binding", "device", "buffer", "dtype", "op", "ranks"):
        if name in rows and rows[name].nunique(dropna=False) == 1:
            value = rows[name].iloc[0]
            if not style.absent(value):
                parts.append(word(name, value))
    return " · ".join(parts)


def caption(rows: pd.DataFrame) -> str:
    """Launches, samples, synchronisation, timing and days of the rows."""
    launches, samples = rows["launch_id"].nunique(), rows["iterations"].sum()
    parts = [common(rows), plural(int(launches), "launch"), plural(int(samples or 0), "sample")]
    for name, text in (("process_sync", "sync {}"), ("timing", "timing {}")):
        if name in rows and rows[name].notna().any():
            parts.append(text.format(listed(sorted(rows[name].dropna().unique()))))
    parts.append(days(rows))
    return " · ".join(part for part in parts if part)


def days(rows: pd.DataFrame) -> str:
    """The day of the rows, or the first and the last."""
    known = sorted(str(day) for day in rows["date"].dropna().unique()) if "date" in rows else []
    return f"{known[0]} to {known[-1]}" if len(known) > 1 else "".join(known)

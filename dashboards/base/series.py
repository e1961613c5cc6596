"""Cells as series: what makes two rows the same line of a figure, and the lines' medians over launches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.theme import Facts
from omb_py.dashboards.base.view import SEPARATOR, plural
from omb_py.results.analysis.series import WHO, side_of
from omb_py.results.compare import tags as tag_names
from omb_py.results.compare.cell_names import value_text
from omb_py.results.statistics.launch_time import FIELD, OURS
from omb_py.results.store import schema
from omb_py.results.store.keys import COMPARED
from omb_py.results.store.row import Row
from omb_py.results.units import listed

PANEL = ("benchmark", "metric", "unit")
"""Rows with equal values can stand on one axis."""
STEPS = "workload"
"""The ``family`` of steps of workloads."""
_MORE = ("library_version", "device_name", "thread_level", "devices", "parameters", "tags")
_APART = {*WHO, *COMPARED, *_MORE} - {*PANEL, "size_bytes"}
IDENTITY = (*(name for name in schema.NAMES if name in _APART), FIELD)
"""Rows with equal values are one line; a label names those that differ. :data:`FIELD` is given by :func:`prepared`."""
PRINTED_MEAN = "printed mean"
"""Value of :data:`FIELD` in rows without samples: another tool printed a mean, which stands in for the median."""
_MEDIAN = "median"
COUNTS = ("ranks", "nodes", "ranks_per_node", "devices")
"""Columns that may differ within a series that is drawn over the number of ranks or GPUs."""
NEEDED = (
    *("run_id", "launch_id", "started_at", "family", *PANEL, *(name for name in IDENTITY if name != FIELD), "source"),
    *("size_bytes", "value", "median_us", "mean_us", "min_us", "p25_us", "p75_us", "p99_us", "algbw_gbps"),
    *("busbw_gbps", "iterations", "stop_reason", "ess", "sync_limited", "validated", "comparability_key"),
    *("environment_key", "date"),
)
"""Columns that the figures of a whole store need; the lists of samples are read for single cells."""
LISTS = (*(name for name in schema.FLOAT_LISTS if name != "samples_avg_us"), "hosts")
MOST_LINES = 6
"""In one figure: colour, dash and marker are told apart."""
MOST_GREY = 40
"""In a figure of libraries alone: the best and the worst are coloured, the others grey."""
_SPLIT_BY = tuple(
    (
        "ranks device buffer dtype op window nodes parameters process_sync binding library library_version backend tags"
    ).split()
)


@dataclass(frozen=True)
class SeriesLine:
    """One series of a figure."""

    label: str
    """The values in which the series differs from the others of its figure; plain text."""
    cells: pd.DataFrame
    """Its rows, all launches."""

    @cached_property
    def over(self) -> pd.DataFrame:
        """One row a size, sorted: medians over launches, ``launches`` and ``samples``."""
        return over_launches(self.cells)


class Panel:
    """Cells that belong on one axis, and what figures say of them."""

    def __init__(self, rows: pd.DataFrame, name: str = "", lines: Sequence[SeriesLine] | None = None) -> None:
        """Name the prepared rows of one panel, by default after their benchmark; `lines` where they are known."""
        self.rows = rows
        self.name = name or str(rows["benchmark"].iloc[0])
        if lines is not None:
            self.__dict__["lines"] = lines

    @cached_property
    def lines(self) -> Sequence[SeriesLine]:
        """The series of the panel."""
        return lines(self.rows)

    @property
    def sizes(self) -> list[int]:
        """Its message sizes in bytes, in order."""
        return sizes(self.rows)

    @property
    def sized(self) -> bool:
        """Whether it has messages of a size, as barriers have not."""
        return any(self.sizes)


def prepared(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy whose maps are text (``K=V, K2=V2``), so that rows can be grouped by every column.

    Parameters and tags that only number rows are left out, and the tag of a comparison's side where the sides differ in
    library, version or binding as well. Times that another tool printed stand in ``median_us``, marked by
    :data:`PRINTED_MEAN` (:func:`as_stored` takes them out again).
    """
    rows = with_means(frame.copy(deep=False))
    if "parameters" in rows and len(rows):
        rows["parameters"] = rows["parameters"].map(parameters_text)
    if "tags" in rows and len(rows):
        by_tag = told_by_tag(rows)
        runs = rows["run_id"] if "run_id" in rows else [None] * len(rows)
        rows["tags"] = [tags_text(tags, run in by_tag) for tags, run in zip(rows["tags"], runs, strict=True)]
    return rows


def parameters_text(parameters: object) -> str:
    """Parameters as text without the pass of a soak: what is measured again is the same; of pairs it says which."""
    if isinstance(parameters, Mapping) and "pair" not in parameters:
        parameters = {name: value for name, value in parameters.items() if name not in ("pass", "cycle")}
    return map_text(parameters)


def tags_text(tags: object, sided: bool) -> str:
    """Tags as text without those by which omb-py numbers rows; that of a comparison's side only where `sided`.

    In a tuning's proof the setting says more than the side.
    """
    if not isinstance(tags, Mapping):
        return map_text(tags)
    kept = tag_names.distinguishing_tags(tags)
    if not sided or tag_names.TUNE_PROOF in tags:
        kept.pop(tag_names.COMPARE_SIDE, None)
    return map_text(kept)


_CHECKED = re.compile(rf"(?:^|, ){tag_names.ACCEPT_PHASE}={tag_names.CORRECTNESS}(?:,|$)")


def timed(rows: pd.DataFrame) -> pd.DataFrame:
    """The prepared rows that measured a time, without the calls by which an acceptance checks every byte.

    Where there are no others, those are given.
    """
    checks = [text for text in rows["tags"].unique() if _CHECKED.search(str(text))]
    left = rows[~rows["tags"].isin(checks)] if checks else rows
    return left if len(left) else rows


def with_means(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with :data:`FIELD`, printed means in ``median_us``, and bandwidths of the same statistic as the times
    beside them, the stored ones under :data:`OF_MEANS`; as they are where a column for it is missing."""
    if not {"source", "median_us", "value", "unit"} <= {*rows.columns} or FIELD in rows:
        return rows
    printed = (rows["source"] != OURS) & (rows["unit"] == "us") & rows["median_us"].isna() & rows["value"].notna()
    chosen = printed.fillna(False).to_numpy(dtype=bool)
    rows = _bandwidths_of_medians(rows)
    if not chosen.any():
        return rows.assign(**{FIELD: _MEDIAN})
    names = [PRINTED_MEAN if mean else _MEDIAN for mean in chosen]
    times = rows["median_us"].mask(chosen, rows["value"])
    return rows.assign(median_us=times, **{FIELD: names})


OF_MEANS = {"algbw_gbps": "algbw_of_mean_gbps", "busbw_gbps": "busbw_of_mean_gbps"}
"""Column of a bandwidth -> that of the stored one, which is of the mean time as OMB has it."""


def _bandwidths_of_medians(rows: pd.DataFrame) -> pd.DataFrame:
    """A mean with a few slow calls is no like of the median that stands beside it: one statistic a page.

    The stored bandwidth is of ``value``, which is no ``mean_us``: that is of the slowest rank of each call.
    """
    if not {*OF_MEANS} <= {*rows.columns}:
        return rows
    timed = (rows["unit"] == "us") & (rows["median_us"] > 0) & (rows["value"] > 0)
    factor = (rows["value"] / rows["median_us"]).where(timed.fillna(False).astype(bool), 1.0)
    own = {name: rows[name] * factor for name in OF_MEANS}
    return rows.assign(**{stored: rows[name] for name, stored in OF_MEANS.items()}, **own)


def as_stored(rows: pd.DataFrame) -> pd.DataFrame:
    """The prepared rows without what :func:`prepared` filled in: ``median_us`` of printed means is null again."""
    if FIELD not in rows:
        return rows
    if {*OF_MEANS.values()} <= {*rows.columns}:
        rows = rows.assign(**{name: rows[stored] for name, stored in OF_MEANS.items()})
        rows = rows.drop(columns=list(OF_MEANS.values()))
    printed = (rows[FIELD] == PRINTED_MEAN).to_numpy(dtype=bool)
    stored = rows.drop(columns=FIELD)
    return stored.assign(median_us=stored["median_us"].mask(printed)) if printed.any() else stored


def in_rate(rows: pd.DataFrame) -> pd.Series[bool]:
    """Which rows have a bandwidth in MB/s as their value."""
    return rows["unit"].eq("MB/s").fillna(False).astype(bool)


def message_times(rows: pd.DataFrame) -> pd.Series[float]:
    """Times in µs of a message at the bandwidth that is the value of a row; null where that is 0."""
    return rows["size_bytes"].astype("Float64") / rows["value"].astype("Float64").where(rows["value"] > 0)


def statistic(rows: pd.DataFrame) -> str:
    """``printed mean`` where all of the rows are that, ``median, printed mean`` where some are, else ``median``."""
    names = {str(name) for name in rows[FIELD].unique()} if FIELD in rows else {_MEDIAN}
    return ", ".join(sorted(names))


def of_store(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Prepared rows with the name of their store among their tags."""
    texts = {text: ", ".join(filter(None, [str(text), f"{OF_STORE}={name}"])) for text in rows["tags"].unique()}
    return rows.assign(tags=rows["tags"].astype(object).map(texts))


def told_by_tag(frame: pd.DataFrame) -> set[str]:
    """Runs of comparisons whose sides differ in nothing but their tag; the frame has tags as maps."""
    names = ("run_id", "library", "library_version", "binding")
    if not {*names} <= {*frame.columns}:
        return set()
    sides: dict[tuple[str, ...], set[str]] = {}
    for tags, *who in zip(frame["tags"], *(frame[name] for name in names), strict=True):
        if isinstance(tags, Mapping) and tag_names.COMPARE_SIDE in tags:
            sides.setdefault(tuple(map(str, who)), set()).add(tags[tag_names.COMPARE_SIDE])
    runs = {who[0] for who, tagged in sides.items() if len(tagged) > 1}
    return {run for run in frame["run_id"].unique() if str(run) in runs}


def sides_of(rows: pd.DataFrame) -> pd.Series[str]:
    """For each prepared row the side of a comparison that nothing but its tag tells from the other, else None."""
    known = {text: side_of(cast(Row, {"tags": str(text)})) for text in rows["tags"].unique()}
    if not any(known.values()):
        return pd.Series(None, index=rows.index, dtype=object)
    sides: pd.Series[str] = rows["tags"].astype(object).map(known).astype(object)
    return sides


def compact(frame: pd.DataFrame) -> pd.DataFrame:
    """Replace text columns by categories: grouping is faster, and a million cells fit in a few hundred MB."""
    columns: dict[str, pd.Series] = {}
    for name in frame.columns:
        column = frame[name]
        if name not in LISTS and (isinstance(column.dtype, pd.StringDtype) or column.dtype == object):
            codes = column.astype("category").cat
            # pandas is slower by a fifth with categories of Arrow text, one of which is taken at a time
            columns[name] = codes.rename_categories(pd.Index(codes.categories.to_numpy(dtype=object), dtype=object))
    return frame.assign(**columns)


def occurring(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with only the categories that occur among them: others would show as empty groups."""
    columns = {name: frame[name] for name in frame.columns if frame[name].dtype.name == "category"}
    return frame.assign(**{str(name): column.cat.remove_unused_categories() for name, column in columns.items()})


def concat(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Rows below each other."""
    return pd.concat(list(parts))


def map_text(value: object) -> str:
    """A map as ``K=V, K2=V2``, in order of the keys; of what is no map and no text, nothing."""
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={value[k]}" for k in sorted(value))
    return value if isinstance(value, str) else ""


def panels(frame: pd.DataFrame) -> Iterator[Panel]:
    """Rows that belong on one axis, at most :data:`MOST_LINES` lines each.

    Numbers of ranks are always apart: what is fastest among them is no finding. Scaling over them is another view.
    """
    for _, alike in frame.groupby(list(PANEL), sort=True, dropna=False, observed=True):
        for name, rows in measured(alike):
            yield from _split(name, rows, _SPLIT_BY, varying(rows), apart=1)


def measured(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Name and rows of each benchmark, and of each workload of a step: two workloads are no sides of one thing."""
    for benchmark, rows in frame.groupby("benchmark", sort=True, observed=True):
        if rows["family"].iloc[0] == STEPS:
            yield from ((f"{benchmark}, {text}", part) for text, part in rows.groupby("parameters", observed=True))
        else:
            yield str(benchmark), rows


def _split(name: str, rows: pd.DataFrame, by: Sequence[str], names: Sequence[str], apart: int = 0) -> Iterator[Panel]:
    """Panels by the first of the columns that differ, which are `names`; by the first `apart` of them in any case."""
    count = len(rows[list(names)].drop_duplicates()) if names and apart < 1 else 1
    many = count <= MOST_GREY and {*names} <= {"backend", "library", "library_version"}
    if (apart < 1 and (count <= MOST_LINES or many)) or not by:
        yield Panel(rows, name)
        return
    column, rest = by[0], by[1:]
    if column not in names:
        yield from _split(name, rows, rest, names, apart - 1)
        return
    for value, part in rows.groupby(column, sort=True, dropna=False, observed=True):
        panel = ", ".join(w for w in (name, word(column, value)) if w)
        yield from _split(panel, part, rest, varying(part, names), apart - 1)


def varying(rows: pd.DataFrame, among: Sequence[str] = IDENTITY) -> list[str]:
    """The columns of `among` whose values differ within the rows."""
    return [name for name in among if name in rows and _varies(rows[name])]


def _varies(column: pd.Series[Any]) -> bool:
    if column.dtype.name != "category":
        return bool(column.nunique(dropna=False) > 1)
    codes = column.array.codes
    return bool((codes != codes[:1]).any())


def sizes(rows: pd.DataFrame) -> list[int]:
    """Message sizes that occur, in order."""
    return sorted(int(size) for size in rows["size_bytes"].dropna().unique())


def counted_over(rows: pd.DataFrame) -> str:
    """``devices`` where each of the rows was measured on GPUs, else ``ranks``."""
    on_gpus = "devices" in rows and len(rows) and bool((rows["devices"].fillna(0) > 0).all())
    return "devices" if on_gpus else "ranks"


def key_in_text(name: str) -> re.Pattern[str]:
    """Finds ``name=`` in the text of a map, as :func:`map_text` writes it."""
    return re.compile(rf"(?:^|(?<=, )){name}=")


def value_in_text(name: str) -> re.Pattern[str]:
    """Finds ``name=value`` in the text of a map; the value is its group."""
    return re.compile(rf"{key_in_text(name).pattern}(.*?)(?=, [^ =,]+=|$)")


_PAIR = re.compile(r"(?:^|(?<=, ))([^ =,]+)=(.*?)(?=, [^ =,]+=|$)", re.DOTALL)


def map_of(text: str) -> dict[str, str]:
    """The map that :func:`map_text` wrote.

    >>> map_of("pytest=a.py::test[1, 2], rack=a3")
    {'pytest': 'a.py::test[1, 2]', 'rack': 'a3'}
    """
    return dict(_PAIR.findall(text))


OF_STORE = "of_store"
"""Tag of a row in a report on two stores: which of them has it."""
_SIDED = re.compile(f"{key_in_text(tag_names.COMPARE_SIDE).pattern}|{key_in_text(OF_STORE).pattern}")
_PROVED = value_in_text(tag_names.TUNE_PROOF)
_OWN = re.compile("|".join((_SIDED.pattern, _PROVED.pattern, value_in_text(tag_names.TUNE_SETTING).pattern)))


def has_own_tag(text: str) -> bool:
    """Whether omb-py tagged the row: a side of a comparison, a store of two, a setting of a tuning."""
    return _OWN.search(text) is not None


def word(column: str, value: object) -> str:
    """A value for a label.

    >>> word("ranks", 4), word("tags", "compare_side=NEW, rack=a3"), word("tags", "tune_proof=ring")
    ('4 ranks', 'NEW, rack=a3', 'tuned (ring)')
    >>> word("library", None), word("library_version", None), word("device", None)
    ('library unknown', 'library unknown', 'no device')
    """
    if column == "tags":
        return "" if theme.absent(value) else _PROVED.sub(r"tuned (\1)", _SIDED.sub("", str(value)))
    if theme.absent(value):
        return "library unknown" if column in ("library", "library_version") else f"no {column}"
    return value_text(column, value)


def lines(rows: pd.DataFrame, ignore: Sequence[str] = ()) -> list[SeriesLine]:
    """The series of one panel, in the order of their labels. Columns in `ignore` may differ within a series."""
    names = [name for name in varying(rows) if name not in ignore]
    if not names:
        return [SeriesLine("", rows)]
    shown = distinguishing_columns(rows, names)
    return [
        SeriesLine(_label(shown, dict(zip(names, values, strict=True)), part), part)
        for values, part in rows.groupby(names, sort=True, dropna=False, observed=True)
    ]


def _label(shown: Sequence[str], values: Facts, rows: pd.DataFrame) -> str:
    """What tells a series from the others; a library always with its version."""
    words: dict[str, None] = {}
    for name in shown:
        text = word(name, values[name])
        if name in ("library", "library_version") and not theme.absent(rows["library"].iloc[0]):
            versions = list(rows["library_version"].unique()) if "library_version" in rows else []
            version = versions[0] if len(versions) == 1 and not theme.absent(versions[0]) else ""
            text = f"{rows['library'].iloc[0]} {version}".strip()
        if text:
            words[text] = None
    return " · ".join(words) or full_name({name: rows[name].iloc[0] for name in FULL_NAME if name in rows})


FULL_NAME = ("backend", "library", "library_version")


def full_name(values: Facts) -> str:
    """``Open MPI 5.0.11``; the backend where no library is known."""
    library = values.get("library")
    name = str(values.get("backend") or "unknown") if theme.absent(library) else str(library)
    version = values.get("library_version")
    return name if theme.absent(version) else f"{name} {version}"


def distinguishing_columns(rows: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """The columns that tell the rows apart, each beyond the ones before it; the backend only where the library does
    not."""
    distinct = rows[list(names)].drop_duplicates()
    shown: list[str] = []
    for name in names:
        if not shown or len(distinct[[*shown, name]].drop_duplicates()) > len(distinct[shown].drop_duplicates()):
            shown.append(name)
    rest = [name for name in shown if name != "backend"]
    named = any(name in rest for name in ("library", "library_version"))  # a label has both
    named = named and len(distinct[rest].drop_duplicates()) == len(distinct[shown].drop_duplicates())
    return rest if named else shown


_MEDIANS = ("value", "median_us", "min_us", "p25_us", "p75_us", "p99_us", "algbw_gbps", "busbw_gbps")


def over_launches(rows: pd.DataFrame, by: Sequence[str] = ("size_bytes",)) -> pd.DataFrame:
    """Medians over the launches of each size: the launch is the sample, samples of launches are never pooled."""
    names = [name for name in _MEDIANS if name in rows]
    needed = [*by, *names, "launch_id", "iterations", "sync_limited"]
    grouped = rows[needed].groupby(list(by), sort=True, dropna=False)
    medians = grouped[names].median()
    for name in ("value", "median_us"):
        medians[f"{name}_low"], medians[f"{name}_high"] = grouped[name].min(), grouped[name].max()
    medians["launches"], medians["samples"] = grouped["launch_id"].nunique(), grouped["iterations"].sum()
    medians["limited"] = grouped["sync_limited"].max()
    over: pd.DataFrame = medians.reset_index()
    return over


def cell_ids(rows: pd.DataFrame) -> dict[int, str]:
    """The cell at each message size, null as 0: ``LAUNCH/KEY`` of its last row, for :func:`of_cell`."""
    last = rows.drop_duplicates("size_bytes", keep="last")
    return dict(zip(map(int, last["size_bytes"].fillna(0)), cell_names(last), strict=True))


CELL = ("launch_id", "comparability_key")
"""Columns that name one row."""


def cell_names(rows: pd.DataFrame) -> list[str]:
    """``LAUNCH/KEY`` of each row."""
    return [f"{launch}/{key}" for launch, key in zip(*(rows[name] for name in CELL), strict=True)]


def of_cell(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of the series that has this cell (:func:`cell_ids`; without a launch the newest with that key), its own
    last; none where there is no such cell."""
    launch, _, key = name.rpartition("/")
    own = rows[rows["comparability_key"] == key]
    own = own[own["launch_id"] == launch] if launch else own.sort_values("started_at", kind="stable")
    own = own.tail(1)
    if not len(own):
        return own
    for column in (*PANEL, *IDENTITY):
        if column in rows:
            rows = rows[having(rows[column], own[column].iloc[0])]
    return concat([rows.drop(index=own.index), own])


def having(column: pd.Series[Any], value: object) -> pd.Series[bool]:
    """Where a column has a value; nulls and empty text are the same."""
    return column.isna() | (column == "") if theme.absent(value) else column == value


def compute_medians(lines: Sequence[SeriesLine]) -> None:
    """Compute ``over`` of many series of the same columns at once, in a fraction of the time of one after the other."""
    if not lines:
        return
    number = np.repeat(np.arange(len(lines)), [len(line.cells) for line in lines])
    needed = [n for n in ("size_bytes", *_MEDIANS, "launch_id", "iterations", "sync_limited") if n in lines[0].cells]
    every = pd.concat([line.cells[needed] for line in lines], ignore_index=True).assign(series=number)
    over = over_launches(every, ("series", "size_bytes"))
    ends = np.searchsorted(over["series"], np.arange(len(lines) + 1))  # sorted by series
    over = over.drop(columns="series")
    for at, line in enumerate(lines):
        line.__dict__["over"] = over.iloc[ends[at] : ends[at + 1]].reset_index(drop=True)


def common(rows: pd.DataFrame) -> str:
    """The values that all rows share: ``mpi · MPICH 5.0.2 · native · 4 ranks``."""
    parts = []
    for name in ("backend", "library", "library_version", "binding", "device", "buffer", "dtype", "op", "ranks"):
        if name in rows and len(rows) and not _varies(rows[name]):
            value = rows[name].iloc[0]
            if not theme.absent(value):
                parts.append(word(name, value))
    return SEPARATOR.join(parts)


def short(rows: pd.DataFrame) -> str:
    """The library and what is unusual, for a title: ``MPICH 5.0.2 · 4 ranks``; the caption has the rest."""
    usual = {"binding": "native", "device": "cpu"}
    name_of = {name: rows[name].iloc[0] for name in FULL_NAME if name in rows and not _varies(rows[name])}
    words = [full_name(name_of)] if "library" in name_of else []
    for name in (*usual, "ranks"):
        if name in rows and not _varies(rows[name]):
            value = rows[name].iloc[0]
            words += [] if theme.absent(value) or value == usual.get(name) else [word(name, value)]
    return SEPARATOR.join(words)


def caption(rows: pd.DataFrame) -> str:
    """Launches, samples, synchronisation, timing and days of the rows."""
    launches, calls, printed = rows["launch_id"].nunique(), rows["iterations"].sum(), statistic(rows) == PRINTED_MEAN
    parts = [common(rows), plural(int(launches), "launch")]
    parts += [plural(int(calls), "call" if printed else "sample")] if calls else []
    parts += [PRINTED_MEAN + "s, no samples"] if printed else []
    for name, text in (("process_sync", "sync {}"), ("timing", "timing {}")):
        if name in rows and rows[name].notna().any():
            parts.append(text.format(listed(sorted(rows[name].dropna().unique()))))
    parts.append(days(rows))
    return SEPARATOR.join(part for part in parts if part)


def days(rows: pd.DataFrame) -> str:
    """The day of the rows, or the first and the last."""
    dates = sorted(str(day) for day in rows["date"].dropna().unique()) if "date" in rows else []
    return f"{dates[0]} to {dates[-1]}" if len(dates) > 1 else "".join(dates)

"""Read the store into Arrow and pandas. A file that cannot be read is reported and skipped."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from omb_py.errors import UsageError
from omb_py.results.store import schema
from omb_py.results.store.filters import RANGE, TAGS, check_column
from omb_py.results.store.footer import read_schema, unreadable
from omb_py.results.store.paths import DATE, OnSkip, StoreFile, check_store, entries, files, pass_over
from omb_py.results.store.provenance import MERGED, launches, outdated_launches, read_provenance, why_not
from omb_py.results.store.row import Row
from omb_py.results.store.write import first_line

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.dataset as ds

__all__ = [
    "DATE",
    "OnSkip",
    "SkippedFile",
    "files",
    "load",
    "load_launches",
    "load_table",
    "read_provenance",
    "to_frame",
    "to_rows",
    "typed",
]

_ATTEMPTS = 5
"""A reading is repeated at most this often while files are being merged."""
_FEW_FILES = 64
"""For at most this many matching files, opening them is faster than reading many columns of the index."""
_FEW_COLUMNS = 16
_NO_END = "9999"
"""The last day of ``date=FROM..``."""
_FEW_VALUES = 8
"""At most this many values of a filter become comparisons, which every pyarrow checks against row-group statistics."""

Problems = dict[Path, str]


class SkippedFile(UserWarning):
    """A file of the store could not be read and was left out."""


class _Vanished(Exception):
    """A listed file was merged into another or removed before it was read."""


def _warn(path: Path, why: str) -> None:
    warnings.warn(f"skipped {path}: {why}", SkippedFile, stacklevel=4)


def load(
    store: str | Path = "omb-results",
    *,
    columns: Sequence[str] | None = None,
    on_skip: OnSkip | None = None,
    **filters: object,
) -> pd.DataFrame:
    """The cells of a store, one row each, in order of file.

    Args:
        store: the folder of Parquet files.
        columns: the columns to read; None for all. A big store is fast to read without ``samples_us`` and
            ``samples_avg_us``, because the summary index then has the answer.
        on_skip: called with the path and the reason for each file that cannot be read. By default a
            :class:`SkippedFile` warning is issued.
        **filters: ``column=value``, or ``column=[values]`` to match any of them; None matches nulls. Values are
            converted to the column's type, so they may be text. ``date="2026-11-21"`` reads one folder, and
            ``date="2026-11-01..2026-11-30"`` those of a month; either end may be missing.
            ``started_at`` without a fraction is that whole second. ``tags={"cluster": "a"}`` matches rows that have
            all these tags.

    Returns:
        A DataFrame with the store's columns and ``date``. Integers and booleans have pandas' nullable types, lists are
        NumPy arrays, maps are dicts. Arrow writes no dict without a key into Parquet, so drop ``metrics``,
        ``parameters`` and ``tags`` where ``to_parquet`` says so, or copy the store, which is Parquet.

    Raises:
        UsageError: there is no such folder, a column does not exist, or a value does not fit its column.
    """
    return to_frame(load_table(store, columns=columns, on_skip=on_skip, **filters))


def load_launches(
    store: str | Path, days: Mapping[str, str], *, columns: Sequence[str], **filters: object
) -> pd.DataFrame:
    """The cells of some launches whose days are known. A launch with a file of its own costs the reading of that file,
    however many files the store has.

    Args:
        store: the folder of Parquet files.
        days: launch id -> day of the launch, as in ``date``.
        columns: columns of the store.
        **filters: as of :func:`load`.

    Raises:
        UsageError: as :func:`load`, which reads the launches that have no readable file of their own.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    expression = _expression(filters)
    tables, rest = [], []
    for launch, day in days.items():
        path = Path(store) / f"{DATE}={day}" / f"{launch}.parquet"
        try:
            read_schema(path)
            tables.append(
                pq.read_table(
                    path, columns=list(columns), filters=expression, partitioning=None, page_checksum_verification=True
                )
            )
        except unreadable():
            rest.append(launch)
    if rest or not tables:
        tables.append(load_table(store, columns=columns, on_skip=pass_over, launch_id=rest, **filters))
    return to_frame(pa.concat_tables(tables, promote_options="permissive"))


def load_table(
    store: str | Path = "omb-results",
    *,
    columns: Sequence[str] | None = None,
    on_skip: OnSkip | None = None,
    **filters: object,
) -> pa.Table:
    """Like :func:`load`, but returns an Arrow table."""
    return _load_table(store, [*schema.NAMES, DATE] if columns is None else columns, (), on_skip, filters)


def load_encoded(
    store: Path, columns: Sequence[str], on_skip: OnSkip | None = None, filters: Mapping[str, object] | None = None
) -> pa.Table:
    """Like :func:`load_table`, with texts as dictionaries, which of a big store takes a fifth of the time.

    ``date`` and the columns of filters stay as they are: row-group statistics rule out rows by plain texts only.
    """
    known = filters or {}
    coded = {c.name for c in schema.COLUMNS if c.kind == "string"} - {*known}
    return _load_table(store, columns, coded, on_skip, known)


def _load_table(
    store: str | Path,
    columns: Sequence[str],
    coded: Container[str],
    on_skip: OnSkip | None,
    filters: Mapping[str, object],
) -> pa.Table:
    import pyarrow as pa

    root = Path(store)
    check_store(root)
    wanted = pa.schema(
        (name, pa.dictionary(pa.int32(), pa.string()) if name in coded else schema.arrow_type(_column(name).kind))
        for name in dict.fromkeys(columns)
    )
    expression, days = _expression(filters), _days(filters)
    for attempt in range(_ATTEMPTS):
        reading = _Reading(root, wanted, expression)
        try:
            table = reading.table(days)
            break
        except _Vanished as gone:
            if attempt == _ATTEMPTS - 1:
                raise UsageError(f"the files of {str(root)!r} change all the time ({gone}): repeat later") from None
    skip = _warn if on_skip is None else on_skip
    for path, why in sorted(reading.problems.items()):
        skip(path, why)
    return table.select(columns)


def _column(name: str) -> schema.Column:
    """The column of this name; ``date`` is one too. Raises UsageError with the nearest name."""
    if name == DATE:
        return schema.Column(DATE, "string", "day of the launch, UTC")
    check_column(name, f'filter by tags={{"{name}": "VALUE"}}')
    return schema.BY_NAME[name]


def _expression(filters: Mapping[str, object]) -> ds.Expression | None:
    """The conjunction of all filters; None when there is no filter.

    Raises UsageError when a column does not exist or cannot be filtered, or when a value does not fit it.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    combined: ds.Expression | None = None
    for name, wanted in filters.items():
        column = _column(name)
        if name == TAGS and isinstance(wanted, Mapping):
            combined = _match_all(combined, *(_match_tag(key, value) for key, value in wanted.items()))
            continue
        if name not in (*schema.SCALARS, DATE):
            how = f'; as {name}={{"K": "V"}}' if name == TAGS else ""
            raise UsageError(f"cannot filter by {name}, which holds {column.contents}{how}")
        values = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
        spans = [v for v in values if name == DATE and RANGE in str(v)]
        seconds = [v for v in values if column.kind == "time" and isinstance(v, str) and "." not in v]
        known = [typed(column, v) for v in values if v is not None and v not in (*spans, *seconds)]
        kind = schema.arrow_type(column.kind)
        if 0 < len(known) <= _FEW_VALUES:
            equal = (ds.field(name) == pa.scalar(value, type=kind) for value in known)
            condition = functools.reduce(operator.or_, equal)
        else:
            condition = ds.field(name).isin(pa.array(known, type=kind))
        for first, last in map(_span, spans):
            condition = condition | ((ds.field(name) >= pa.scalar(first)) & (ds.field(name) <= pa.scalar(last)))
        for second in (cast("datetime", typed(column, v)) for v in seconds):  # as lists show it, without its fraction
            end = second + timedelta(seconds=1)
            condition = condition | ((ds.field(name) >= pa.scalar(second)) & (ds.field(name) < pa.scalar(end)))
        if any(v is None for v in values):
            condition = condition | ds.field(name).is_null()
        combined = _match_all(combined, condition)
    return combined


def _match_tag(key: str, value: str) -> ds.Expression:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    held: ds.Expression = pc.map_lookup(ds.field(TAGS), pa.scalar(key), "first")
    return held == pa.scalar(value)


def _match_all(*conditions: ds.Expression | None) -> ds.Expression | None:
    given = [condition for condition in conditions if condition is not None]
    return functools.reduce(operator.and_, given) if given else None


def _days(filters: Mapping[str, object]) -> list[tuple[str, str]] | None:
    """The spans of days that a filter on ``date`` selects; None when it selects all."""
    wanted = filters.get(DATE)
    days = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, (list, tuple, set)) else [None]
    return None if None in days else [*map(_span, days)]


def _span(days: object) -> tuple[str, str]:
    """First and last day of ``FROM..TO``, or of a single day."""
    first, dots, last = str(days).partition(RANGE)
    return first, last or (_NO_END if dots else first)


def typed(column: schema.Column, value: object) -> object:
    """Convert a value, which may be text, to the type of a column. Raises UsageError when it does not fit."""
    import pyarrow as pa

    kind = schema.arrow_type(column.kind)
    try:
        if column.kind == "time":
            return schema.in_utc(value)
        if isinstance(value, str) and column.kind != "string":
            return pa.scalar(value).cast(kind).as_py()
        return pa.scalar(value, type=kind).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise UsageError(f"{column.name} holds {column.contents}, which {value!r} is not") from None


def distinct_tags(column: pa.ChunkedArray) -> set[tuple[str, str]]:
    """Each key and value of a column of tags, once."""
    import pyarrow as pa

    pairs = [pa.table([chunk.keys, chunk.items], ["key", "value"]) for chunk in column.chunks]
    if not pairs:
        return set()
    tags = pa.concat_tables(pairs).group_by(["key", "value"]).aggregate([]).to_pydict()
    return set(zip(tags["key"], tags["value"], strict=True))


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Convert a table of the store to a DataFrame with nullable integers and booleans, and maps as dicts."""
    import pandas as pd
    import pyarrow as pa

    kinds = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame: pd.DataFrame = table.to_pandas(types_mapper=kinds.get, maps_as_pydicts="strict")
    return frame


def to_rows(table: pa.Table) -> list[Row]:
    """Convert a table of the store to rows of plain Python values, with times as ISO text and maps as dicts."""
    rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
    for row in rows:
        if row.get("started_at") is not None:
            row["started_at"] = row["started_at"].isoformat()
    return cast("list[Row]", rows)


@dataclass(slots=True)
class _Reading:
    """One attempt at reading the columns `wanted` of the rows that fit; what it cannot read is among the problems."""

    root: Path
    wanted: pa.Schema
    expression: ds.Expression | None
    problems: Problems = field(default_factory=dict)
    listed: Sequence[StoreFile] = ()
    """All files of the store."""

    @property
    def with_samples(self) -> bool:
        return any(name in schema.FLOAT_LISTS for name in self.wanted.names)

    def table(self, days: Sequence[tuple[str, str]] | None) -> pa.Table:
        """The rows of some spans of days, None: of all. Raises _Vanished."""
        from omb_py.results.store import index as summary_index  # loads pyarrow

        self.listed = entries(self.root, self.problems.__setitem__)
        chosen = self.listed
        if days is not None:
            chosen = [entry for entry in self.listed if any(first <= entry.day <= last for first, last in days)]
        if len(self.listed) < summary_index.WORTH or (self.with_samples and self.expression is None):
            return self.direct(chosen)
        return self.indexed(chosen)

    def indexed(self, chosen: Sequence[StoreFile]) -> pa.Table:
        """Read through the index, and what it does not cover from the files."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from omb_py.results.store import index as summary_index

        index = summary_index.refreshed(self.root, self.listed, self.problems.__setitem__)
        covered = [entry for entry in chosen if entry.relative in index.covered]
        missing = index.missing(chosen)
        held = {entry.relative: index.launches_of(entry.relative) for entry in covered}
        outdated = outdated_launches(self.listed, {relative: names for relative, names in held.items() if names})
        order = {entry.relative: number for number, entry in enumerate(self.listed)}
        current = {entry.relative: order[entry.relative] for entry in covered if entry.relative not in outdated}
        # merged files that are new or have outdated launches are rare, and read one by one, as what could not be read
        merged = [entry for entry in missing if entry.path.name.startswith(MERGED)]
        new = [entry for entry in missing if not entry.path.name.startswith(MERGED)]
        partial = [entry for entry in chosen if entry.relative in {*outdated, *index.bad}] + merged
        try:
            if self.expression is not None and (self.with_samples or len(self.wanted) > _FEW_COLUMNS):
                matches = summary_index.read(index, pa.schema([]), self.expression, current)
                numbers = set(matches[summary_index.FILE].unique().to_pylist())
                if len(numbers) + len(missing) <= _FEW_FILES or self.with_samples:
                    matching = [self.listed[number] for number in numbers]
                    paths = sorted([*matching, *new, *partial], key=lambda entry: entry.path)
                    return self.direct(paths)
            tables = [summary_index.read(index, self.wanted, self.expression, current)]
            tables.append(summary_index.read_new(new, self.wanted, self.expression, order, self.problems.__setitem__))
        except FileNotFoundError as error:
            raise _Vanished(first_line(error)) from error
        except unreadable():
            summary_index.discard(self.root)
            return self.direct(chosen)
        for entry in partial:
            part = self.direct([entry])
            tables.append(summary_index.number_rows(part, order[entry.relative]))
        rows = pa.concat_tables(tables).unify_dictionaries()
        places = pc.sort_indices(rows, [(summary_index.FILE, "ascending"), (summary_index.ROW, "ascending")])
        for at, name in enumerate(rows.column_names):  # one at a time, so that a big table does not lie there twice
            rows = rows.set_column(at, name, rows[name].take(places))
        return rows.select(self.wanted.names)

    def direct(self, chosen: Sequence[StoreFile]) -> pa.Table:
        """Read files."""
        good: list[Path] = []
        held: dict[str, tuple[str, ...]] = {}
        for entry in chosen:
            try:
                file_schema = read_schema(entry.path)
            except FileNotFoundError as error:
                raise _Vanished(entry.relative) from error
            except unreadable() as error:
                self.problems[entry.path] = f"not a readable Parquet file ({first_line(error)})"
                continue
            why = why_not(file_schema)
            if why:
                self.problems[entry.path] = why
                continue
            good.append(entry.path)
            if names := tuple(launches(file_schema.metadata)):
                held[entry.relative] = names
        try:
            outdated = outdated_launches(self.listed, held)
        except FileNotFoundError as error:
            raise _Vanished(first_line(error)) from error
        try:
            if not outdated:
                return self.read(good, self.expression)
        except FileNotFoundError as error:
            raise _Vanished(first_line(error)) from error
        except unreadable():
            pass  # a page in some file is damaged: read one by one to skip only that file
        return self.read_one_by_one(good, outdated)

    def read(self, paths: Sequence[Path], expression: ds.Expression | None) -> pa.Table:
        if not paths:
            return self.wanted.empty_table()
        table = _dataset(self.root, paths, self.wanted).to_table(columns=self.wanted.names, filter=expression)
        table.validate(full=True)  # Arrow reads a damaged text as it is, and Python fails much later
        return table.replace_schema_metadata(None)

    def read_one_by_one(self, paths: Iterable[Path], outdated: Mapping[str, Sequence[str]]) -> pa.Table:
        import pyarrow as pa
        import pyarrow.dataset as ds

        tables = [self.read([], None)]
        for path in paths:
            masked = self.expression
            if gone := outdated.get(path.relative_to(self.root).as_posix()):
                kept = ~ds.field("launch_id").isin(pa.array(gone, pa.string()))
                masked = kept if masked is None else masked & kept
            try:
                tables.append(self.read([path], masked))
            except FileNotFoundError as error:
                raise _Vanished(path.name) from error
            except unreadable() as error:
                self.problems[path] = f"damaged ({first_line(error)})"
        return pa.concat_tables(tables)


def _dataset(root: Path, paths: Sequence[Path], wanted: pa.Schema) -> ds.Dataset:
    import pyarrow as pa
    import pyarrow.dataset as ds

    return ds.dataset(
        [str(p) for p in paths],
        schema=schema.replace_fields(schema.arrow_schema().append(pa.field(DATE, pa.string())), wanted),
        format=ds.ParquetFileFormat(
            dictionary_columns=schema.list_dictionaries(wanted),
            # a damaged number is a number: only the sum over its page tells
            default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True),
        ),
        partitioning=ds.partitioning(pa.schema([(DATE, pa.string())]), flavor="hive"),
        partition_base_dir=str(root),
    )

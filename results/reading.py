"""Read the store into pandas. A file that cannot be read is named and skipped, the rest is read."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.results import schema
from omb_py.results.writing import PROVENANCE_KEY, VERSION_KEY, first_line

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.dataset as ds

OnSkip = Callable[[Path, str], None]
"""Called with each file that is left out, and why."""

DATE = "date"
"""The column that is the folder's name, ``date=YYYY-MM-DD``."""


class SkippedFile(UserWarning):
    """A file of the store could not be read and was left out."""


def _warn(path: Path, why: str) -> None:
    warnings.warn(f"skipped {path}: {why}", SkippedFile, stacklevel=4)


def files(store: str | Path) -> list[Path]:
    """The Parquet files of a store, sorted by path; hidden files and folders are not part of it."""
    root = Path(store)
    found = (p for p in root.rglob("*.parquet") if p.is_file())
    return sorted(p for p in found if not any(part.startswith(".") for part in p.relative_to(root).parts))


def read_provenance(path: str | Path) -> dict[str, Any]:
    """The provenance of a launch's file; empty when it has none. Raises EnvironmentProblem when it is not readable."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
        found = json.loads(metadata.get(PROVENANCE_KEY, b"{}"))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise EnvironmentProblem(f"cannot read {str(path)!r}: {first_line(error)}") from error
    return found if isinstance(found, dict) else {}


def load(
    store: str | Path = "omb-results",
    *,
    columns: Sequence[str] | None = None,
    on_skip: OnSkip | None = None,
    **filters: Any,
) -> pd.DataFrame:
    """The cells of a store, one row each, in order of file.

    Args:
        store: the folder of Parquet files.
        columns: only these; all when None. Leaving out ``samples_us`` and ``samples_avg_us`` makes big stores fast.
        on_skip: called with the path and the reason for each file that cannot be read; by default a
            :class:`SkippedFile` warning.
        **filters: ``column=value``, or ``column=[values]`` for any of them; None finds nulls. Values are converted to
            the column's type, so text from a command line will do. ``date="2026-11-21"`` reads one folder.

    Returns:
        A DataFrame with the store's columns and ``date``. Integers and booleans are pandas' nullable kinds, lists are
        NumPy arrays, maps are dicts.

    Raises:
        UsageError: there is no such folder; a column or a value that the store cannot have.
    """
    return to_frame(load_table(store, columns=columns, on_skip=on_skip, **filters))


def load_table(
    store: str | Path = "omb-results",
    *,
    columns: Sequence[str] | None = None,
    on_skip: OnSkip | None = None,
    **filters: Any,
) -> pa.Table:
    """As :func:`load`, as an Arrow table."""
    import pyarrow as pa

    root = Path(store)
    if not root.is_dir():
        raise UsageError(f"no store at {str(root)!r}")
    wanted = [*schema.NAMES, DATE] if columns is None else list(columns)
    for name in wanted:
        _column(name)
    expression = _expression(filters)
    skip = _warn if on_skip is None else on_skip
    known = schema.arrow_schema()
    good = [path for path in _of_days(files(root), filters) if _is_ours(path, known, skip)]
    try:
        return _read(root, good, wanted, expression)
    except (OSError, pa.ArrowException):
        # a page inside some file is broken: find out which, keep the others
        return _read_one_by_one(root, good, wanted, expression, skip)


def to_frame(table: pa.Table) -> pd.DataFrame:
    """A table of the store as a DataFrame: nullable integers and booleans, maps as dicts."""
    import pandas as pd
    import pyarrow as pa

    kinds = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame: pd.DataFrame = table.to_pandas(types_mapper=kinds.get, maps_as_pydicts="strict")
    return frame


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """A table of the store as rows: plain Python values, times as ISO text, maps as dicts."""
    rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
    for row in rows:
        if row.get("started_at") is not None:
            row["started_at"] = row["started_at"].isoformat()
    return rows


def _of_days(paths: Iterable[Path], filters: Mapping[str, Any]) -> list[Path]:
    """Without the files of other days than a filter on ``date`` wants, so that they need not be opened."""
    wanted = filters.get(DATE)
    days = {wanted} if isinstance(wanted, str) else set(wanted) if isinstance(wanted, (list, tuple, set)) else None
    if days is None or None in days:
        return list(paths)
    folders = {f"{DATE}={day}" for day in days}
    return [path for path in paths if folders.intersection(path.parts)]


def _is_ours(path: Path, known: pa.Schema, skip: OnSkip) -> bool:
    why = _why_not(path, known)
    if why:
        skip(path, why)
    return not why


def _why_not(path: Path, known: pa.Schema) -> str:
    """Why a file cannot be read as part of a store with the `known` schema; empty when it can."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        return f"not a readable Parquet file ({first_line(error)})"
    version = (found.metadata or {}).get(VERSION_KEY)
    if version is None:
        return "not written by omb-py"
    try:
        number = int(json.loads(version))
    except (ValueError, TypeError):
        return f"its schema version is {version.decode(errors='replace')!r}"
    if number > schema.SCHEMA_VERSION:
        return f"its schema version is {number}, this omb-py knows up to {schema.SCHEMA_VERSION}: update omb-py"
    if found.equals(known):
        return ""
    for field in found:
        column = schema.BY_NAME.get(field.name)
        if column is not None and field.type != schema.arrow_type(column.kind):
            return f"column {field.name} is {field.type}, not {column.arrow}"
    return ""


def _dataset(root: Path, paths: Sequence[Path]) -> ds.Dataset:
    import pyarrow as pa
    import pyarrow.dataset as ds

    return ds.dataset(
        [str(p) for p in paths],
        schema=schema.arrow_schema().append(pa.field(DATE, pa.string())),
        format="parquet",
        partitioning=ds.partitioning(pa.schema([(DATE, pa.string())]), flavor="hive"),
        partition_base_dir=str(root),
    )


def _read(root: Path, paths: Sequence[Path], columns: list[str], expression: ds.Expression | None) -> pa.Table:
    import pyarrow as pa

    if not paths:
        fields = [pa.field(n, pa.string() if n == DATE else schema.arrow_type(_column(n).kind)) for n in columns]
        return pa.schema(fields).empty_table()
    table = _dataset(root, paths).to_table(columns=columns, filter=expression)
    return table.replace_schema_metadata(None)


def _read_one_by_one(
    root: Path, paths: Iterable[Path], columns: list[str], expression: ds.Expression | None, skip: OnSkip
) -> pa.Table:
    import pyarrow as pa

    tables = [_read(root, [], columns, None)]
    for path in paths:
        try:
            tables.append(_read(root, [path], columns, expression))
        except (OSError, pa.ArrowException) as error:
            skip(path, f"damaged ({first_line(error)})")
    return pa.concat_tables(tables)


def column_value(name: str, value: Any) -> Any:
    """A value in the type of a column; text is converted. Raises UsageError on an unknown column or a wrong value."""
    return _value(_column(name), value)


def _column(name: str) -> schema.Column:
    if name == DATE:
        return schema.Column(DATE, "string", "day of the launch, UTC")
    found = schema.BY_NAME.get(name)
    if found is None:
        raise UsageError(f"the store has no column {name!r}: {nearest(name, [*schema.NAMES, DATE])}")
    return found


def _expression(filters: Mapping[str, Any]) -> ds.Expression | None:
    import pyarrow as pa
    import pyarrow.dataset as ds

    combined: ds.Expression | None = None
    for name, wanted in filters.items():
        column = _column(name)
        if name not in (*schema.SCALARS, DATE):
            raise UsageError(f"cannot filter by {name}, which holds a {column.arrow}")
        values = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
        known = [_value(column, v) for v in values if v is not None]
        part = ds.field(name).isin(pa.array(known, type=schema.arrow_type(column.kind)))
        if len(known) < len(values):
            part = part | ds.field(name).is_null()
        combined = part if combined is None else combined & part
    return combined


def _value(column: schema.Column, value: Any) -> Any:
    """A filter's value in the column's type."""
    import pyarrow as pa

    kind = schema.arrow_type(column.kind)
    try:
        if isinstance(value, str) and column.kind != "string":
            return pa.scalar(value).cast(kind).as_py()
        return pa.scalar(value, type=kind).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise UsageError(f"{column.name} holds {column.arrow}, which {value!r} is not") from None

"""The columns of the store: name, type and meaning of each.

All is derived from :class:`omb_py.results.store.row.Row`: the pyarrow schema, an empty row, the table of docs/store.md.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast

from omb_py.results.store.row import REQUIRED, Row

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1
"""Version of the columns. A file of a newer version is refused."""

Kind = Literal["string", "int32", "int64", "float64", "bool", "time", "floats", "strings", "numbers", "texts"]
"""``time``: timestamp in µs, UTC; ``floats``: list of float32; ``strings``: list of string; ``numbers``: map of
string to float64; ``texts``: map of string to string."""

_ARROW_NAMES: Mapping[Kind, str] = {
    "time": "timestamp[us, UTC]",
    "floats": "list<float32>",
    "strings": "list<string>",
    "numbers": "map<string, float64>",
    "texts": "map<string, string>",
}

_PYTHON_TYPES: tuple[tuple[Any, Kind], ...] = (
    (str, "string"),
    (int, "int64"),
    (float, "float64"),
    (bool, "bool"),
    (str | datetime, "time"),
    (Sequence[float], "floats"),
    (Sequence[str], "strings"),
    (dict[str, float], "numbers"),
    (dict[str, str], "texts"),
)

_WORDS: Mapping[Kind, str] = {
    "string": "text",
    "int32": "whole numbers of 32 bits",
    "int64": "whole numbers",
    "float64": "numbers",
    "bool": "true or false",
    "time": "times, as 2026-11-21 22:17:55",
    "floats": "lists of numbers",
    "strings": "lists of texts",
    "numbers": "numbers with names",
    "texts": "texts with names",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the store. Its name ends in its unit."""

    name: str
    kind: Kind
    doc: str
    """The meaning, for docs/store.md."""
    required: bool = False
    """Whether null is forbidden."""

    @property
    def arrow(self) -> str:
        """Name of the Arrow type, as shown to users."""
        return _ARROW_NAMES.get(self.kind, self.kind)

    @property
    def contents(self) -> str:
        """What it holds, in words for a message."""
        return _WORDS[self.kind]


def _columns() -> tuple[Column, ...]:
    kinds = {type_: kind for python, kind in _PYTHON_TYPES for type_ in (python, python | None)}
    columns = []
    for name, annotation in Row.__annotations__.items():
        *kind, doc = annotation.__metadata__
        columns.append(Column(name, kind[0] if kind else kinds[annotation.__origin__], doc, name in REQUIRED))
    return tuple(columns)


COLUMNS = _columns()
BY_NAME: Mapping[str, Column] = {c.name: c for c in COLUMNS}
NAMES: tuple[str, ...] = tuple(BY_NAME)
FLOAT_LISTS: tuple[str, ...] = tuple(c.name for c in COLUMNS if c.kind == "floats")
SCALARS: tuple[str, ...] = tuple(c.name for c in COLUMNS if c.kind not in ("floats", "strings", "numbers", "texts"))


def blank_row() -> Row:
    """A row in which every column is None."""
    return cast(Row, dict.fromkeys(NAMES))


def in_utc(value: object) -> datetime:
    """A time in UTC, from ISO text or a datetime; without a zone it counts as UTC. Raises ValueError."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        raise ValueError(f"not a time: {value!r}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def value_of(row: Row, column: str) -> Any:
    """The value of a column whose name is known only at run time; None where the row lacks it."""
    return cast(Mapping[str, object], row).get(column)


def stored_floats(values: Iterable[float] | None) -> list[float]:
    """The numbers of a list column as the store keeps them, in 32 bits; so the text of a run is that of its export.

    >>> stored_floats([0.1, 123456.785])
    [0.1, 123456.78]
    """
    return [] if values is None else [*map(_shortest, array("f", values))]


def _shortest(kept: float) -> float:
    """The shortest decimals that mean the same 32 bits; nine digits always do."""
    for digits in (6, 7, 8):
        if array("f", [value := float(f"{kept:.{digits}g}")])[0] == kept:
            return value
    return float(f"{kept:.9g}")


def complete_row(row: Row) -> Row:
    """The row with all columns; absent ones are None.

    Raises ValueError when a column does not exist or a required one is missing. Either is a fault of the program.
    """
    unknown = [name for name in row if name not in BY_NAME]
    if unknown:
        raise ValueError("not a column of the store: " + ", ".join(unknown))
    missing = [c.name for c in COLUMNS if c.required and row.get(c.name) is None]
    if missing:
        raise ValueError("a row lacks " + ", ".join(missing))
    return cast(Row, {name: row.get(name) for name in NAMES})


class _Without:
    """A finder that does not find a package."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == self._package:
            raise ModuleNotFoundError("not needed for writing", name=name)


@contextmanager
def _hide_package(package: str) -> Iterator[None]:
    finder = _Without(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def spare_numpy() -> None:
    """Load Arrow without NumPy, which takes twice as long, unless NumPy is loaded.

    For a process that only writes: its Arrow takes no arrays of NumPy and makes none.
    """
    if "numpy" not in sys.modules:
        with _hide_package("numpy"):
            import_module("pyarrow")


def _spare_pandas() -> None:
    """Let pyarrow look for pandas while there is none: with the first value it would import it, for writing in vain.

    It looks again where pandas is needed, as in ``to_pandas``.
    """
    import pyarrow as pa

    if "pandas" not in sys.modules:
        with _hide_package("pandas"):
            pa.scalar(0, pa.int64())  # a type that it must find would load dateutil


@cache
def _arrow_types() -> Mapping[Kind, pa.DataType]:
    import pyarrow as pa

    _spare_pandas()
    return {
        "string": pa.string(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
        "floats": pa.list_(pa.float32()),
        "strings": pa.list_(pa.string()),
        "numbers": pa.map_(pa.string(), pa.float64()),
        "texts": pa.map_(pa.string(), pa.string()),
    }


def arrow_type(kind: Kind) -> pa.DataType:
    """The Arrow type of the columns of this kind."""
    return _arrow_types()[kind]


@cache
def arrow_schema() -> pa.Schema:
    """The schema of a launch's file. Every field is nullable, so that files of other versions can be read."""
    import pyarrow as pa

    return pa.schema([pa.field(c.name, arrow_type(c.kind)) for c in COLUMNS])


def replace_fields(whole: pa.Schema, fields: pa.Schema) -> pa.Schema:
    """`whole` with each of the `fields` in the place of that of its name."""
    import pyarrow as pa

    own = {field.name: field for field in fields}
    return pa.schema([own.get(field.name, field) for field in whole])


def list_dictionaries(fields: pa.Schema) -> list[str]:
    """Names of the fields that are dictionaries."""
    import pyarrow as pa

    return [field.name for field in fields if pa.types.is_dictionary(field.type)]


def fitted(table: pa.Table, target: pa.Schema) -> pa.Table:
    """The table with exactly the columns of `target`; those that it lacks are null."""
    import pyarrow as pa

    present = dict(zip(table.column_names, table.columns, strict=True))
    columns = [present[f.name] if f.name in present else pa.nulls(table.num_rows, f.type) for f in target]
    return pa.table(columns, schema=target)

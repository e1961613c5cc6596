"""Names of cells in print: benchmark and size, and the columns that distinguish cells of the same name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from omb_py.results.store.row import Row
from omb_py.results.store.schema import value_of
from omb_py.results.units import counted, size_text

_NOUNS: Mapping[str, str] = {"ranks": "rank", "nodes": "node", "threads": "thread", "devices": "device"}
"""Column of a number -> what is counted."""
_WORDS: Mapping[str, str] = {
    "window": "window {}",
    "batch": "batch {}",
    "in_place": "in place {}",
    "root": "root {}",
    "process_sync": "sync {}",
    "thread_level": "level {}",
    "cache": "cache {}",
}
"""Column -> format of its value in a name."""
_TELLING = tuple(
    (
        "backend binding ranks nodes device buffer dtype op in_place root window threads process_sync timing "
        "cache datatype_layout batch metric parameters"
    ).split()
)
"""Columns that may distinguish cells of one benchmark and size."""
COLUMNS = ("benchmark", "size_bytes", *_TELLING)
"""Columns that a row needs for its name."""


def name(row: Row) -> str:
    """Name a row by benchmark and size, as ``allreduce 1 KiB``; without a size by the benchmark alone."""
    size = row.get("size_bytes")
    return f"{row['benchmark']} {size_text(size)}" if size else str(row["benchmark"])


def namer(rows: Iterable[Row]) -> Callable[[Row], str]:
    """Make the function that names rows so that they differ: ``allreduce 1 KiB, 4 ranks`` beside one on 2 ranks.

    Args:
        rows: one row of each cell that may be named.
    """
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(name(row), []).append(row)
    varying: dict[str, dict[str, None]] = {}
    for alike in by_name.values():
        columns = [column for column in _TELLING if len({_describe_value(column, row) for row in alike}) > 1]
        varying.setdefault(str(alike[0]["benchmark"]), {}).update(dict.fromkeys(columns))

    def named(row: Row) -> str:
        columns = varying.get(str(row["benchmark"]), {})
        return ", ".join([name(row), *filter(None, (_describe_value(column, row) for column in columns))])

    return named


def _describe_value(column: str, row: Row) -> str:
    value = value_of(row, column)
    if value is None:
        return ""
    if column == "parameters":
        return " ".join(f"{key}={value[key]}" for key in sorted(dict(value)) if key != "pass")
    return value_text(column, value)


def value_text(column: str, value: Any) -> str:
    """The value of a column in a name.

    >>> value_text("ranks", 1), value_text("ranks_per_node", 4), value_text("root", 0), value_text("dtype", "char")
    ('1 rank', '4 ranks a node', 'root 0', 'char')
    """
    if column == "ranks_per_node":
        return f"{counted(value, 'rank')} a node"
    noun = _NOUNS.get(column)
    return counted(value, noun) if noun else _WORDS.get(column, "{}").format(value)

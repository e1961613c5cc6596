"""Export rows as CSV, JSON, the text of OMB, nccl-tests or IMB, pytest-benchmark's JSON, or OpenMetrics."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from omb_py.errors import UsageError
from omb_py.printing.openmetrics import to_openmetrics
from omb_py.printing.pytest_benchmark import to_benchmark_json
from omb_py.results.caveats import caveat_text
from omb_py.results.dialects.imb.groups import to_imb_multi
from omb_py.results.dialects.imb.text import to_imb
from omb_py.results.dialects.nccl.text import to_nccl
from omb_py.results.dialects.omb.text import closing, text_of
from omb_py.results.dialects.omb.windows import Windows, is_varied
from omb_py.results.json_values import plain
from omb_py.results.store import schema
from omb_py.results.throttling import throttled_text

Row = Mapping[str, Any]
Provenance = Callable[[str], Mapping[str, Any]]
"""Launch -> its facts."""
Writer = Callable[[Sequence[Row], Provenance], str]

CAVEATS = "caveats"
"""The column of a CSV file that says in words what :func:`omb_py.results.caveats.caveats` finds."""
THROTTLED = "throttled"
"""The column that says whether processors or GPUs were slowed down (``--energy``)."""
CSV_COLUMNS: tuple[str, ...] = (*(c.name for c in schema.COLUMNS if c.kind != "floats"), THROTTLED, CAVEATS)
"""The columns of a CSV file: all but the lists of samples, which JSON and Parquet have; throttling and caveats."""


def to_csv(rows: Iterable[Row]) -> str:
    """Comma-separated values with a head. Numbers have full precision, maps and host lists are JSON, nulls are empty.

    The lists of samples are left out.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in rows:
        cells = {**row, THROTTLED: throttled_text(row), CAVEATS: caveat_text(row)}
        writer.writerow([_csv_cell(plain(cells.get(name))) for name in CSV_COLUMNS])
    return out.getvalue()


def to_json(rows: Iterable[Row]) -> str:
    """A JSON list of objects with every column, in full precision. A number that is not finite becomes null."""
    objects = [json.dumps({n: plain(row.get(n)) for n in schema.NAMES}, allow_nan=False) for row in rows]
    return "[" + ",\n".join(objects) + "]\n"


def to_osu(rows: Sequence[Row], percentiles: Sequence[float] = (), full: bool = False) -> str:
    """The rows as OMB would have printed them, with a table for each launch, library, binding and benchmark.

    Args:
        rows: rows of the store.
        percentiles: percentiles to print, 0 to 100.
        full: whether to print Min, Max and Iterations too.

    A table has a Validation column when any of its rows was validated. A benchmark that OMB does not have gets a table
    in the same style.
    """
    out: list[str] = []
    for table in _tables(rows):
        checked = any(row.get("validated") is not None for row in table)
        if is_varied(table[0]):
            windows = Windows(checked)
            out += [*map(windows.row, table), windows.end()]
            continue
        text = text_of(table[0], full, checked, percentiles)
        dtype: str | None = None
        for index, row in enumerate(table):
            if index == 0 or row.get("dtype") != dtype:
                dtype = row.get("dtype")
                out.append(text.header(dtype, first=index == 0))
            out.append(text.row(row))
            if row.get("validated") is False:
                out.append(text.failure(row, (row.get("parameters") or {}).get("program", "omb-py")))
        out.append(closing(text, table))
    return "".join(out)


def _to_nccl(rows: Sequence[Row], provenance: Provenance) -> str:
    text = to_nccl(rows, provenance)
    if rows and not text:
        raise UsageError("none of these rows is of a collective that nccl-tests has")
    return text


def _of_rows(write: Callable[[Sequence[Row]], str]) -> Writer:
    """A writer that needs no facts of the launches."""
    return lambda rows, provenance: write(rows)


FORMATS: Mapping[str, Writer] = {
    "csv": _of_rows(to_csv),
    "json": _of_rows(to_json),
    "osu": _of_rows(to_osu),
    "nccl-tests": _to_nccl,
    "imb": _of_rows(to_imb),
    "imb-multi": _of_rows(to_imb_multi),
    "pytest-benchmark": _of_rows(to_benchmark_json),
    "openmetrics": _of_rows(to_openmetrics),
}


def export(rows: Sequence[Row], form: str, provenance: Provenance = lambda launch_id: {}) -> str:
    """The rows in one of :data:`FORMATS`. Raises UsageError for an unknown format.

    Args:
        rows: rows of the store.
        form: name of the format.
        provenance: the facts of a launch; nccl-tests' text names the devices that are in them.
    """
    if form not in FORMATS:
        raise UsageError(f"unknown format {form!r}: valid: {', '.join(FORMATS)}")
    return FORMATS[form](rows, provenance)


def _csv_cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return json.dumps(value, sort_keys=True)
    return value


_ONE_TABLE = tuple(
    (
        "launch_id benchmark backend library_version binding device buffer op window root process_sync cache "
        "threads datatype_layout in_place"
    ).split()
)
"""Rows that are equal in these columns share a table."""


def _tables(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each table, in order of first appearance."""
    grouped: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        options = tuple(sorted((row.get("parameters") or {}).items()))
        alike = (name for name in _ONE_TABLE if name != "window" or not is_varied(row))
        key = (*(row.get(name) for name in alike), options)
        grouped.setdefault(key, []).append(row)
    return list(grouped.values())

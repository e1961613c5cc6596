"""Export rows as CSV, JSON, the text of OMB, nccl-tests or IMB, pytest-benchmark's JSON, or OpenMetrics."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from omb_py.errors import UsageError
from omb_py.printing.openmetrics import to_openmetrics
from omb_py.printing.pytest_benchmark import has_times, to_benchmark_json
from omb_py.results.caveats import caveat_text
from omb_py.results.dialects.dialect import Provenances
from omb_py.results.dialects.registry import DIALECTS
from omb_py.results.json_values import plain
from omb_py.results.store import schema
from omb_py.results.store.row import Row

_FORMULA = re.compile(r"\s*[=+@\-]")
Writer = Callable[[Sequence[Row], Provenances], str]

CAVEATS = "caveats"
"""The column of a CSV file that says in words what :func:`omb_py.results.caveats.caveats` finds."""
THROTTLED = "throttled"
"""The column that says whether processors or GPUs were slowed down (``--energy``)."""
CSV_COLUMNS: tuple[str, ...] = (*(c.name for c in schema.COLUMNS if c.kind != "floats"), THROTTLED, CAVEATS)
"""The columns of a CSV file: all but the lists of samples, which JSON and Parquet have; throttling and caveats."""


def to_csv(rows: Iterable[Row]) -> str:
    """Comma-separated values with a head. Numbers have full precision, maps and host lists are JSON, nulls are empty.

    No text is a formula to a spreadsheet.

    The lists of samples are left out.
    """
    from omb_py.engine.observers.energy import throttled_text  # loads NumPy

    every = ({**row, THROTTLED: throttled_text(row), CAVEATS: caveat_text(row)} for row in rows)
    return csv_text(CSV_COLUMNS, ([plain(cells.get(name)) for name in CSV_COLUMNS] for cells in every))


def csv_text(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table as comma-separated values, in the words of :func:`to_csv`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([_csv_cell(value) for value in line] for line in lines)
    return out.getvalue()


def to_json(rows: Iterable[Row]) -> str:
    """A JSON list of objects with every column, in full precision. A number that is not finite becomes null."""
    objects = [json.dumps({n: plain(row.get(n)) for n in schema.NAMES}, allow_nan=False) for row in rows]
    return "[" + ",\n".join(objects) + "]\n"


def _write_rows(write: Callable[[Sequence[Row]], str]) -> Writer:
    return lambda rows, provenance: write(rows)


FORMATS: Mapping[str, Writer] = {
    "csv": _write_rows(to_csv),
    "json": _write_rows(to_json),
    **{dialect.name: dialect.export for dialect in DIALECTS if dialect.name and dialect.exports},
    "pytest-benchmark": _write_rows(to_benchmark_json),
    "openmetrics": _write_rows(to_openmetrics),
}


def export(rows: Sequence[Row], form: str, provenance: Provenances = lambda launch_id: {}) -> str:
    """The rows in one of :data:`FORMATS`. Raises UsageError for an unknown format.

    Args:
        rows: rows of the store.
        form: name of the format.
        provenance: the facts of a launch; nccl-tests' text names the devices that are in them.
    """
    if form not in FORMATS:
        raise UsageError(f"unknown format {form!r}: valid: {', '.join(FORMATS)}")
    return FORMATS[form](rows, provenance)


_SHOWS: Mapping[str, Callable[[Row], bool]] = {
    **{dialect.name: dialect.shows for dialect in DIALECTS if dialect.name and dialect.exports},
    "pytest-benchmark": has_times,
}
"""Formats that have no place for some rows -> whether they have one for a row."""


def left_out(rows: Sequence[Row], form: str) -> Mapping[str, int]:
    """How many rows of each benchmark a format leaves out."""
    shows = _SHOWS.get(form)
    return Counter(str(row["benchmark"]) for row in rows if shows and not shows(row))


def _csv_cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return json.dumps(value, sort_keys=True)
    return without_formula(value) if isinstance(value, str) else value


def without_formula(text: str) -> str:
    """A text for a CSV file, with an apostrophe in front where a spreadsheet would run it as a formula.

    >>> without_formula("=1+1"), without_formula("Open MPI")
    ("'=1+1", 'Open MPI')
    """
    return f"'{text}" if _FORMULA.match(text) else text

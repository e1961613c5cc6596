"""OMB's tables, row by row and of stored rows; also the two of ``mbw_mr -V``, with a column for each window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omb_py.engine.program.dtypes import DTYPES
from omb_py.results.caveats import caveat_line
from omb_py.results.dialects.dialect import TextOptions, Transcript
from omb_py.results.dialects.omb.text import (
    closing,
    details,
    lacks_ranks,
    message_rate,
    parameters_of,
    printed_rate,
    text_of,
)
from omb_py.results.dialects.omb.titles import TITLES, version_of
from omb_py.results.store.row import Row

WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)
_SIZE, _FIELD = 7, 10


def is_varied(row: Row) -> bool:
    """Whether a row belongs to a sweep over window sizes."""
    return parameters_of(row).get("vary_window") == "True"


class WindowTables:
    """Writes the first table line by line, and keeps the second until the end.

    A line ends with the last window, or with the first one that failed its validation.
    """

    def __init__(self, validation: bool) -> None:
        self.validation = validation
        """Whether lines end with the result of the validation, Pass or Fail."""
        self._dtype: str | None = None
        self._line: list[Row] = []
        self._rates: list[list[Row]] = []

    def row(self, row: Row) -> str:
        """The text to print after a finished cell; empty until the line is complete."""
        text = ""
        if self._dtype != row["dtype"]:
            first = self._dtype is None
            text = (_title(row) if first else self.end()) + self._head(row)
            self._dtype = row["dtype"]
        self._line.append(row)
        failed = row["validated"] is False
        if row["window"] == WINDOWS[-1] or failed:
            text += self._text(self._line, [printed_rate(r) for r in self._line])
            self._rates.append(self._line)
            self._line = []
        if failed:
            size = row["size_bytes"]
            program = parameters_of(row).get("program", f"omb-py {row['benchmark']}")
            text += f"DATA VALIDATION ERROR: {program} exited with status 1 on message size {size}.\n"
        return text

    def end(self) -> str:
        """The second table, after the line of the first one that an interruption cut off."""
        text, rates = "", self._rates
        if self._line:
            text = self._text(self._line, [printed_rate(r) for r in self._line])
            rates = [*rates, self._line]
        self._rates, self._line = [], []
        if not rates or parameters_of(rates[0][0]).get("print_rate") == "0":
            return text
        text += "\n# Message Rate Profile\n" + self._heads()
        return text + "".join(self._text(line, [message_rate(row) for row in line], False) for line in rates)

    def _head(self, row: Row) -> str:
        lines = ["", "# Uni-directional Bandwidth (MB/sec)", f"# Datatype: {DTYPES[row['dtype']].mpi}."]
        return "\n".join(lines) + "\n" + self._heads(self.validation)

    @staticmethod
    def _heads(validation: bool = False) -> str:
        verdict = f"  {'Validation':>{_FIELD}}" if validation else ""
        return f"{'#':<{_SIZE}}" + "".join(f"  {window:>{_FIELD}}" for window in WINDOWS) + verdict + "\n"

    def _text(self, line: list[Row], values: list[float], verdict: bool = True) -> str:
        cells = [f"{line[0]['size_bytes']:<{_SIZE}d}", *(f"  {value:{_FIELD}.2f}" for value in values)]
        if self.validation and verdict:
            cells.append(f"  {'Fail' if any(row['validated'] is False for row in line) else 'Pass':>{_FIELD}}")
        return "".join(cells) + "\n"


def _title(row: Row) -> str:
    return (
        "\n".join([TITLES[row["benchmark"]].line("", version_of(row.get("text_dialect")).text), *details(row)]) + "\n"
    )


class OmbTranscript(Transcript):
    """OMB's text: each type, request and launch gets a header of its own."""

    def __init__(self) -> None:
        self._table: tuple[object, ...] | None = None
        self._dtype: str | None = None
        self._windows: WindowTables | None = None
        self._rows: list[Row] = []
        """The rows of the table that is being printed."""

    def row(self, row: Row, options: TextOptions) -> str:
        given = tuple(sorted(parameters_of(row).items()))
        table = (row["launch_id"], row["backend"], row["binding"], row["benchmark"], options.sweep, given)
        first, self._table = table != self._table, table
        text = self.end() if first else ""
        if is_varied(row):
            self._windows, self._dtype = self._windows or WindowTables(row["validated"] is not None), None
            return text + self._windows.row(row)
        form = text_of(row, options.full, row["validated"] is not None, options.percentiles, any(options.sizes))
        if options.facts:
            form = replace(form, details=(*form.details, caveat_line(options.facts)))
        if first or row["dtype"] != self._dtype:
            text += form.header(row["dtype"], first)
        self._dtype = row["dtype"]
        self._rows.append(row)
        text += form.row(row)
        return text + form.failure(row, f"omb-py {row['benchmark']}") if row["validated"] is False else text

    def end(self) -> str:
        text = self._windows.end() if self._windows is not None else ""
        if self._rows:
            checked = self._rows[-1]["validated"] is not None
            text += closing(text_of(self._rows[-1], False, checked, ()), self._rows)
        self._windows = None
        self._rows = []
        return text


def to_osu(rows: Sequence[Row], percentiles: Sequence[float] = (), full: bool = False) -> str:
    """The rows as OMB would have printed them, with a table for each launch, library, binding, benchmark and ranks.

    Args:
        rows: rows of the store.
        percentiles: percentiles to print, 0 to 100.
        full: whether to print Min, Max and Iterations too.

    A table has a Validation column when any of its rows was validated. A benchmark that OMB does not have gets a table
    in the same style. Where a benchmark has several numbers of ranks, each table says its own, as those of a run do.
    """
    out: list[str] = []
    ranks: dict[str, set[int]] = {}
    for row in rows:
        ranks.setdefault(row["benchmark"], set()).update([row["ranks"]] if row.get("ranks") else [])
    for table in _tables(rows):
        checked = any(row.get("validated") is not None for row in table)
        if is_varied(table[0]):
            windows = WindowTables(checked)
            out += [*map(windows.row, table), windows.end()]
            continue
        text = text_of(table[0], full, checked, percentiles, any(row["size_bytes"] for row in table))
        if len(ranks[text.benchmark]) > 1 and lacks_ranks(table[0]):
            text = replace(text, details=(*text.details, caveat_line({"ranks": str(table[0]["ranks"])})))
        if "guideline" in (parameters := parameters_of(table[0])):  # both sides have the benchmark's name
            side = f"{parameters['side']} of {parameters['guideline']}"
            text = replace(text, details=(*text.details, caveat_line({"side": side})))
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


_ONE_TABLE = tuple(
    (
        "launch_id benchmark backend library_version binding device buffer op window root process_sync cache ranks "
        "threads datatype_layout in_place"
    ).split()
)
"""Rows that are equal in these columns share a table."""


def _tables(rows: Sequence[Row]) -> list[list[Row]]:
    grouped: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        options = tuple(sorted((row.get("parameters") or {}).items()))
        alike = (name for name in _ONE_TABLE if name != "window" or not is_varied(row))
        key = (*(row.get(name) for name in alike), options)
        grouped.setdefault(key, []).append(row)
    return list(grouped.values())

"""The two tables of OMB's ``mbw_mr -V``, bandwidth and message rate: a row for each size, a column for each window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omb_py.engine.program.dtypes import DTYPES
from omb_py.results.dialects.omb.text import details, message_rate, parameters_of, printed_number
from omb_py.results.dialects.omb.titles import TITLES
from omb_py.results.dialects.omb.versions import dialect

WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)
_SIZE, _FIELD = 7, 10

Row = Mapping[str, Any]


def is_varied(row: Row) -> bool:
    """Whether a row belongs to a sweep over window sizes."""
    return parameters_of(row).get("vary_window") == "True"


class Windows:
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
            text += self._text(self._line, [printed_number(r["value"]) for r in self._line])
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
            text = self._text(self._line, [printed_number(r["value"]) for r in self._line])
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
        "\n".join([TITLES[row["benchmark"]].line("", dialect(row.get("text_dialect")).version), *details(row)]) + "\n"
    )

"""Results on stdout: OMB's text row by row, or a table, CSV or JSON at the end."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

from omb_py.orchestrate.request import Request
from omb_py.orchestrate.soak import pass_of

Row = Mapping[str, Any]


class Printer(Protocol):
    """Where finished rows are shown."""

    def row(self, row: Row) -> None:
        """A cell is finished (and already in the journal)."""

    def close(self) -> None:
        """No row will follow."""


class Osu:
    """OMB's text, each row as soon as it is there; a new header for each type and each launch."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._last: tuple[Any, ...] | None = None

    def row(self, row: Row) -> None:
        """Print the row, after its header if it is the first of a table."""
        from omb_py.results.osu_text import OsuText, lines_before

        request = self.request
        text = OsuText(
            row["benchmark"], request.full, row["validated"] is not None, request.percentiles, before=lines_before(row)
        )
        table = (row["launch_id"], row["backend"], row["binding"], row["benchmark"], pass_of(row))
        if self._last is None or self._last[:-1] != table:
            self._print(text.header(row["dtype"], first=True))
        elif self._last[-1] != row["dtype"]:
            self._print(text.header(row["dtype"], first=False))
        self._last = (*table, row["dtype"])
        self._print(text.row(row))
        if row["validated"] is False:
            self._print(text.failure(row, f"omb-py {row['benchmark']}"))

    def close(self) -> None:
        """Nothing is kept back."""

    @staticmethod
    def _print(text: str) -> None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()


class AtEnd:
    """Table, CSV or JSON: printed when all rows are there."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.rows: list[Row] = []

    def row(self, row: Row) -> None:
        """Keep the row."""
        self.rows.append(row)

    def close(self) -> None:
        """Print what was kept, also after an interruption."""
        from omb_py.results import export

        if self.form == "table":
            from rich.console import Console

            from omb_py.dashboards.terminal import results_table

            # in a pipe or a file nothing may be cut off
            console = Console() if sys.stdout.isatty() else Console(width=1000)
            console.print(results_table(self.rows))
            return
        sys.stdout.write(export.to_csv(self.rows) if self.form == "csv" else export.to_json(self.rows))
        sys.stdout.flush()


class Silent:
    """For the Python API: nothing is shown."""

    def row(self, row: Row) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def printer_of(request: Request, tables: int) -> Printer:
    """The printer of a request; OMB's text gives way to a table when backends or bindings stand side by side."""
    if request.format == "none":
        return Silent()
    if request.format == "osu" and tables == 1:
        return Osu(request)
    return AtEnd("table" if request.format == "osu" else request.format)

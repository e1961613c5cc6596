"""Results on stdout: a tool's text row by row, or a table, CSV or JSON at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from omb_py.backends.registry import capabilities
from omb_py.options.request import SILENT, Request
from omb_py.results.dialects.dialect import Dialect, Row, TextOptions
from omb_py.results.dialects.registry import PLAIN, dialect_of

SizesOf = Callable[[Request], Sequence[int]]


class Printer(Protocol):
    """Shows finished rows."""

    def launch(self, facts: Mapping[str, Any]) -> None:
        """Take the facts of a launch before its first row. Most printers show nothing of them."""
        return

    def row(self, row: Row, request: Request | None = None) -> None:
        """Show the row of a finished cell, which is already in the journal."""

    def close(self) -> None:
        """Finish the output: no row will follow."""


@dataclass(slots=True)
class Kept(Printer):
    """A printer that prints nothing: it keeps the rows, in the order in which they were finished."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def row(self, row: Row, request: Request | None = None) -> None:
        """Keep the row without its samples."""
        self.rows.append({k: v for k, v in row.items() if not isinstance(v, list) or k == "hosts"})

    def close(self) -> None:
        """Do nothing: no output is pending."""


class RowByRow(Printer):
    """The text of a tool, printed as cells are finished."""

    def __init__(self, dialect: Dialect, request: Request, sizes_of: SizesOf) -> None:
        self._text = dialect.transcript()
        self._request, self._sizes_of = request, sizes_of
        self._options: dict[tuple[int, str], TextOptions] = {}
        """(id of a request, backend) -> what the text depends on."""

    def launch(self, facts: Mapping[str, Any]) -> None:
        """Hand the facts on."""
        self._text.launch(facts)

    def row(self, row: Row, request: Request | None = None) -> None:
        """Print what can be printed now. Raises UsageError where the tool has no such row."""
        _write(self._text.row(row, self._options_of(row, request)))

    def _options_of(self, row: Row, request: Request | None) -> TextOptions:
        asked = request or self._request
        key = id(asked), row["backend"]
        if key not in self._options:
            facts = dict(asked.part.varies) if asked.part else {}
            if not capabilities(row["backend"]).omb_text:
                facts = {"backend": row["backend"], "library": f"{row['library']} {row['library_version']}", **facts}
            sizes = self._sizes_of(request) if request else ()
            self._options[key] = TextOptions(asked.full, asked.percentiles, sizes, facts, id(asked))
        return self._options[key]

    def close(self) -> None:
        """Print the end of the text."""
        _write(self._text.end())


def _write(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()


class AtEnd(Printer):
    """Table, CSV or JSON, printed when all rows are there."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.rows: list[Row] = []

    def row(self, row: Row, request: Request | None = None) -> None:
        """Keep the row."""
        self.rows.append(row)

    def close(self) -> None:
        """Print the kept rows, also after an interruption."""
        from omb_py.printing.export import to_csv, to_json

        if self.form == "table":
            from rich.text import Text

            from omb_py.printing.tables import SPARE, results_table
            from omb_py.printing.writers.terminal import fitted, stdout_console
            from omb_py.results.analysis.crossover import sentences

            console = stdout_console()
            tables: dict[str, list[Row]] = {}
            for row in self.rows:
                tables.setdefault(row["benchmark"], []).append(row)
            for rows in tables.values() or [[]]:
                if len({(row["backend"], row.get("device")) for row in rows}) > 1:
                    rows = sorted(rows, key=lambda row: (row["dtype"], row["window"] or 0, row["size_bytes"]))
                table = partial(results_table, rows, None)
                console.print(fitted(table, SPARE, console, "csv"))
                for text in sentences(rows):
                    console.print(Text(text))
            return
        sys.stdout.write(to_csv(self.rows) if self.form == "csv" else to_json(self.rows))
        sys.stdout.flush()


class Drawn(Printer):
    """Another printer, with the curve of each benchmark below its output."""

    def __init__(self, printer: Printer) -> None:
        self.printer = printer
        self.rows: dict[str, list[Row]] = {}
        """Benchmark -> its rows."""

    def launch(self, facts: Mapping[str, Any]) -> None:
        """Hand the facts on."""
        self.printer.launch(facts)

    def row(self, row: Row, request: Request | None = None) -> None:
        """Print the row, and keep it for the curve."""
        self.printer.row(row, request)
        self.rows.setdefault(row["benchmark"], []).append(row)

    def close(self) -> None:
        """Draw the kept rows."""
        from omb_py.printing.plot import curve

        self.printer.close()
        for rows in self.rows.values():
            sys.stdout.write("\n" + curve(rows))
        sys.stdout.flush()


class OverLaunches(Kept):
    """Another printer, with a table over the launches of the run below its output."""

    def __init__(self, printer: Printer) -> None:
        super().__init__()
        self.printer = printer

    def launch(self, facts: Mapping[str, Any]) -> None:
        """Hand the facts on."""
        self.printer.launch(facts)

    def row(self, row: Row, request: Request | None = None) -> None:
        """Print the row, and keep it for the table."""
        self.printer.row(row, request)
        super().row(row, request)

    def close(self) -> None:
        """Print the table, also of the launches before an interruption."""
        from omb_py.printing.launches_text import launches_text

        self.printer.close()
        sys.stdout.write(launches_text(self.rows))
        sys.stdout.flush()
        self.rows.clear()


class Pictured(Drawn):
    """Another printer, with the curves of each benchmark as files in the current folder."""

    def __init__(self, printer: Printer, form: str) -> None:
        """Check that pictures can be drawn before anything is measured. Raises EnvironmentProblem."""
        from omb_py.dashboards.report.image_export import check_drawable

        super().__init__(printer)
        self.form = form
        check_drawable()

    def close(self) -> None:
        """Draw the kept rows."""
        from omb_py.dashboards.report.image_export import save, views_of

        self.printer.close()
        for benchmark, rows in self.rows.items():
            for number, view in enumerate(views_of(rows)):
                path = Path(f"{benchmark}-{rows[0]['run_id']}{f'-{number + 1}' if number else ''}.{self.form}")
                save(view, path)
                print(f"omb-py: drawn: {path}", file=sys.stderr)
        self.rows.clear()


class Silent(Printer):
    """A printer for the Python API, which shows nothing."""

    def row(self, row: Row, request: Request | None = None) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def printer_of(request: Request, tables: int, sizes_of: SizesOf) -> Printer:
    """The printer of a request.

    Args:
        request: the request.
        tables: backends, bindings and devices that stand side by side; a table replaces the usual text of several.
        sizes_of: request -> its message sizes in bytes.
    """
    if request.format == SILENT:
        return Silent()
    dialect = dialect_of(request.format)
    beside = dialect.usual and tables > 1
    printer: Printer
    if dialect is PLAIN or beside:
        printer = AtEnd("table" if beside else request.format)
    else:
        printer = RowByRow(dialect, request, sizes_of)
    return OverLaunches(printer) if request.launches > 1 and (dialect.usual or request.format == "table") else printer


def drawn(printer: Printer, graph: str | None) -> Printer:
    """The printer, which draws too where a request asks for it (``--graph``)."""
    if not graph or isinstance(printer, Silent):
        return printer
    return Drawn(printer) if graph == "tty" else Pictured(printer, graph)

"""Results on stdout: a tool's text row by row, or a table, CSV or JSON at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from omb_py.errors import UsageError
from omb_py.options.request import SILENT, Request
from omb_py.results.dialects.dialect import Dialect, TextOptions
from omb_py.results.dialects.registry import PLAIN, dialect_of
from omb_py.results.store.row import Row

if TYPE_CHECKING:
    from omb_py.engine.rank.launch_facts import LaunchFacts

SizesOf = Callable[[Request], Sequence[int]]


class Printer:
    """Shows finished rows. This one shows nothing, as the Python API asks."""

    def launch(self, facts: LaunchFacts) -> None:
        """Take the facts of a launch before its first row."""

    def row(self, row: Row, request: Request | None = None) -> None:
        """Show the row of a finished cell, which is already in the journal."""

    def recall(self, rows: Sequence[Row]) -> None:
        """Take the stored rows of a run that is resumed, before the first launch: only what sums up shows them."""

    def close(self) -> None:
        """Finish the output, also after an interruption: no row will follow."""


class Kept(Printer):
    """Prints nothing, and keeps the rows without their samples, in the order in which they were finished."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def row(self, row: Row, request: Request | None = None) -> None:
        self.rows.append(without_samples(row))


def without_samples(row: Row) -> Row:
    """The row without its lists of numbers."""
    return cast(Row, {k: v for k, v in row.items() if not isinstance(v, list) or k == "hosts"})


class RowByRow(Printer):
    """The text of a tool, printed as cells are finished. Raises UsageError for a row that the tool does not have."""

    def __init__(self, dialect: Dialect, request: Request, sizes_of: SizesOf) -> None:
        self._text = dialect.transcript()
        self._request, self._sizes_of = request, sizes_of
        self._options: dict[tuple[int, str], TextOptions] = {}
        """(id of a request, backend) -> what the text depends on."""

    def launch(self, facts: LaunchFacts) -> None:
        self._text.launch(facts)

    def row(self, row: Row, request: Request | None = None) -> None:
        _write(self._text.row(row, self._options_of(row, request)))

    def _options_of(self, row: Row, request: Request | None) -> TextOptions:
        asked = request or self._request
        key = id(asked), row["backend"]
        if key not in self._options:
            facts = dict(asked.part.varies) if asked.part else {}
            sizes = self._sizes_of(request) if request else ()
            printing = asked.printing
            self._options[key] = TextOptions(
                printing.full, printing.percentiles, sizes, facts, id(asked), printing.report
            )
        return self._options[key]

    def close(self) -> None:
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
        self.rows.append(row)

    def close(self) -> None:
        from omb_py.printing.export import to_csv, to_json

        if self.form == "table":
            from rich.text import Text

            from omb_py.printing.tables import SPARE, results_table
            from omb_py.printing.writers.terminal import fitted, stdout_console
            from omb_py.results.analysis.crossover import sentences

            console = stdout_console()
            for rows in _group_by_benchmark(self.rows).values() or [[]]:
                if len({(row["backend"], row.get("device")) for row in rows}) > 1:
                    rows = sorted(rows, key=lambda row: (row["dtype"], row["window"] or 0, row["size_bytes"]))
                table = partial(results_table, rows, None)
                console.print(fitted(table, SPARE, console, "csv"), crop=False)
                for text in sentences(rows):
                    console.print(Text(text))
            return
        _write(to_csv(self.rows) if self.form == "csv" else to_json(self.rows))


class Around(Printer):
    """Another printer; when it closes, something that is made of all rows follows its output (`below`)."""

    def __init__(self, printer: Printer) -> None:
        self.printer = printer
        self.rows: list[Row] = []

    def launch(self, facts: LaunchFacts) -> None:
        self.printer.launch(facts)

    def row(self, row: Row, request: Request | None = None) -> None:
        self.printer.row(row, request)
        self.rows.append(row)

    def recall(self, rows: Sequence[Row]) -> None:
        self.printer.recall(rows)

    def close(self) -> None:
        self.printer.close()
        rows, self.rows = self.rows, []
        self.below(rows)

    def below(self, rows: Sequence[Row]) -> None:
        """Show what the rows together say."""
        raise NotImplementedError


def _group_by_benchmark(rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    of_benchmark: dict[str, list[Row]] = {}
    for row in rows:
        of_benchmark.setdefault(row["benchmark"], []).append(row)
    return of_benchmark


class Drawn(Around):
    """The curve of each benchmark follows the output."""

    def below(self, rows: Sequence[Row]) -> None:
        from omb_py.printing.drawings import curve

        _write("".join("\n" + curve(part) for part in _group_by_benchmark(rows).values()))


class OverLaunches(Around):
    """A table over the launches of the run follows the output."""

    def row(self, row: Row, request: Request | None = None) -> None:
        super().row(row, request)
        self.rows[-1] = without_samples(row)

    def recall(self, rows: Sequence[Row]) -> None:
        self.rows.extend(rows)

    def below(self, rows: Sequence[Row]) -> None:
        from omb_py.printing.launches_text import launches_text

        _write(launches_text(rows))


class Pictured(Around):
    """The curves of each benchmark become files in the current folder.

    Raises EnvironmentProblem, before anything is measured, where no picture can be drawn.
    """

    def __init__(self, printer: Printer, form: str) -> None:
        from omb_py.dashboards.report.image_export import check_drawable

        super().__init__(printer)
        self.form = form
        check_drawable()

    def below(self, rows: Sequence[Row]) -> None:
        from omb_py.dashboards.report.image_export import save, views_of

        for benchmark, part in _group_by_benchmark(rows).items():
            for number, view in enumerate(views_of(part)):
                path = Path(f"{benchmark}-{part[0]['run_id']}{f'-{number + 1}' if number else ''}.{self.form}")
                save(view, path)
                print(f"omb-py: drawn: {path}", file=sys.stderr)


class InFile(Around):
    """The rows go into a file too, as JSON: the tool's where it has one, else omb-py's.

    Raises UsageError, before anything is measured, where the file cannot be made.
    """

    def __init__(self, printer: Printer, path: Path, dialect: Dialect) -> None:
        super().__init__(printer)
        self.dialect = dialect
        self._facts: LaunchFacts = {}
        try:
            self._file = path.open("x", encoding="utf-8")
        except FileExistsError:
            raise UsageError(f"--json {path} exists already: name another file") from None
        except OSError as error:
            raise UsageError(f"--json {path} cannot be written: {error.strerror}") from None

    def launch(self, facts: LaunchFacts) -> None:
        super().launch(facts)
        self._facts = self._facts or facts

    def below(self, rows: Sequence[Row]) -> None:
        from omb_py.printing.export import to_json

        with self._file as file:
            file.write(self.dialect.to_json(rows, self._facts) or to_json(rows))


def printer_of(request: Request, tables: int, sizes_of: SizesOf) -> Printer:
    """The printer of a request.

    Args:
        request: the request.
        tables: backends, bindings and devices that stand side by side; a table replaces the usual text of several.
        sizes_of: request -> its message sizes in bytes.
    """
    if request.printing.format == SILENT:
        return Printer()
    dialect = dialect_of(request.printing.format)
    beside = dialect.usual and tables > 1
    printer: Printer
    if dialect is PLAIN or beside:
        printer = AtEnd("table" if beside else request.printing.format)
    else:
        printer = RowByRow(dialect, request, sizes_of)
    return (
        OverLaunches(printer)
        if request.repetition.launches > 1 and (dialect.usual or request.printing.format == "table")
        else printer
    )


def with_more(printer: Printer, request: Request) -> Printer:
    """The printer, which draws and writes a file too where a request asks for it (``--graph``, ``--json``)."""
    printing = request.printing
    if type(printer) is Printer:
        return printer
    if printing.graph:
        printer = Drawn(printer) if printing.graph == "tty" else Pictured(printer, printing.graph)
    return InFile(printer, Path(printing.json), dialect_of(printing.format)) if printing.json else printer

"""Results on stdout: OMB's text row by row, or a table, CSV or JSON at the end."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from omb_py.backends.registry import capabilities
from omb_py.options.request import HOROVOD, IMB, IMB_MULTI, NCCL_TESTS, Request

if TYPE_CHECKING:
    from omb_py.results.dialects.omb.windows import Windows

Row = Mapping[str, Any]


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


class Osu(Printer):
    """OMB's text. Each row is printed at once; each type, request and launch gets a header of its own."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._last: tuple[Any, ...] | None = None
        self._windows: Windows | None = None
        self._rows: list[Row] = []
        """The rows of the table that is being printed."""

    def row(self, row: Row, request: Request | None = None) -> None:
        """Print the row, after its header if it is the first of a table."""
        from omb_py.results.dialects.omb.text import text_of
        from omb_py.results.dialects.omb.windows import Windows, is_varied

        request = request or self.request
        varies = request.part.varies if request.part else {}
        options = tuple(sorted((row.get("parameters") or {}).items()))
        table = (row["launch_id"], row["backend"], row["binding"], row["benchmark"], id(request), options)
        if is_varied(row):
            if self._last is None or self._last[:-1] != table:
                self.close()
            self._windows = self._windows or Windows(row["validated"] is not None)
            self._last = (*table, None)
            self._print(self._windows.row(row))
            return
        text = text_of(row, request.full, row["validated"] is not None, request.percentiles)
        if not capabilities(row["backend"]).omb_text:
            varies = {"backend": row["backend"], "library": f"{row['library']} {row['library_version']}", **varies}
        if varies:
            line = f"# {' '.join(f'[ {key}: {value} ]' for key, value in varies.items())}"
            text = replace(text, details=(*text.details, line))
        if self._last is None or self._last[:-1] != table:
            self.close()
            self._print(text.header(row["dtype"], first=True))
        elif self._last[-1] != row["dtype"]:
            self._print(text.header(row["dtype"], first=False))
        self._last = (*table, row["dtype"])
        self._rows.append(row)
        self._print(text.row(row))
        if row["validated"] is False:
            self._print(text.failure(row, f"omb-py {row['benchmark']}"))

    def close(self) -> None:
        """Print what OMB prints after the last row of a benchmark, or the second table of a sweep over windows."""
        from omb_py.results.dialects.omb.text import closing, text_of

        if self._windows is not None:
            self._print(self._windows.end())
            self._windows = None
        if self._rows:
            checked = self._rows[-1]["validated"] is not None
            end = closing(text_of(self._rows[-1], False, checked, ()), self._rows)
            if end:
                self._print(end)
        self._rows.clear()

    @staticmethod
    def _print(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


class NcclTests(Printer):
    """The text of nccl-tests: a line when both its halves are there. Raises on rows that were measured otherwise."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._waiting: Row | None = None
        self._begun = False
        self._remarks = ""
        """The comment above the rows that are being printed."""
        self._facts: Mapping[str, Any] = {}

    def launch(self, facts: Mapping[str, Any]) -> None:
        """Keep what the head of the table says of the devices."""
        self._facts = facts

    def row(self, row: Row, request: Request | None = None) -> None:
        """Keep the out-of-place row, and print it together with the in-place row."""
        from omb_py.results.dialects.nccl.text import check, devices, header, line, remarks, starting

        check(row)
        if (above := remarks(row)) != self._remarks:
            self._flush()
            sys.stdout.write(above)
            self._remarks = above
        if not self._begun:
            sys.stdout.write(starting(row["benchmark"]) + devices(self._facts, row) + header())
            self._begun = True
        self._rows.append(row)
        if self._waiting is not None and row["in_place"] and _same(row, self._waiting):
            sys.stdout.write(line(self._waiting, row))
            self._waiting = None
        else:
            self._flush()
            self._waiting = row
        sys.stdout.flush()

    def _flush(self) -> None:
        from omb_py.results.dialects.nccl.text import line

        if self._waiting is not None:
            alone = (None, self._waiting) if self._waiting["in_place"] else (self._waiting, None)
            sys.stdout.write(line(*alone))
            self._waiting = None

    def close(self) -> None:
        """Print the last line and the sums."""
        from omb_py.results.dialects.nccl.text import concluded, footer

        self._flush()
        if self._rows:
            sys.stdout.write(footer(self._rows) + concluded(self._rows[-1]["benchmark"]))
            sys.stdout.flush()
        self._rows.clear()


class Imb(Printer):
    """The text of IMB: a header for each launch, a table for each benchmark; with a line for each group if asked."""

    def __init__(self, each_group: bool = False) -> None:
        self._each_group = each_group
        self._launch: tuple[Any, ...] | None = None
        self._table: tuple[Any, ...] | None = None
        self._closing = ""
        """The text after the launch's last table."""

    def row(self, row: Row, request: Request | None = None) -> None:
        """Print the row, after header and title where it is the first. Raises UsageError where IMB has no such one."""
        from omb_py.results.dialects.imb import groups, text
        from omb_py.results.dialects.imb.text import Header, bytes_of, closing, form_of, table_of

        table = groups if self._each_group else text
        form = form_of(row)
        launch = (row["launch_id"], form.part)
        if launch != self._launch:
            self.close()
            low, high = (bytes_of(row, size) for size in _sizes(row, request))
            command = " ".join(["omb-py", *sys.argv[1:]])
            header = Header(form, (form.name,), (low, high), row, command, datetime.now())
            sys.stdout.write(header.text())
            self._launch, self._closing = launch, closing(form)
        if table_of(row) != self._table:
            sys.stdout.write(table.title(row))
            self._table = table_of(row)
        sys.stdout.write(table.line(row))
        sys.stdout.flush()

    def close(self) -> None:
        """Print the last line of a launch."""
        if self._launch is not None:
            sys.stdout.write(self._closing)
            sys.stdout.flush()
        self._launch = self._table = None


def _sizes(row: Row, request: Request | None) -> tuple[int, int]:
    """Smallest and largest message of a request; of the row alone where nothing is known of it."""
    from omb_py.orchestrate.planning.plan import sizes_of
    from omb_py.suites import find

    sizes = sizes_of(find(row["benchmark"]), request.sizes) if request else ()
    sizes = sizes or (row["size_bytes"] or 0,)
    return min(sizes), max(sizes)


def _same(row: Row, other: Row) -> bool:
    return all(row[name] == other[name] for name in ("launch_id", "benchmark", "binding", "dtype", "size_bytes"))


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


class Horovod(Printer):
    """The text of Horovod's synthetic benchmark for trainings."""

    def row(self, row: Row, request: Request | None = None) -> None:
        """Print the whole text of a training."""
        from omb_py.results.dialects.horovod import horovod_text

        sys.stdout.write(horovod_text(row))
        sys.stdout.flush()

    def close(self) -> None:
        """Do nothing: no output is pending."""


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
        from omb_py.dashboards.report.html_page import plotly_script
        from omb_py.dashboards.report.image_export import browser

        super().__init__(printer)
        self.form = form
        browser()
        plotly_script()

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


def printer_of(request: Request, tables: int) -> Printer:
    """The printer of a request. A table replaces OMB's text when backends, bindings or devices stand side by side."""
    if request.format == "none":
        return Silent()
    printer = _printer(request, tables)
    if request.launches > 1 and request.format in ("osu", "table"):
        printer = OverLaunches(printer)
    if request.predict:
        from omb_py.orchestrate.workloads.prediction import Foretold

        printer = Foretold(printer, request)
    if not request.graph:
        return printer
    return Drawn(printer) if request.graph == "tty" else Pictured(printer, request.graph)


def _printer(request: Request, tables: int) -> Printer:
    if request.format == NCCL_TESTS:
        return NcclTests()
    if request.format in (IMB, IMB_MULTI):
        return Imb(each_group=request.format == IMB_MULTI)
    if request.format == HOROVOD:
        return Horovod()
    if request.format == "osu" and tables == 1:
        return Osu(request)
    return AtEnd("table" if request.format == "osu" else request.format)

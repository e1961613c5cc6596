"""A table of OMB's text that is being read: the lines above it, its head, and its rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from omb_py.engine.program.dtypes import DTYPES
from omb_py.results.caveats import measured_in, named_in, parameters_of_caveats
from omb_py.results.dialects.dialect import OWN_TEXT
from omb_py.results.dialects.log_lines import LogLine
from omb_py.results.dialects.omb import names
from omb_py.results.dialects.omb.titles import TITLED_LIBRARIES, TITLES, family
from omb_py.results.dialects.reading import (
    INT32,
    BadRow,
    BadTable,
    ImportedRow,
    ImportedTable,
    OpenTable,
    Problem,
    check_end,
    decimal,
    is_numeric,
    number,
    quote_piece,
    result,
    whole,
)

SOURCE = "OMB"
BINDING = "c"

_SET_OUT = re.compile(r"\d+ {2,}\S")
"""A number and a gap, which rows begin with. Such a line is a damaged row, not other output in the log."""
_LIKE_A_TITLE = re.compile(r"\bTest v\d+\.\d+\s*$")
"""The end of a title. Titles begin a table, so inside of one this is a damaged title."""
_VERDICTS = {"pass": True, "passed": True, "fail": False, "failed": False, "-": None}
_INIT = re.compile(r"\s*nprocs: (\d+), min: (\d+)( ms)?, max: (\d+)(?: ms)?, avg: (\d+)(?: ms)?\s*")
_HELLO = re.compile(r"\s*This is a test with (\d+) processes\s*")
_WINDOWED = re.compile(r"\s*# \[ pairs: (\d+) \] \[ window size: (\d+|varied) \]\s*")
_BUFFERS = re.compile(r"\s*# Send Buffer on (.+?) and Receive Buffer on (.+?)\s*")
_BELOW_A_TITLE = re.compile(r"# (?:\[ pairs: |Window creation:|Synchronization:|Partitions:|Send Buffer on )")
"""Lines that follow a title; the further types of ``-T`` repeat only their own line and the head."""


@dataclass(slots=True)
class Prelude:
    """Facts from the lines before a title, about the table that follows."""

    parameters: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    ranks: int | None = None
    library: str | None = None
    """NCCL or RCCL, for OMB's benchmarks of these libraries."""
    line: int | None = None


@dataclass(slots=True)
class Building(OpenTable):
    """The part of a table that has been read. Doubtful input raises BadTable, which spoils only this table."""

    benchmark: str
    version: str | None
    prelude: Prelude
    accelerator: str = ""
    device: str | None = None
    source: str = SOURCE
    measured: dict[str, str | None] = field(default_factory=dict)
    """What measured, where omb-py's own text says it."""
    columns: tuple[str, ...] = ()
    rated: bool | None = None
    """Whether the head says MB/s; None before a head, and of ``mbw_mr -V``, whose head says no unit."""
    windows: tuple[int, ...] = ()
    """The columns of ``mbw_mr -V``."""
    checked: bool = False
    dtype: str | None = None
    head_of: str | None = None
    """The type that the head was printed for."""
    window: int | None = None
    rates: int = 0
    """Number of sizes read of the second table of ``mbw_mr -V``; -1 before its head."""
    rate_table: bool = False
    after_blank: bool = False
    """Whether the last line was blank, as before the title of a collective and never between the types of ``-T``."""
    launch: int | None = None
    """Number of the start of which this is a further type; None: it is a start of its own."""
    concluded: bool = False
    """Whether the result of the checks of all types stood below."""

    def spoil(self, line: int, why: str) -> None:
        """Exclude the table from the import; the first reason is kept."""
        self.bad = self.bad or Problem(line, why)

    @property
    def goes_on(self) -> bool:
        """Whether the next title may be of the same start: atomics repeat it for each type of ``-T``, and the result of
        all checks stands below the last."""
        title = TITLES.get(self.benchmark)
        return title is not None and title.atomic and "validated" in self.columns and not self.concluded

    def take(self, line: LogLine) -> bool:
        """Take a line of the table; False when it does not belong to it. Raises BadTable."""
        if self.rows and _LIKE_A_TITLE.search(line.text):
            raise BadTable(f"{quote_piece(line.text.strip())} could be the title of a further table, and is damaged")
        taken = self._detail(line.text) or self._heads(line.text) or self._row(line)
        self.after_blank = not line.text.strip()
        return taken

    def _detail(self, text: str) -> bool:
        content = text.strip()
        again = content.startswith("# Datatype:") and (self.after_blank or self.dtype is None)
        said, measured = named_in(content), measured_in(content)
        ranks = said.get("ranks", "")
        if self.rows and (again or ranks or measured or _BELOW_A_TITLE.match(content)):
            raise BadTable(f"{quote_piece(content)} after rows: the title of a further table is missing")
        if match := _WINDOWED.fullmatch(text):
            self.prelude.ranks = whole(match[1], INT32 // 2) * 2
            if match[2] == "varied":
                self.prelude.parameters["vary_window"] = "True"
            else:
                self.window = whole(match[2], INT32)
        elif content.startswith("# Window creation:"):
            self.prelude.parameters["window_kind"] = names.window_of(content.partition(":")[2])
        elif content.startswith("# Synchronization:"):
            self.prelude.parameters["sync"] = names.sync_of(content.partition(":")[2])
        elif content.startswith("# Partitions:"):
            self.prelude.parameters["partitions"] = str(whole(content.partition(":")[2].strip(), INT32))
        elif content.startswith("# Datatype:"):
            self.dtype = names.dtype_of(content.partition(":")[2])
        elif match := _BUFFERS.fullmatch(text):
            self.prelude.parameters["buffers"] = f"{match[1]}, {match[2]}"[:80]
        elif measured:
            self.measured, self.source = measured, OWN_TEXT
        elif (own := parameters_of_caveats(content)) or ranks:
            self.prelude.parameters |= own | ({"workload": said["workload"]} if "workload" in said else {})
            self.prelude.ranks = whole(ranks, INT32) if ranks else self.prelude.ranks
        elif content.startswith("Atomic Data Validation results"):
            self.concluded = True
        elif content == "# Message Rate Profile":
            self.rate_table = True
            self.rates = -1
        elif content == "# Uni-directional Bandwidth (MB/sec)":
            self._check_rates()
            self.rate_table = False
        elif content.startswith("DATA VALIDATION ERROR: ") and " exited with status" in content:
            program = content.removeprefix("DATA VALIDATION ERROR: ").partition(" exited")[0]
            self.prelude.parameters["program"] = program[:200]
        else:
            return False
        return True

    def _heads(self, text: str) -> bool:
        if names.VARIED_HEAD.fullmatch(text) and self.prelude.parameters.get("vary_window"):
            words = text.strip().removeprefix("#").removesuffix("Validation").split()
            self.windows = tuple(whole(word, INT32) for word in words)
            self.checked = not self.rate_table and "Validation" in text
            if self.rate_table:
                self.rates = 0
            self.length = len(text.rstrip())
            return True
        if names.HEAD_LINE.match(text):
            # OMB writes another head for another type alone
            if any(row["dtype"] == self.dtype for row in self.rows):
                raise BadTable("a second head: the title of a further table is missing or damaged")
            if self.columns and not self.rows and self.head_of == self.dtype:
                raise BadTable("a second head before the first row: two programs print at once here")
            columns, self.head_of = names.columns(text), self.dtype
            if self.rows and columns != self.columns:
                raise BadTable("a head with other columns: the title of a further table is missing")
            self.columns, self.length = columns, len(text.rstrip())
            self._take_unit(names.is_rate(text))
            return True
        return False

    def _take_unit(self, rated: bool) -> None:
        """Take the kind of result from a head; only omb-py's own benchmarks have no title that says it too."""
        self.rated = rated
        if self.benchmark in TITLES and rated != self._is_rate_by_title():
            says, means = ("MB/s", "us") if rated else ("us", "MB/s")
            raise BadTable(f"the head says {says}, and {self.benchmark} is measured in {means}")

    def _is_rate_by_title(self) -> bool:
        title = TITLES.get(self.benchmark)
        return title is not None and title.layout in ("bandwidth", "one_sided_bandwidth", "rate")

    def _row(self, line: LogLine) -> bool:
        words = line.text.split()
        if self.benchmark in ("init", "hello"):
            return self._sentence(line)
        if self.windows:
            return self._read_varied(line, words)
        if not self.columns or not words or line.text.lstrip().startswith("#") or not self._is_row(line.text, words):
            return False
        expected = self.columns
        if len(words) != len(expected) and (self.benchmark == "multi_lat" or (self.version or "").startswith("8.")):
            # 7.5's multi_lat and 8.0 have the percentiles' heads but not their values
            expected = tuple(name for name in expected if not name.startswith("tail_"))
        if len(words) != len(expected):
            raise BadRow(f"{len(words)} of {len(self.columns)} columns")
        self.length = check_end(line, self.length)
        self._add(dict(zip(expected, words, strict=True)))
        return True

    def _is_row(self, text: str, words: list[str]) -> bool:
        if self.columns[0] != "size":
            return all(is_numeric(word) for word in words)
        return words[0].isdecimal() and (len(words) == 1 or is_numeric(words[1]) or _SET_OUT.match(text) is not None)

    def _add(self, cells: dict[str, str]) -> None:
        row = self._blank()
        metrics: dict[str, float] = row["metrics"]
        for name, word in cells.items():
            if name == "size":
                row["size_bytes"] = whole(word)
            elif name == "iterations":
                row["iterations"] = whole(word)
            elif name == "busbw_gbps":
                row[name] = number(word)
            elif name == "validated":
                if word.lower() not in _VERDICTS:
                    raise BadRow(f"{quote_piece(word)} is no verdict of a validation")
                row["validated"] = _VERDICTS[word.lower()]
            elif name == "transmit_size":
                metrics[name] = float(whole(word))
                row["datatype_layout"] = "derived"
            else:
                value = decimal(word)
                if name in ("value", "overall", "step"):
                    row["value"] = result(value)
                if name != "value":
                    metrics[name] = math.nan if value is None else value
        self.rows.append(row)

    def _read_varied(self, line: LogLine, words: list[str]) -> bool:
        if not words or not words[0].isdecimal():
            return False
        if len(words) > 1 and not is_numeric(words[1]) and not _SET_OUT.match(line.text):
            return False
        self.length = check_end(line, self.length)
        size, values, verdict = whole(words[0]), words[1:], None
        if self.checked:
            if len(values) < 2 or values[-1].lower() not in _VERDICTS:
                raise BadRow("no verdict at the end of the row")
            verdict = _VERDICTS[values.pop().lower()]
        if not values or (len(values) != len(self.windows) and verdict is not False) or len(values) > len(self.windows):
            raise BadRow(f"{len(values)} of {len(self.windows)} windows")
        numbers = [result(decimal(word)) for word in values]
        if self.rate_table:
            self._take_rates(size, numbers)
            return True
        for window, value in zip(self.windows, numbers, strict=False):
            row = self._blank() | {"size_bytes": size, "window": window, "value": value, "validated": verdict}
            self.rows.append(row)
        if verdict is False:  # a line ends with the window that failed
            for row in self.rows[-len(numbers) : -1]:
                row["validated"] = None
        return True

    def _take_rates(self, size: int, numbers: list[float]) -> None:
        alike = [row for row in self.rows if row["dtype"] == self.dtype and row["size_bytes"] == size]
        if len(alike) != len(numbers):
            raise BadTable(f"message rates of {size} bytes without their bandwidths")
        for row, value in zip(alike, numbers, strict=True):
            row["metrics"]["message_rate"] = value
        self.rates += 1

    def _check_rates(self) -> None:
        sizes = {row["size_bytes"] for row in self.rows if row["dtype"] == self.dtype}
        if self.rate_table and self.rates != len(sizes):
            raise BadTable(f"message rates of {max(self.rates, 0)} of {len(sizes)} sizes")

    def _sentence(self, line: LogLine) -> bool:
        text = line.text
        if self.benchmark == "hello" and (match := _HELLO.fullmatch(text)):
            self.rows.append(self._blank() | {"ranks": whole(match[1], INT32)})
            return True
        if self.benchmark == "init" and (match := _INIT.fullmatch(text)):
            if not line.ended and not text.rstrip().endswith(" ms"):
                raise BadRow("the file ends within the row")
            least, most, mean = (1000.0 * whole(match[i], INT32) for i in (2, 4, 5))
            metrics = {"rank_min_us": least, "rank_max_us": most}
            self.rows.append(self._blank() | {"ranks": whole(match[1], INT32), "value": mean, "metrics": metrics})
            return True
        return False

    def _blank(self) -> ImportedRow:
        rate = self._is_rate_by_title() if self.rated is None else self.rated
        kind = family(self.benchmark)
        two = self.benchmark not in ("multi_lat", "mbw_mr", "bw_fan_in", "bw_fan_out")
        return {
            "benchmark": self.benchmark,
            "family": "workload" if "step" in self.columns else kind,
            "metric": "bandwidth" if rate else "latency",
            "unit": "MB/s" if rate else "us",
            "dtype": self.dtype,
            "window": self.window,
            "ranks": self.prelude.ranks or (2 if kind in ("pt2pt", "one-sided") and two else None),
            "device": self.device,
            "metrics": dict(self.prelude.metrics),
            "validated": None,
            "iterations": None,
            "value": None,
            "size_bytes": None,
        }

    def finished(self, launch: int) -> ImportedTable:
        """The complete table. Raises BadTable where it is none."""
        if self.rate_table:
            self._check_rates()
        if problem := _explain_two_runs(self.rows):
            raise BadTable(problem)
        if not self.rows:
            raise BadTable("no rows")
        self._settle()
        return ImportedTable(self.source, self._version, self.benchmark, self.line, launch, self.rows)

    @property
    def _version(self) -> str | None:
        """Version of what measured; the title of omb-py's own text has OMB's."""
        return None if self.source == OWN_TEXT and self.benchmark in TITLES else self.version

    def _settle(self) -> None:
        parameters, library = self.prelude.parameters, self.prelude.library
        rated = self.benchmark == "mbw_mr" and not any("message_rate" in row["metrics"] for row in self.rows)
        if rated:
            parameters["print_rate"] = "0"
        if self.accelerator:
            parameters["accelerator"] = self.accelerator
        for row in self.rows:
            row.update(
                source=self.source,
                backend=TITLED_LIBRARIES.get(library or "", ("mpi", ""))[0],
                library=library,
                binding=BINDING if self.source == SOURCE else None,
                binding_version=f"{self.source} {self._version}" if self._version else None,
                process_sync=_sync(row["family"]),
                parameters=dict(parameters),
                text_dialect=f"omb-{self.version or '5.3'}",
            )
            row.update(self.measured)


def _sync(kind: str | None) -> str | None:
    """The column ``process_sync``: OMB has a barrier after each call of a collective, and none elsewhere."""
    collective = ("collective", "non-blocking", "persistent", "neighborhood")
    return "barrier" if kind in collective else None


def _explain_two_runs(rows: Sequence[ImportedRow]) -> str:
    """Why the types of a table cannot be of one run: all types of ``-T`` have the same sizes, if elements fit."""
    sizes: dict[str | None, set[int]] = {}
    for row in rows:
        sizes.setdefault(row["dtype"], set()).add(row["size_bytes"] or 0)
    if {"char", "int8"} <= sizes.keys():
        return "MPI_CHAR and MPI_SIGNED_CHAR in one table: the title of a further table is missing"
    first, *others = sizes or {None: set()}
    failed = bool(rows) and rows[-1]["validated"] is False  # OMB ends after a wrong byte
    for other in others:
        pairs = ((other, first),) if failed and other is others[-1] else ((other, first), (first, other))
        for here, there in pairs:
            width = DTYPES[there].itemsize if there in DTYPES else 1
            lacking = sorted(size for size in sizes[here] - sizes[there] if size % width == 0)
            if lacking:
                return (
                    f"{here} has {lacking[0]} B and {there} has not: the title of a further table is missing, or a run "
                    f"with -T was cut off; take {other}'s rows away to import the others"
                )
    return ""

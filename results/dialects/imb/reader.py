"""Read the text of Intel MPI Benchmarks (MPI1, NBC, RMA and P2P). Each start of a program is a launch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from omb_py.engine.program.dtypes import DTYPES
from omb_py.results.caveats import measured_in
from omb_py.results.dialects.dialect import OWN_TEXT
from omb_py.results.dialects.imb.names import GROUP_RANKS, benchmark_of, counts_a_block, reduces
from omb_py.results.dialects.log_lines import LogLine
from omb_py.results.dialects.omb.titles import DIALECT, family
from omb_py.results.dialects.reading import (
    INT32,
    BadTable,
    Context,
    ImportedRow,
    ImportedTable,
    LogReader,
    OpenTable,
    Problem,
    check_row,
    is_numeric,
    iso_time,
    number,
    quote_piece,
    result,
    whole,
)

SOURCE = "IMB"

_BANNER = re.compile(
    r"\s*#\s+(?:omb-py (?P<own>\S{1,60}) in the layout of )?"
    r"Intel ?\(R\) MPI Benchmark(?:s| Suite)? ?(?:V(?:ersion)? ?)?(?P<version>\d[\w.]*)?.*"
)
_TITLE = re.compile(r"\s*# Benchmarking (?:Multi-)?(?P<name>[A-Za-z0-9_]+)\s*(?P<more>\(.*\))?\s*")
_PROCESSES = re.compile(r"\s*# #processes = (\d{1,9})\b(?: \(threads: (\d{1,6})\))?.*")
_WINDOW = re.compile(r"\s*# window_size = (\d{1,9})\s*")
_GROUPS = re.compile(r"\s*# \( ?(\d{1,9}) groups of (\d{1,9}) processes each running simultaneous.*")
_MEMBERS = re.compile(r"\s*# Group\s{1,3}(\d{1,9}):((?:\s+\d{1,9}){1,10000})\s*")
_MODE = re.compile(r"\s*#\s+MODE: ([A-Z-]+)\s*")
_PREAMBLE = re.compile(
    r"\s*# (MPI_Datatype for reductions|MPI_Datatype|MPI_Op|Date|MPI Version|Machine|System|Release|Version)\s*:\s*(.*)"
)

_COLUMNS: Mapping[str, str] = {
    "Group": "group",
    "#bytes": "size",
    "#repetitions": "iterations",
    "t[usec]": "value",
    "t_min[usec]": "rank_min_us",
    "t_max[usec]": "rank_max_us",
    "t_avg[usec]": "value",
    "Mbytes/sec": "mbytes_per_s",
    "Msg/sec": "message_rate",
    "t_ovrl[usec]": "overall",
    "t_pure[usec]": "pure",
    "t_CPU[usec]": "compute",
    "overlap[%]": "overlap_pct",
    "stddev[%]": "stddev_pct",
    "defects": "defects",
}
_FACTS = ("MPI Version", "Machine", "System", "Release", "Version")
"""Lines of the preamble that are kept with a launch."""
_TYPES = {"MPI_BYTE": "byte", **{dtype.mpi: name for name, dtype in DTYPES.items()}}
_RATES = ("uniband", "biband")


@dataclass(slots=True)
class _Launch:
    number: int = 0
    version: str | None = None
    """Version of the tool."""
    layout: str | None = None
    """Version of IMB whose text it is."""
    source: str = SOURCE
    measured: Mapping[str, str | None] = field(default_factory=dict)
    """What measured, where omb-py's own text says it."""
    preamble: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _OpenTable(OpenTable):
    name: str
    launch: _Launch
    parameters: dict[str, str] = field(default_factory=dict)
    ranks: int | None = None
    threads: int | None = None
    window: int | None = None
    columns: tuple[str, ...] = ()
    late: int | None = None
    """Number of a line that reports a time-out."""

    @property
    def benchmark(self) -> str:
        return benchmark_of(self.name) or self.name.lower()


class ImbText(LogReader[_OpenTable]):
    """Reader of the text of IMB. A banner begins another launch."""

    name = "IMB text"

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.launch = _Launch()
        self.begun = False

    def starts(self, text: str) -> bool:
        return _BANNER.match(text) is not None or _TITLE.fullmatch(text) is not None

    def above(self, line: LogLine) -> bool:
        if match := _BANNER.match(line.text):
            self.close()
            own, layout = match["own"], match["version"]
            number = self.launch.number + self.begun
            self.launch = _Launch(number, own or layout, layout, OWN_TEXT if own else SOURCE)
            self.begun = True
        elif match := _TITLE.fullmatch(line.text):
            self.close()
            self.begun = True
            self.table = _OpenTable(line.number, match["name"], self.launch)
            if match["name"].lower() in ("put_local", "get_local"):
                self.table.parameters["sync"] = "flush_local"
            if match["more"]:
                self.table.parameters["variant"] = match["more"].strip("() ")[:80]
        elif measured := measured_in(line.text.strip()):
            self.launch.measured = measured
        elif match := _PREAMBLE.fullmatch(line.text):
            self.launch.preamble[match[1]] = match[2].strip()[:120]
        else:
            return False
        return True

    def inside(self, part: _OpenTable, line: LogLine) -> None:
        if part.bad:
            return
        text, words = line.text, line.text.split()
        if match := _PROCESSES.fullmatch(text):
            part.ranks = whole(match[1], INT32)
            part.threads = whole(match[2], INT32) if match[2] else None
        elif match := _WINDOW.fullmatch(text):
            part.window = whole(match[1], INT32)
        elif match := _GROUPS.fullmatch(text):
            part.parameters["groups"] = match[1]
            part.ranks = whole(match[2], INT32)
        elif match := _MEMBERS.fullmatch(text):
            before = part.parameters.get(GROUP_RANKS)
            members = ",".join(match[2].split())
            part.parameters[GROUP_RANKS] = members if before is None else f"{before};{members}"
        elif match := _MODE.fullmatch(text):
            part.parameters["mode"] = match[1].lower()
        elif words and words[0] in ("Group", "#bytes", "#repetitions"):
            unknown = [word for word in words if word not in _COLUMNS]
            if unknown:
                raise BadTable(f"unknown column {quote_piece(unknown[0])}")
            part.columns = tuple(_COLUMNS[word] for word in words)
            if len(set(part.columns)) < len(part.columns):
                raise BadTable("a column stands twice in the head")
            part.length = len(text.rstrip())
        elif part.columns and words and words[0].isdecimal():
            # behind the size, which stands behind the group in a text of -multi 1, may be words in place of numbers
            behind = "".join(words[1 + (part.columns[0] == "group") :][:1])
            if "time-out" in behind:
                part.late = line.number
            elif not behind or is_numeric(behind):
                self._row(part, line, words)

    def _row(self, part: _OpenTable, line: LogLine, words: Sequence[str]) -> None:
        check_row(part, line, words, len(part.columns))
        part.rows.append(_row(part, dict(zip(part.columns, words, strict=True))))

    def close(self) -> None:
        """End the open table; one whose time was over before its first row is only noted."""
        part = self.table
        if part is not None and part.bad is None and not part.rows and part.late:
            self.parsed.notes.append(Problem(part.late, f"IMB's time for {part.name} was over before its first row"))
            self.table = None
        super().close()

    def left_out(self, part: _OpenTable, problem: Problem) -> str:
        where = "" if problem.line in (0, part.line) else f", line {problem.line}"
        return f"table {part.name!r} left out{where}: {problem.text}"

    def finish(self, part: _OpenTable) -> ImportedTable:
        launch, preamble = part.launch, part.launch.preamble
        facts = {key: preamble[key] for key in preamble if key in _FACTS}
        started = iso_time(preamble.get("Date", ""), "%a %b %d %H:%M:%S %Y")
        return ImportedTable(
            launch.source, launch.version, part.benchmark, part.line, launch.number, part.rows, facts, started
        )


def _row(part: _OpenTable, cells: Mapping[str, str]) -> ImportedRow:
    benchmark = part.benchmark
    metrics: dict[str, float] = {}
    for key, word in cells.items():
        if key not in ("group", "size", "iterations", "value"):
            metrics[key] = number(word) or 0.0
    rate = benchmark in _RATES and "value" not in cells
    value = (
        number(cells["value"])
        if "value" in cells
        else metrics.get("mbytes_per_s" if rate else "overall", metrics.get("pure"))
    )
    launch = part.launch
    mpi_type = launch.preamble.get("MPI_Datatype for reductions" if reduces(part.name) else "MPI_Datatype", "")
    return {
        "source": launch.source,
        "benchmark": benchmark,
        "family": "pt2pt" if rate else family(benchmark),
        "backend": "mpi",
        "binding": "c" if launch.source == SOURCE else None,
        "binding_version": f"{launch.source} {launch.version}" if launch.version else None,
        "device": None,
        "dtype": _TYPES.get(mpi_type),
        "op": _op(part),
        "ranks": part.ranks,
        "threads": part.threads,
        "window": part.window,
        "size_bytes": _size(part, whole(cells["size"]) or 0) if "size" in cells else None,
        "iterations": whole(cells["iterations"]) if "iterations" in cells else None,
        "metric": "bandwidth" if rate else "latency",
        "unit": "MB/s" if rate else "us",
        "value": result(value),
        "metrics": metrics,
        "validated": number(cells["defects"]) == 0 if "defects" in cells else None,
        "parameters": {**part.parameters, **({"group": cells["group"]} if "group" in cells else {})},
        "text_dialect": DIALECT,
        **launch.measured,
    }


def _size(part: _OpenTable, printed: int) -> int:
    """Our size of a line: in threads IMB adds up all of theirs, and of a reduce-scatter it counts a block."""
    if counts_a_block(part.benchmark, part.launch.layout):
        return printed * (part.ranks or 1)
    return printed // (part.threads or 1)


def _op(part: _OpenTable) -> str | None:
    """The reduction, if the benchmark reduces and the file states it."""
    name = part.launch.preamble.get("MPI_Op", "").strip().lower().removeprefix("mpi_")
    return (name or None) if reduces(part.name) else None

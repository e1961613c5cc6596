"""Read the text of OMB-Py: a title, a head, and rows of size and value. It names no version and no datatype."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omb_py.results.dialects.log_lines import LogLine
from omb_py.results.dialects.omb.titles import DIALECT
from omb_py.results.dialects.reading import (
    BadTable,
    Context,
    ImportedRow,
    ImportedTable,
    LogReader,
    OpenTable,
    Problem,
    check_end,
    decimal,
    is_numeric,
    quote_piece,
    result,
    whole,
)

SOURCE = "OMB-Py"

_TITLE = re.compile(r"\s*# OMB(?:-Py| Python) MPI (?P<text>.+?) Test\s*")
_HEAD = re.compile(r"\s*# Size \(B\)\s+(?P<what>Latency|Bandwidth) \((?P<unit>us|MB/s)\)\s*")
_NAMES: Mapping[str, str] = {
    "latency": "latency",
    "multi": "multi_lat",
    "multi lat": "multi_lat",
    "multi-pair": "multi_lat",
    "multi pair": "multi_lat",
    "bandwidth": "bw",
    "bi-directional bandwidth": "bibw",
    "bi-bandwidth": "bibw",
    "broadcast": "bcast",
    "bcast": "bcast",
    "barrier": "barrier",
    "allgather": "allgather",
    "allgatherv": "allgatherv",
    "allreduce": "allreduce",
    "alltoall": "alltoall",
    "all-to-all": "alltoall",
    "alltoallv": "alltoallv",
    "all-to-allv": "alltoallv",
    "gather": "gather",
    "gatherv": "gatherv",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "reduce scatter": "reduce_scatter",
    "scatter": "scatter",
    "scatterv": "scatterv",
}
_PT2PT = ("latency", "bw", "bibw", "multi_lat")


@dataclass(slots=True)
class _OpenTable(OpenTable):
    benchmark: str
    unit: str = ""


class OmbPyText(LogReader[_OpenTable]):
    """Reader of the text of OMB-Py. Each table is a launch of its own."""

    name = "OMB-Py text"

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.last = ""
        """The last line that is not blank."""

    def starts(self, text: str) -> bool:
        """Whether a line is a title, or a head with the unit of the size, which OMB does not print."""
        return _TITLE.fullmatch(text) is not None or _HEAD.fullmatch(text) is not None

    def above(self, line: LogLine) -> bool:
        titled = _TITLE.fullmatch(self.last) is not None
        self.last = line.text if line.text.strip() else self.last
        if not self.starts(line.text) or (titled and _HEAD.fullmatch(line.text)):
            return False
        self.close()
        self.table = _OpenTable(line.number, "")
        self.table.benchmark = _benchmark(line.text, self.context)
        return _HEAD.fullmatch(line.text) is None

    def inside(self, table: _OpenTable, line: LogLine) -> None:
        words = line.text.split()
        if match := _HEAD.fullmatch(line.text):
            table.unit, table.length = match["unit"], len(line.text.rstrip())
        elif table.unit and words and words[0].isdecimal() and (len(words) == 1 or is_numeric(words[1])):
            table.length = check_end(line, table.length)
            table.rows.append(_row(table.benchmark, table.unit, words))

    def left_out(self, table: _OpenTable, problem: Problem) -> str:
        where = f"line {problem.line}: " if problem.line not in (0, table.line) else ""
        return f"OMB-Py table left out: {where}{problem.text}"

    def finish(self, table: _OpenTable) -> ImportedTable:
        return ImportedTable(SOURCE, None, table.benchmark, table.line, len(self.parsed.tables), table.rows)


def _benchmark(title: str, context: Context) -> str:
    match = _TITLE.fullmatch(title)
    if match is None:
        if context.benchmark is None:
            raise BadTable("a table without its title; say what it is with --benchmark NAME")
        return context.benchmark
    text = " ".join(match["text"].casefold().split()).removesuffix(" latency")
    if text not in _NAMES:
        raise BadTable(f"unknown title {quote_piece(title)}")
    return _NAMES[text]


def _row(benchmark: str, unit: str, words: Sequence[str]) -> ImportedRow:
    pair = benchmark in _PT2PT
    if len(words) != 2:
        raise BadTable("not a size and a value")
    size, value = whole(words[0]), result(decimal(words[1]))
    return {
        "source": SOURCE,
        "benchmark": benchmark,
        "family": "pt2pt" if pair else "collective",
        "backend": "mpi",
        "binding": "mpi4py",
        "process_sync": None if pair else "none",
        "unit": unit,
        "metric": "bandwidth" if unit == "MB/s" else "latency",
        "size_bytes": size,
        "value": value,
        "ranks": 2 if pair and benchmark != "multi_lat" else None,
        "text_dialect": DIALECT,
        "window": 64 if benchmark in ("bw", "bibw") else None,
        "parameters": {"loop": "one timer around all iterations"},
    }

"""ucx_perftest and ucc_perftest, the tools of UCX and UCC; only their text is read.

Formats: ``src/tools/perf/perftest_run.c`` of UCX 1.9 to 1.20, ``tools/perf/ucc_pt_benchmark.cc`` of UCC 1.0 to 1.7.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from omb_py.results.dialects.log_lines import LogLine
from omb_py.results.dialects.omb.titles import family
from omb_py.results.dialects.reading import (
    BadRow,
    Context,
    ImportedRow,
    ImportedTable,
    LogReader,
    OpenTable,
    Problem,
    check_end,
    check_row,
    is_numeric,
    number,
    result,
    whole,
)

MIB = 1.048576
"""MB/s in a MiB/s, which both tools of RDMA call MB/s."""
_BOX = re.compile(
    r"\|\s(?P<name>API|Test|Data layout|(?:Send|Recv) memory|Message size|Window size):\s+(?P<value>.*?)\s*\|"
)
_KIND = re.compile(r"\|\s+\|(?:\s+\|)?\s+(latency|overhead) \(usec\)\s+\|\s+bandwidth \(MB/s\).*")
_HEAD = re.compile(r"\|\s+(?:Stage|Test)\s+\| # iterations \|\s*(?:typical|[\d.]+%ile) \| average \| overall \|.*")
_CSV_HEAD = re.compile(
    r"(?:[^,]+,)*iterations,(?:typical|[\d.]+_percentile)_lat,avg_lat,overall_lat,avg_bw,overall_bw,.*"
)
_BATCH = re.compile(r"\+([^+\s-][^+\s]*?)-+\+(?:-+\+)+")
_ROW = re.compile(r"(?:(?P<name>Final:|[^\s\[]\S*)\s+)?(?P<numbers>[\d,]+(?:\s+[\d.,]+){7})(?:\s+\S.*)?")
_COMMAND = re.compile(r"\bucx_perftest\b.*")
_USUAL_SIZE = 8
"""Bytes that ucx_perftest sends without ``-s`` (``init_test_params`` in ``perftest.c``)."""
_TESTS: Mapping[str, str] = {
    "tag match latency": "tag_lat",
    "tag match bandwidth": "tag_bw",
    "tag sync match latency": "tag_sync_lat",
    "tag sync match bandwidth": "tag_sync_bw",
    "put latency": "put_lat",
    "put bandwidth": "put_bw",
    "get latency / bandwidth / message rate": "get",
    "stream latency": "stream_lat",
    "stream bandwidth": "stream_bw",
    "am latency": "am_lat",
    "am bandwidth / message rate": "am_bw",
}
"""Description of a test -> its name without ``ucp_``; others keep their words."""


@dataclass(slots=True)
class UcxTable(OpenTable):
    """A run of ucx_perftest that is being read."""

    is_csv: bool
    facts: Mapping[str, str]
    """What stands above it, by its name there."""
    is_latency: bool | None
    name: str = ""
    """Of the test, as a batch file calls it."""


class UcxText(LogReader[UcxTable]):
    """Reader of the text and the CSV of ucx_perftest. The client prints the results, the server what was asked."""

    name = "ucx_perftest text"
    without_rows = "it ended before its result"

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.facts: dict[str, str] = {}
        self.is_latency: bool | None = None
        for line in self.context.before:
            self._command(line.text)

    def starts(self, text: str) -> bool:
        return any(form.fullmatch(text.strip()) for form in (_BOX, _KIND, _HEAD, _CSV_HEAD))

    def above(self, line: LogLine) -> bool:
        text = line.text.strip()
        if match := _BOX.fullmatch(text):
            if match["name"] == "API":
                self.close()
                self.facts = {}
            self.facts[match["name"]] = match["value"]
        elif match := _KIND.fullmatch(text):
            self.close()
            self.is_latency = match[1] == "latency"
        elif _HEAD.fullmatch(text) or _CSV_HEAD.fullmatch(text):
            self.close()
            is_csv = text[0] != "|"
            self.table = UcxTable(line.number, is_csv, self.facts, None if is_csv else self.is_latency)
        elif match := _BATCH.fullmatch(text):
            if self.table is not None:
                self.table.name = match[1]
        else:
            return self.table is None and self._command(text)
        return True

    def _command(self, text: str) -> bool:
        """Take the test and the size from a command line; those of a server's box count more."""
        if not (match := _COMMAND.search(text)):
            return False
        words = match[0].split()
        asked = dict(itertools.pairwise(words))
        if "-t" in asked:
            self.facts = {"Test": asked["-t"].removeprefix("ucp_"), "Message size": asked.get("-s", str(_USUAL_SIZE))}
        return True

    def inside(self, table: UcxTable, line: LogLine) -> None:
        text = line.text.strip()
        if table.is_csv:
            words = [word.strip() for word in text.split(",")]
            if len(words) < 8 or not words[-8].isdecimal() or text.startswith("["):
                return
            name, numbers = "/".join(words[:-8]), words[-8:]
        else:
            match = _ROW.fullmatch(text)
            if match is None:
                if text.startswith("Final:"):
                    raise BadRow("not the eight numbers of a result")
                return
            name, numbers = match["name"] or "", [word.replace(",", "") for word in match["numbers"].split()]
            name = table.name if name == "Final:" else name
        table.length = check_end(line, table.length)
        table.rows.append(_ucx_row(table, name, numbers))

    def left_out(self, table: UcxTable, problem: Problem) -> str:
        return f"result of ucx_perftest left out: {problem.text}"

    def finish(self, table: UcxTable) -> ImportedTable:
        facts = {name: value for name, value in table.facts.items() if name not in ("Test", "Message size")}
        benchmark = str(table.rows[0]["benchmark"])
        return ImportedTable("ucx_perftest", None, benchmark, table.line, len(self.parsed.tables), table.rows, facts)

    def end(self) -> None:
        if self.facts.get("API") and not self.parsed.tables and not self.parsed.problems:
            self.parsed.notes.append(Problem(1, "the server of ucx_perftest prints no result: give the client's text"))


def _ucx_row(table: UcxTable, name: str, numbers: Sequence[str]) -> ImportedRow:
    """The row of the eight numbers of a result: iterations, then percentile, last and overall of each quantity."""
    iterations = whole(numbers[0])
    typical, _, overall, _, bandwidth, _, rate = (number(word) for word in numbers[1:])
    test = name or table.facts.get("Test", "")
    benchmark = _TESTS.get(test, re.sub(r"\W+", "_", test).strip("_")) or "ucx_perftest"
    # the head over a batch file's tests is no test's, and some say latency over every test
    is_latency = not benchmark.endswith("bw") and (bool(name) or table.is_latency is not False)
    size = None if name or "Message size" not in table.facts else whole(table.facts["Message size"])
    memory = {
        fact.lower().replace(" ", "_"): table.facts[fact]
        for fact in ("Send memory", "Recv memory")
        if fact in table.facts
    }
    window = table.facts.get("Window size")
    return {
        "source": "ucx_perftest",
        "benchmark": benchmark,
        "family": "one-sided" if benchmark.startswith(("put", "get")) else "pt2pt",
        "backend": "ucx",
        "ranks": 2,
        "size_bytes": size,
        "window": whole(window) if window else None,
        "iterations": iterations,
        "metric": "latency" if is_latency else "bandwidth",
        "unit": "us" if is_latency else "MB/s",
        "value": result(overall) if is_latency else round(result(bandwidth) * MIB, 6),
        "metrics": {"typical_us": result(typical), "overall_us": result(overall), "message_rate": result(rate)},
        "parameters": memory,
    }


_UCC_HEAD = re.compile(r"\s*Collective:\s+(\S.*?)\s*")
_UCC_FACT = re.compile(r"\s*(Memory type|Datatype|Reduction|Inplace|Iteration mode):\s*(\S+)\s*")
_UCC_COLUMNS = re.compile(r"\s*avg\s+min\s+max(\s+avg\s+(?:max\s+min|min\s+max))?\s*")
_MEMORIES: Mapping[str, str] = {"host": "cpu", "cuda": "cuda", "cuda-managed": "managed", "rocm": "rocm"}


@dataclass(slots=True)
class UccTable(OpenTable):
    """A run of ucc_perftest that is being read."""

    collective: str
    facts: dict[str, str] = field(default_factory=dict)
    columns: int = 0
    """Columns of its rows; 0 above the head."""


class UccText(LogReader[UccTable]):
    """Reader of the text of ucc_perftest."""

    name = "ucc_perftest text"

    def starts(self, text: str) -> bool:
        return _UCC_HEAD.fullmatch(text) is not None

    def above(self, line: LogLine) -> bool:
        if not (match := _UCC_HEAD.fullmatch(line.text)):
            return False
        self.close()
        self.table = UccTable(line.number, match[1].lower().replace(" ", "_"))
        return True

    def inside(self, table: UccTable, line: LogLine) -> None:
        words = line.text.split()
        if table.columns == 0:
            if match := _UCC_FACT.fullmatch(line.text):
                table.facts[match[1]] = match[2]
            elif match := _UCC_COLUMNS.fullmatch(line.text):
                table.columns = 8 if match[1] else 5
                table.length = len(line.text.rstrip())
        elif words and (is_numeric(words[0]) or words[0] == "N/A"):
            check_row(table, line, words, table.columns)
            table.rows.append(_ucc_row(table, words))

    def left_out(self, table: UccTable, problem: Problem) -> str:
        return f"table of ucc_perftest, {table.collective}, left out: {problem.text}"

    def finish(self, table: UccTable) -> ImportedTable:
        launch = len(self.parsed.tables)
        return ImportedTable("ucc_perftest", None, table.collective, table.line, launch, table.rows, table.facts)


def _ucc_row(table: UccTable, words: Sequence[str]) -> ImportedRow:
    mean, fastest, slowest = (result(number(word)) for word in words[2:5])
    operation = table.facts.get("Reduction", "N/A")
    return {
        "source": "ucc_perftest",
        "benchmark": table.collective,
        "family": family(table.collective),
        "backend": "ucc",
        "device": _MEMORIES.get(table.facts.get("Memory type", "").lower()),
        "dtype": table.facts.get("Datatype") or None,
        "op": None if operation == "N/A" else operation.lower(),
        "in_place": table.facts["Inplace"] == "1" if table.facts.get("Inplace", "N/A") != "N/A" else None,
        "size_bytes": None if words[1] == "N/A" else whole(words[1]),
        "metric": "latency",
        "unit": "us",
        "value": mean,
        "metrics": {"rank_min_us": fastest, "rank_max_us": slowest},
        "busbw_gbps": result(number(words[5])) if len(words) > 5 and words[5] != "N/A" else None,
        "parameters": {"mode": table.facts["Iteration mode"]} if "Iteration mode" in table.facts else {},
    }

"""Read OMB's text, versions 5.3 to 8.0, with a state machine over the lines that skips unknown ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

from omb_py.results.dialects.dialect import OWN_TEXT
from omb_py.results.dialects.log_lines import LogLine
from omb_py.results.dialects.omb import names
from omb_py.results.dialects.omb.table import Building, Prelude
from omb_py.results.dialects.reading import (
    INT32,
    BadTable,
    Context,
    ImportedTable,
    LogReader,
    Problem,
    quote_piece,
    whole,
)

_SIDES = (
    (re.compile(r"\s*# Number of Sender threads: (\d+)\s*"), "thread_counts"),
    (re.compile(r"\s*# Number of Receiver threads: (\d+)\s*"), "thread_counts"),
    (re.compile(r"\s*# Number of forked processes in sender: (\d+)\s*"), "process_counts"),
    (re.compile(r"\s*# Number of forked processes in receiver: (\d+)\s*"), "process_counts"),
)
_SIDED = {"thread_counts": ("latency_mt",), "process_counts": ("latency_mp",)}
_DIMENSIONS = re.compile(r"\s*Dimensions size =((?: \d{1,9})+)\s*")
_TOPOLOGY = re.compile(r"\s*Time took to create topology graph: ?(\d{1,15}\.\d\d) us\.?\s*")
_USING = re.compile(r"\s*# ?Using (NCCL|RCCL)\s*")
_BUFFERS = re.compile(r"\s*# Send Buffer on .+ and Receive Buffer on .+")
_SENTENCE = re.compile(r"\s*(?:nprocs: \d+, min: \d+|This is a test with \d+ processes\s*$)")
_STARTS = re.compile(
    r"\s*(?:# OSU \S|# omb-py \S+ Test v|# Size\s{2,}\S|# (?:Avg )?Latency ?\(us\)|# Overall\(us\)"
    r"|# Number of \w+ threads: |# Number of forked processes"
    r"|Dimensions size =|Time took to create topology|# ?Using (?:NCCL|RCCL)\s*$"
    r"|# Send Buffer on |nprocs: \d+, min: \d+|This is a test with \d+ processes\s*$)"
)


class OsuReader(LogReader[Building]):
    """Reader of OMB's text. Each title begins a launch of its own, since each is the start of a program, but in checked
    atomics of several types."""

    name = "OMB text"
    without_rows = ""  # a table says more than that

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.prelude = Prelude()

    def starts(self, text: str) -> bool:
        """Whether a line is a title, stands above one, or is the head of a table whose title is lost."""
        return _STARTS.match(text) is not None

    def above(self, line: LogLine) -> bool:
        if self._read_above(line) or self._title(line):
            return True
        self._begin_untitled(line)
        return False

    def inside(self, table: Building, line: LogLine) -> None:
        table.take(line)

    def is_whole(self, table: Building) -> bool:
        """A line of a sweep over windows ends with the window that failed."""
        return table.rows[-1]["validated"] is not False

    def left_out(self, table: Building, problem: Problem) -> str:
        where = "" if problem.line in (0, table.line) else f", line {problem.line}"
        return f"table {table.benchmark!r} left out{where}: {problem.text}"

    def finish(self, table: Building) -> ImportedTable:
        return table.finished(len(self.parsed.tables) if table.launch is None else table.launch)

    def _read_above(self, line: LogLine) -> bool:
        """Take a line above the title of the next table; False when it is none."""
        text = line.text
        for pattern, key in _SIDES:
            if match := pattern.fullmatch(text):
                if not self._lacks(key):  # 5.x prints them below the title, later versions above it
                    self._begin_prelude(line)
                sides = [side for side in (self.prelude.parameters.get(key), str(whole(match[1], INT32))) if side]
                self.prelude.parameters[key] = ":".join(sides)
                return True
        if match := _DIMENSIONS.fullmatch(text):
            self._begin_prelude(line)
            sizes = [whole(word, INT32) for word in match[1].split()]
            self.prelude.ranks = _product(sizes)
            self.prelude.parameters["neighborhood"] = f"cart:{len(sizes)}"
            return True
        if match := _TOPOLOGY.fullmatch(text):
            self._begin_prelude(line)
            self.prelude.parameters.setdefault("neighborhood", "graph")
            self.prelude.metrics["topology_us"] = float(match[1])
            return True
        if match := _USING.fullmatch(text):
            self._begin_prelude(line)
            self.prelude.library = match[1]
            self.prelude.ranks = (self.prelude.ranks or 0) + 1
            return True
        return False

    def _lacks(self, key: str) -> bool:
        """Whether the open table is its title alone, that of a benchmark with two sides, and one is still to come."""
        table = self.table
        sided = table is not None and table.benchmark in _SIDED.get(key, ()) and not table.columns and not table.rows
        return sided and ":" not in self.prelude.parameters.get(key, "")

    def _begin_prelude(self, line: LogLine) -> None:
        if self.table is not None:
            self.close()
            self.prelude = Prelude()
        if self.prelude.line is None:
            self.prelude.line = line.number

    def _title(self, line: LogLine) -> bool:
        match = names.TITLE.fullmatch(line.text)
        own = None if match else names.OURS.fullmatch(line.text)
        if own:
            self._open(line, own["text"], own["version"])
            if self.table is not None:
                self.table.source = OWN_TEXT
            return True
        if not match:
            if line.text.lstrip().startswith("# OSU "):
                self._begin(line, "unknown").spoil(line.number, f"not a title of OMB: {quote_piece(line.text)}")
                return True
            return False
        text = match["text"] + (match["tail"] or "")
        meant = names.candidates(text)
        if not meant:
            self._begin(line, text[:40]).spoil(line.number, "a benchmark that omb-py does not know")
            return True
        if self.table is not None and not self.table.rows and self.table.benchmark in meant and not self.table.columns:
            return True  # 6.1 to 7.2 print the title of mbw_mr twice
        self._open(line, self._choice(meant), match["version"])
        if self.table is not None:
            self.table.device, self.table.accelerator = names.accelerator(text)
            self.table.prelude.library = names.collective_library(text)
        return True

    def _choice(self, meant: tuple[str, ...]) -> str:
        """Choose among benchmarks with the same title: by the user, by the lines above, or the likeliest."""
        if self.context.benchmark in meant:
            return self.context.benchmark
        around = [name for name in meant if ("neighbor" in name) == ("neighborhood" in self.prelude.parameters)]
        return (around or list(meant))[0]

    def _open(self, line: LogLine, benchmark: str, version: str) -> None:
        self._begin(line, benchmark).version = version

    def _begin(self, line: LogLine, benchmark: str) -> Building:
        launch = None
        if (above := self.table) is not None:
            self.close()
            self.prelude = Prelude()
            if above.goes_on and above.bad is None and above.benchmark == benchmark:
                launch = self.parsed.tables[-1].launch
        self.table = Building(self.prelude.line or line.number, benchmark, None, self.prelude, launch=launch)
        return self.table

    def _begin_untitled(self, line: LogLine) -> None:
        """Begin a table without a title: its start is lost, it is NCCL's point-to-point, or 5.3's osu_init."""
        sentence = _SENTENCE.match(line.text)
        if sentence and (self.table is None or self.table.benchmark not in ("init", "hello") or self.table.rows):
            self._begin(line, "init" if "nprocs" in line.text else "hello")
            return
        head = names.HEAD_LINE.match(line.text) or _BUFFERS.match(line.text)
        if not head or self.table is not None:
            return
        name = self.context.benchmark
        table = self._begin(line, name or "unknown")
        if name is None:
            table.spoil(line.number, "a table without its title; say what it is with --benchmark NAME")


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
        if product > INT32:
            raise BadTable("too many ranks")
    return product

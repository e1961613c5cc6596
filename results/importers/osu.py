"""OMB's text, every version from 5.3 to 8.0: a state machine over the lines; what it does not know it passes over."""

from __future__ import annotations

import re
from collections.abc import Sequence

from omb_py.results.importers import osu_names as names
from omb_py.results.importers.model import INT32, BadTable, Context, Line, Parsed, Problem, fed, shown, whole
from omb_py.results.importers.osu_table import Building, Prelude

_SIDES = (
    (re.compile(r"\s*# Number of Sender threads: (\d+)\s*"), "thread_counts"),
    (re.compile(r"\s*# Number of Receiver threads: (\d+)\s*"), "thread_counts"),
    (re.compile(r"\s*# Number of forked processes in sender: (\d+)\s*"), "process_counts"),
    (re.compile(r"\s*# Number of forked processes in receiver: (\d+)\s*"), "process_counts"),
)
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


class OsuReader:
    """OMB's text."""

    name = "OMB text"

    def starts(self, text: str) -> bool:
        """A title, a line that stands above one, or the head of a table whose title is lost."""
        return _STARTS.match(text) is not None

    def read(self, lines: Sequence[Line], context: Context) -> Parsed:
        """Every table; each title is a launch of its own, since each is a start of a program."""
        return fed(_Reading(context), lines)


class _Reading:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.found = Parsed()
        self.table: Building | None = None
        self.prelude = Prelude()

    def take(self, line: Line) -> None:
        try:
            if self._above(line) or self._title(line) or self._untitled(line):
                return
            if self.table is not None:
                self.table.take(line)
        except BadTable as error:
            if self.table is None:
                self.found.problems.append(Problem(line.number, str(error)))
            else:
                self.table.spoil(line.number, str(error))

    def close(self) -> None:
        """End the table, if there is one."""
        if self.table is None:
            return
        done = self.table.finished(len(self.found.tables))
        if isinstance(done, Problem):
            self.found.problems.append(done)
        else:
            self.found.tables.append(done)
        self.table = None

    def _above(self, line: Line) -> bool:
        """A line that stands above the title of the next table."""
        text = line.text
        for pattern, key in _SIDES:
            if found := pattern.fullmatch(text):
                self._begin_prelude(line)
                sides = [side for side in (self.prelude.parameters.get(key), str(whole(found[1], INT32))) if side]
                self.prelude.parameters[key] = ":".join(sides)
                return True
        if found := _DIMENSIONS.fullmatch(text):
            self._begin_prelude(line)
            sizes = [whole(word, INT32) for word in found[1].split()]
            self.prelude.ranks = _product(sizes)
            self.prelude.parameters["neighborhood"] = f"cart:{len(sizes)}"
            return True
        if found := _TOPOLOGY.fullmatch(text):
            self._begin_prelude(line)
            self.prelude.parameters.setdefault("neighborhood", "graph")
            self.prelude.metrics["topology_us"] = float(found[1])
            return True
        if found := _USING.fullmatch(text):
            self._begin_prelude(line)
            self.prelude.library = found[1]
            self.prelude.ranks = (self.prelude.ranks or 0) + 1
            return True
        return False

    def _begin_prelude(self, line: Line) -> None:
        if self.table is not None:
            self.close()
            self.prelude = Prelude()
        if self.prelude.line is None:
            self.prelude.line = line.number

    def _title(self, line: Line) -> bool:
        found = names.TITLE.fullmatch(line.text)
        ours = None if found else names.OURS.fullmatch(line.text)
        if ours:
            self._open(line, ours["text"], ours["version"])
            if self.table is not None:
                self.table.source = "omb-py text"
            return True
        if not found:
            if line.text.lstrip().startswith("# OSU "):
                self._begin(line, "unknown").spoil(line.number, f"not a title of OMB: {shown(line.text)}")
                return True
            return False
        text = found["text"] + (found["tail"] or "")
        meant = names.candidates(text)
        if not meant:
            self._begin(line, text[:40]).spoil(line.number, "a benchmark that omb-py does not know")
            return True
        if self.table is not None and not self.table.rows and self.table.benchmark in meant and not self.table.columns:
            return True  # 6.1 to 7.2 print the title of mbw_mr twice
        self._open(line, self._choice(meant), found["version"])
        if self.table is not None:
            self.table.device, self.table.accelerator = names.accelerator(text)
            self.table.prelude.library = names.collective_library(text)
        return True

    def _choice(self, meant: tuple[str, ...]) -> str:
        """Of several benchmarks with one title: what the user says, what lines above say, or the likeliest."""
        if self.context.benchmark in meant:
            return self.context.benchmark
        around = [name for name in meant if ("neighbor" in name) == ("neighborhood" in self.prelude.parameters)]
        return (around or list(meant))[0]

    def _open(self, line: Line, benchmark: str, version: str) -> None:
        self._begin(line, benchmark).version = version

    def _begin(self, line: Line, benchmark: str) -> Building:
        if self.table is not None:
            self.close()
            self.prelude = Prelude()
        self.table = Building(self.prelude.line or line.number, benchmark, None, self.prelude)
        return self.table

    def _untitled(self, line: Line) -> bool:
        """A table without a title: one whose beginning is lost, point-to-point of NCCL, and 5.3's osu_init."""
        sentence = _SENTENCE.match(line.text)
        if sentence and (self.table is None or self.table.benchmark not in ("init", "hello") or self.table.rows):
            self._begin(line, "init" if "nprocs" in line.text else "hello")
            return False
        head = names.HEAD_LINE.match(line.text) or _BUFFERS.match(line.text)
        if not head or self.table is not None:
            return False
        name = self.context.benchmark
        table = self._begin(line, name or "unknown")
        if name is None:
            table.spoil(line.number, "a table without its title; say what it is with --benchmark NAME")
        return False


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
        if product > INT32:
            raise BadTable("too many ranks")
    return product

"""Read the text of nccl-tests, with all four generations of heads, and of rccl-tests, which prints the same.

The head gives the names of the columns; words are split at white space. Until 2025 the text does not name its
collective. It is then taken from the command line in the log, the user, the file's name, or the values in the lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from omb_py.results.caveats import named_in
from omb_py.results.dialects.log_lines import LogLine
from omb_py.results.dialects.nccl.rows import (
    RCCL,
    Launch,
    NcclLine,
    Placement,
    RankPlace,
    collective_in,
    collective_named,
    collective_of,
    contradicts,
    copies_in,
    dtype_of,
    library_version,
    make_row,
    settle,
    take_places,
)
from omb_py.results.dialects.nccl.text import AVERAGE
from omb_py.results.dialects.reading import (
    INT32,
    BadRow,
    BadTable,
    Context,
    ImportedRow,
    ImportedTable,
    LogReader,
    OpenTable,
    Problem,
    check_end,
    is_numeric,
    number,
    quote_piece,
    whole,
)

_VERSION = re.compile(r"\s*# ([nr]ccl-tests) version (\S+)(?:.* [nr]ccl-library=(\d{1,7}))?")
_OWN = re.compile(r"\s*# omb-py (\S+) in the layout of nccl-tests(?: (\[ .* \]))?\s*")
_STARTING = re.compile(r"\s*# Collective test starting: (\S+)")
_CONFIG = re.compile(r"\s*# nThread \d+ nGpus \d+ minBytes .*")
_COMPILED = re.compile(r"\s*# NCCL Tests compiled with NCCL (\S+)")
_DEVICES = re.compile(r"\s*# Using devices\s*")
_RANK = re.compile(
    r"\s*#\s+Rank\s+(\d{1,9})\s+(?:Group\s+(\d{1,9})\s+)?(?:Pid\s+\d+\s+)?on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*)"
)
_HEAD = re.compile(r"\s*#\s+(?:size\s+count|bytes\s+N)\s+type\s.*")
_BOUNDS = re.compile(r"\s*#\s*Out of bounds values : (\d+) (\w+)")
_AVERAGE = re.compile(r"\s*#\s*Avg bus bandwidth\s*: (\S+)\s*")
_LIBRARY = re.compile(r".*\b([NR])CCL version ?:? (\d+\.\d+(?:\.\d+)?)")
_RCCL = re.compile(r"\s*rccl-tests: Version (\S+)")
_FAILURE = re.compile(r"failure|error|abort|killed|time[- ]?out", re.IGNORECASE)
_FAILED = re.compile(r"\s*\S+: Test (?:NCCL|CUDA|HIP) failure \S+:\d+ .*")
"""What CUDACHECK and NCCLCHECK of nccl-tests' common.h print before the program ends."""
_STARTS = (_VERSION, _OWN, _STARTING, _CONFIG, _COMPILED, _HEAD)
_TIMES = ("time", "cputime")
_PLACES = 2
_WIDE = 100
"""A line with only one placement has it in the second place when the line is longer than this."""

Values = dict[str, str]


@dataclass(slots=True)
class _OpenTable(OpenTable):
    launch: Launch
    number: int
    fixed: list[str]
    halves: list[list[str]]
    in_ms: bool
    rows: list[tuple[NcclLine, list[Placement]]] = field(default_factory=list, kw_only=True)
    checked: bool | None = None
    """The verdict in the footer, for heads whose last column is a difference instead of a count."""
    average: float | None = None
    """The mean busbw in the footer, in GB/s: of numbers that are not rounded as those in the rows are."""
    named_in: list[str] = field(default_factory=list)
    """Lines above the head that may name the collective: those below are of the next program."""
    begun: str = ""
    """A row whose times are still to come."""
    joined: bool = False
    """Whether the last row was made of two lines."""
    failed: bool = False
    """Whether a rank has said that a call failed."""

    def times(self, words: list[str]) -> int:
        """How many words the times of a row have; 0 where these words are none of them."""
        full = sum(map(len, self.halves))
        numeric = all(is_numeric(word) or word == "N/A" for word in words)
        return next((n for n in (full, len(self.halves[0])) if n == len(words)), 0) if numeric else 0


class NcclText(LogReader[_OpenTable]):
    """Reader of the text of nccl-tests and rccl-tests. A preamble after a table begins another launch."""

    name = "nccl-tests text"

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.seen = [line.text for line in self.context.before[-200:]]
        """Lines that may name the program, and so the collective."""
        self.launch = Launch()
        self.number = 0
        self.used = False
        self.began = 0
        """The first line."""
        self.copy = 1
        """Which of the runs in the list of devices prints now."""

    def starts(self, text: str) -> bool:
        return any(pattern.match(text) for pattern in _STARTS)

    def above(self, line: LogLine) -> bool:
        self.began = self.began or line.number
        return self._preamble(line.text) or self._head(line)

    def _preamble(self, text: str) -> bool:
        begins = any(
            pattern.match(text) for pattern in (_VERSION, _OWN, _STARTING, _CONFIG, _COMPILED, _DEVICES, _RCCL)
        )
        if begins and self.used:
            self.close()
            self.launch, self.number, self.used, self.copy = Launch(), self.number + 1, False, 1
        if match := _VERSION.match(text):
            self.launch.source, self.launch.version = match[1], match[2][:60]
            self.launch.library_version = library_version(int(match[3])) if match[3] else None
        elif match := _OWN.fullmatch(text):
            self.launch.take_own(match[1], named_in(f"# {match[2] or ''}"))
        elif match := _STARTING.match(text):
            self.launch.collective = collective_of(match[1])
        elif _CONFIG.match(text):
            self._config(text)
        elif match := _COMPILED.match(text):
            self.launch.facts["compiled_with"] = match[1]
        elif match := _RCCL.match(text):
            self.launch.source, self.launch.version = RCCL, match[1][:60]
        elif match := _RANK.match(text):
            self.launch.places.append(RankPlace(int(match[1]), int(match[2] or 0), match[3]))
            if match[4].strip():
                self.launch.device_names.add(match[4].strip())
        elif match := _LIBRARY.match(text):
            self.launch.source = RCCL if match[1] == "R" and self.launch.own is None else self.launch.source
            self.launch.library_version = self.launch.library_version or match[2]
        else:
            self.seen.append(text)
            return begins
        return True

    def _config(self, text: str) -> None:
        options = dict(
            re.findall(
                r"(warmup iters|agg iters|(?<!warmup )(?<!agg )iters|graph|minBytes|maxBytes): ?(\d{1,18})", text
            )
        )
        self.launch.iterations = int(options["iters"]) if "iters" in options else None
        self.launch.warmup = int(options["warmup iters"]) if "warmup iters" in options else None
        self.launch.batch = whole(options["agg iters"], INT32) if "agg iters" in options else None
        self.launch.timing = "pipelined"
        self.launch.take_graph(options.get("graph", "0"))
        self.launch.facts["config"] = quote_piece(text.strip().removeprefix("# "), 300).strip("'")

    def end(self) -> None:
        """Say so where a program began and printed no head."""
        launch = self.launch
        if self.used or not (launch.collective or launch.facts or launch.version or launch.places):
            return
        what = f"{launch.collective or 'a program'}{'_perf' if launch.collective else ''} of {launch.source}"
        why = next((text for text in reversed(self.seen) if _FAILURE.search(text)), "")
        ended = f"{what} ended before its first row{f': {quote_piece(why, 120)}' if why else ''}"
        self.parsed.problems.append(Problem(self.began, ended))

    def _head(self, line: LogLine) -> bool:
        if not _HEAD.match(line.text):
            return False
        self.close()
        again, self.used = self.used, True
        if again and self.copy < copies_in(self.launch):
            self.copy, self.number, again = self.copy + 1, self.number + 1, False
        words = line.text.strip().removeprefix("#").split()
        first = next((i for i, word in enumerate(words) if word in _TIMES), len(words))
        halves: list[list[str]] = []
        for word in words[first:]:
            if word in _TIMES:
                halves.append([])
            halves[-1].append("time" if word in _TIMES else word)
        self.table = _OpenTable(line.number, self.launch, self.number, words[:first], halves, in_ms=words[0] == "bytes")
        self.table.length = len(line.text.rstrip())
        self.table.named_in = list(self.seen)
        if again:  # all types and reductions of a program stand under one head
            raise BadTable("a second head: the preamble of a further program is missing or damaged")
        needed = [{"time", "algbw", "busbw"} - set(half) for half in halves]
        if (
            not 1 <= len(halves) <= _PLACES
            or any(needed)
            or words[:first][:1] not in (["size"], ["bytes"])
            or "type" not in words[:first]
        ):
            raise BadTable("a head without size, type, time, algbw and busbw")
        return True

    def inside(self, part: _OpenTable, line: LogLine) -> None:
        words = line.text.split()
        if match := _BOUNDS.match(line.text):
            part.checked = match[2] == "OK"
            return
        if match := _AVERAGE.fullmatch(line.text):
            part.average = number(match[1])
            return
        if part.bad:
            return
        if _FAILED.fullmatch(line.text) and not part.failed:
            part.failed = True
            text = f"the program failed here, and measured no further size: {quote_piece(line.text.strip(), 160)}"
            self.parsed.problems.append(Problem(line.number, text))
            return
        if part.begun and words and len(words) == part.times(words):
            text = f"{part.begun}{line.text.lstrip()}"
            part.begun, part.joined = "", True
            self._row(part, text.split(), len(text.rstrip()))
            return
        if len(words) < 2 or not words[0].isdecimal() or not (len(words) < 3 or words[2][:1].isalpha()):
            return
        if not words[1].isdecimal():
            return
        if part.begun:
            begun, part.begun = part.begun, ""
            self.leave_out(Problem(line.number, f"{quote_piece(begun)} has no times"))
        if len(words) == len(part.fixed) and line.ended:
            part.begun = line.text.rstrip() + "  "  # nccl-tests prints the times later, and a message came between
            return
        part.length, part.joined = check_end(line, part.length), False
        self._row(part, words, len(line.text.rstrip()))

    def is_whole(self, table: _OpenTable) -> bool:
        return not table.joined

    def _row(self, part: _OpenTable, words: list[str], length: int) -> None:
        if len(words) > 2 and re.fullmatch(r"\d{4}-\d\d-\d\d", words[-2]):  # -S appends the time of printing
            words = words[:-2]
        if "root" not in part.fixed and "redop" in part.fixed:
            at = part.fixed.index("redop")
            if len(words) > at and is_numeric(words[at]):  # until 2021 it was blank where nothing is reduced
                words = [*words[:at], "none", *words[at:]]
        fixed, rest = words[: len(part.fixed)], words[len(part.fixed) :]
        full = sum(map(len, part.halves))
        places = [False, True][: len(part.halves)]
        if part.halves and len(rest) == len(part.halves[0]) < full:  # only one placement was measured
            places = [length > _WIDE]
        elif len(rest) != full:
            raise BadRow(f"{len(words)} of {len(part.fixed) + full} columns")
        cells = dict(zip(part.fixed, fixed, strict=True))
        halves = []
        for in_place in places:
            names = part.halves[0] if len(places) == 1 else part.halves[int(in_place)]
            halves.append(_half(dict(zip(names, rest, strict=False)), in_place, part.in_ms))
            rest = rest[len(names) :]
        part.rows.append((_line(cells), halves))
        self.seen.clear()  # what stood above names this program, not the next one

    def left_out(self, part: _OpenTable, problem: Problem) -> str:
        where = f"line {problem.line}: " if problem.line else ""
        return f"table of nccl-tests left out: {where}{problem.text}"

    def finish(self, part: _OpenTable) -> ImportedTable:
        """Make the table, with the collective that the log, the user or the file's name says."""
        launch, context = part.launch, self.context
        if launch.collective is None:
            launch.collective = (
                collective_in(part.named_in)
                or (collective_of(context.benchmark) if context.benchmark else None)
                or collective_named(context.name)
            )
        name = settle(launch, [fixed for fixed, _ in part.rows])
        take_places(launch)
        if launch.ranks and contradicts(launch.ranks, name, [half for _, halves in part.rows for half in halves]):
            launch.ranks = launch.devices = launch.nodes = None
            launch.hosts = []
        rows: list[ImportedRow] = []
        for fixed, halves in part.rows:
            for half in halves:
                if half.time_us is half.algbw is half.busbw is None:
                    continue  # a placement that was not measured
                row = make_row(launch, name, fixed, half)
                row["text_dialect"] = "nccl-tests"
                if row["validated"] is None and part.checked and half.is_checked:
                    row["validated"] = True
                rows.append(row)
        if not rows:
            raise BadTable("no placement was measured")
        facts = launch.facts if part.average is None else {**launch.facts, AVERAGE: part.average}
        return ImportedTable(launch.source, launch.version, rows[0]["benchmark"], part.line, part.number, rows, facts)


def _line(cells: Values) -> NcclLine:
    op, root = cells.get("redop") or cells.get("op"), cells.get("root", "-1")
    return NcclLine(
        whole(cells.get("size") or cells.get("bytes") or ""),
        whole(cells.get("count") or cells.get("N") or ""),
        dtype_of(cells["type"]),
        None if op in (None, "none") else op,
        None if root == "-1" else whole(root, INT32),
    )


def _half(cells: Values, in_place: bool, in_ms: bool) -> Placement:
    time = _number(cells["time"])
    return Placement(
        in_place,
        time if time is None or not in_ms else time * 1000,
        _number(cells["algbw"]),
        _number(cells["busbw"]),
        _number(cells["#wrong"]) if "#wrong" in cells else None,
        is_checked=[*cells.values()][-1] != "N/A",
    )


def _number(word: str) -> float | None:
    return None if word == "N/A" else number(word)

"""Read the text of nccl-tests, with all four generations of heads, and of rccl-tests, which prints the same.

The head gives the names of the columns; words are split at white space. Until 2025 the text does not name its
collective. It is then taken from the command line in the log, the user, the file's name, or the values in the lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from omb_py.results.dialects.nccl.rows import (
    RCCL,
    Launch,
    Placement,
    collective_in,
    collective_named,
    collective_of,
    dtype_of,
    library_version,
    make_row,
    settle,
)
from omb_py.results.dialects.reading import (
    INT32,
    BadTable,
    Context,
    Line,
    Parsed,
    Problem,
    Table,
    check_end,
    feed,
    number,
    shown,
    whole,
)

_VERSION = re.compile(r"\s*# nccl-tests version (\S+)(?:.* nccl-library=(\d{1,7}))?")
_STARTING = re.compile(r"\s*# Collective test starting: (\S+)")
_CONFIG = re.compile(r"\s*# nThread \d+ nGpus \d+ minBytes .*")
_COMPILED = re.compile(r"\s*# NCCL Tests compiled with NCCL (\S+)")
_DEVICES = re.compile(r"\s*# Using devices\s*")
_RANK = re.compile(
    r"\s*#\s+Rank\s+(\d{1,9})\s+(?:Group\s+\d+\s+)?(?:Pid\s+\d+\s+)?on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*)"
)
_HEAD = re.compile(r"\s*#\s+(?:size\s+count|bytes\s+N)\s+type\s.*")
_BOUNDS = re.compile(r"\s*#\s*Out of bounds values : (\d+) (\w+)")
_LIBRARY = re.compile(r".*\b[NR]CCL version (\d+\.\d+(?:\.\d+)?)")
_RCCL = re.compile(r"\s*rccl-tests: Version (\S+)")
_STARTS = (_VERSION, _STARTING, _CONFIG, _COMPILED, _HEAD)
_TIMES = ("time", "cputime")
_PLACES = 2
_WIDE = 100
"""A line with only one placement has it in the second place when the line is longer than this."""

Values = dict[str, str]


@dataclass(slots=True)
class _Part:
    """A table that is being read."""

    line: int
    launch: Launch
    number: int
    fixed: list[str]
    halves: list[list[str]]
    in_ms: bool
    lines: list[tuple[int, int | None, str, str | None, int | None]] = field(default_factory=list)
    placements: list[list[Placement]] = field(default_factory=list)
    checked: bool | None = None
    """The verdict in the footer, for heads whose last column is a difference instead of a count."""
    bad: Problem | None = None
    length: int = 0
    named_in: list[str] = field(default_factory=list)
    """Lines above the head that may name the collective: those below are of the next program."""


class NcclText:
    """Reader of the text of nccl-tests and rccl-tests."""

    name = "nccl-tests text"

    def starts(self, text: str) -> bool:
        """Whether a line belongs to the preamble or is the head of a table."""
        return any(pattern.match(text) for pattern in _STARTS)

    def read(self, lines: Sequence[Line], context: Context) -> Parsed:
        """Read every table; a preamble after a table begins another launch."""
        return feed(_Reading(context), lines)


class _Reading:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.parsed = Parsed()
        self.seen = [line.text for line in context.before[-200:]]
        """Lines that may name the program, and so the collective."""
        self.launch = Launch()
        self.number = 0
        self.used = False
        self.part: _Part | None = None

    def take(self, line: Line) -> None:
        try:
            if not (self._preamble(line.text) or self._head(line)):
                self._body(line)
        except BadTable as error:
            if self.part is None:
                self.parsed.problems.append(Problem(line.number, str(error)))
            elif self.part.bad is None:
                self.part.bad = Problem(line.number, str(error))

    def _preamble(self, text: str) -> bool:
        begins = any(pattern.match(text) for pattern in (_VERSION, _STARTING, _CONFIG, _COMPILED, _DEVICES, _RCCL))
        if begins and self.used:
            self.close()
            self.launch, self.number, self.used = Launch(), self.number + 1, False
        if match := _VERSION.match(text):
            self.launch.version = match[1]
            self.launch.library_version = library_version(int(match[2])) if match[2] else None
        elif match := _STARTING.match(text):
            self.launch.collective = collective_of(match[1])
        elif _CONFIG.match(text):
            self._config(text)
        elif match := _COMPILED.match(text):
            self.launch.facts["compiled_with"] = match[1]
        elif match := _RCCL.match(text):
            self.launch.source, self.launch.version = RCCL, match[1][:60]
        elif match := _RANK.match(text):
            self.launch.hosts.append(match[2])
            if match[3].strip():
                self.launch.device_names.add(match[3].strip())
            self.launch.ranks = len(self.launch.hosts)
        elif match := _LIBRARY.match(text):
            self.launch.library_version = self.launch.library_version or match[1]
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
        self.launch.timing = "graph" if options.get("graph", "0") != "0" else "pipelined"
        self.launch.facts["config"] = shown(text.strip().removeprefix("# "), 300).strip("'")

    def _head(self, line: Line) -> bool:
        if not _HEAD.match(line.text):
            return False
        if self.part is not None:
            self.close()
        again, self.used = self.used, True
        words = line.text.strip().removeprefix("#").split()
        first = next((i for i, word in enumerate(words) if word in _TIMES), len(words))
        halves: list[list[str]] = []
        for word in words[first:]:
            if word in _TIMES:
                halves.append([])
            halves[-1].append("time" if word in _TIMES else word)
        self.part = _Part(line.number, self.launch, self.number, words[:first], halves, in_ms=words[0] == "bytes")
        self.part.length = len(line.text.rstrip())
        self.part.named_in = list(self.seen)
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

    def _body(self, line: Line) -> None:
        part, words = self.part, line.text.split()
        if part is None:
            return
        if match := _BOUNDS.match(line.text):
            part.checked = match[2] == "OK"
            return
        if part.bad or len(words) < 2 or not words[0].isdecimal() or not (len(words) < 3 or words[2][:1].isalpha()):
            return
        if not words[1].isdecimal():
            return
        part.length = check_end(line, part.length)
        self._row(part, words, len(line.text.rstrip()))

    def _row(self, part: _Part, words: list[str], length: int) -> None:
        if len(words) > 2 and re.fullmatch(r"\d{4}-\d\d-\d\d", words[-2]):  # -S appends the time of printing
            words = words[:-2]
        fixed, rest = words[: len(part.fixed)], words[len(part.fixed) :]
        full = sum(map(len, part.halves))
        places = [False, True][: len(part.halves)]
        if part.halves and len(rest) == len(part.halves[0]) < full:  # only one placement was measured
            places = [length > _WIDE]
        elif len(rest) != full:
            raise BadTable(f"{len(words)} of {len(part.fixed) + full} columns")
        cells = dict(zip(part.fixed, fixed, strict=True))
        halves = []
        for in_place in places:
            names = part.halves[0] if len(places) == 1 else part.halves[int(in_place)]
            halves.append(_half(dict(zip(names, rest, strict=False)), in_place, part.in_ms))
            rest = rest[len(names) :]
        part.lines.append(_fixed(cells))
        part.placements.append(halves)
        self.seen.clear()  # what stood above names this program, not the next one

    def close(self) -> None:
        part, self.part = self.part, None
        if part is None:
            return
        try:
            if part.bad is not None:
                raise BadTable(f"line {part.bad.line}: {part.bad.text}")
            if not part.lines:
                raise BadTable("no rows")
            self.parsed.tables.append(self._table(part))
        except BadTable as error:
            self.parsed.problems.append(Problem(part.line, f"table of nccl-tests left out: {error}"))

    def _table(self, part: _Part) -> Table:
        launch, context = part.launch, self.context
        if launch.collective is None:
            launch.collective = (
                collective_in(part.named_in)
                or (collective_of(context.benchmark) if context.benchmark else None)
                or collective_named(context.name)
            )
        name = settle(launch, part.lines)
        rows: list[dict[str, Any]] = []
        for (size, count, dtype, op, root), halves in zip(part.lines, part.placements, strict=True):
            for half in halves:
                row = make_row(launch, name, size, count, dtype, op, root, half)
                row["text_dialect"] = "nccl-tests"
                if row["validated"] is None and part.checked and "#wrong" not in part.halves[0]:
                    row["validated"] = True
                rows.append(row)
        return Table(launch.source, launch.version, rows[0]["benchmark"], part.line, part.number, rows, launch.facts)


def _fixed(cells: Values) -> tuple[int, int | None, str, str | None, int | None]:
    size = whole(cells.get("size") or cells.get("bytes") or "")
    count = whole(cells.get("count") or cells.get("N") or "")
    op, root = cells.get("redop") or cells.get("op"), cells.get("root", "-1")
    return (
        size,
        count,
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
    )


def _number(word: str) -> float | None:
    return None if word == "N/A" else number(word)

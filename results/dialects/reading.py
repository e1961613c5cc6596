"""The results of reading a file: tables of rows, and problems with their line numbers."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from omb_py.results.dialects.log_lines import LogLine
from omb_py.results.dialects.plausible import RowLine, odd_line
from omb_py.results.store.redact import redact_text

INT32 = 2**31 - 1
INT64 = 2**63 - 1
_MOST_SHOWN = 400
"""Only this many characters of a piece are searched for secrets; then it is cut to length."""

_WHOLE = re.compile(r"\d{1,19}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,40}(\.\d{0,40})?([eE][+-]?\d{1,3})?", re.ASCII)
_DECIMALS = re.compile(r"-?\d{1,40}\.\d\d", re.ASCII)
_NO_NUMBER = frozenset({"nan", "-nan", "inf", "-inf"})


class BadTable(Exception):
    """A line makes its table unusable; the text says why."""


class BadRow(BadTable):
    """A line that should be a row and is none. It is left out, and its table stays."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a file that could not be read, and why."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


ImportedRow = dict[str, Any]
"""Columns of the store -> what a file says of them; None where it says nothing."""


@dataclass(slots=True)
class ImportedTable:
    """A table that was read completely: one benchmark of one start of a tool."""

    source: str
    """Name of the tool, for the column ``source``."""
    version: str | None
    """Version of the tool; None when the file does not state it."""
    benchmark: str
    line: int
    """Number of its first line."""
    launch: int
    """Number of the start of the tool in this file, from 0."""
    rows: list[ImportedRow]
    """Rows with the known columns; all others become null."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """Facts for the provenance of the launch."""
    started_at: str | None = None
    """ISO time of the launch; None when the file does not state it."""


@dataclass(slots=True)
class Parsed:
    """The tables, problems and notes of a file."""

    tables: list[ImportedTable] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    """Measurements that the tool reports as not made."""

    def add(self, other: Parsed) -> None:
        """Append the results of another part of the file, and continue the numbers of launches."""
        first = 1 + max((table.launch for table in self.tables), default=-1)
        for table in other.tables:
            table.launch += first
        self.tables += other.tables
        self.problems += other.problems
        self.notes += other.notes


@dataclass(frozen=True, slots=True)
class Context:
    """Knowledge about a file besides its lines."""

    name: str = ""
    benchmark: str | None = None
    """The benchmark of tables that do not state it, as given by the user."""
    before: Sequence[LogLine] = ()
    """Lines before this part of the file; they may hold the command."""


@runtime_checkable
class TextReader(Protocol):
    """Reader of a text format whose tables may stand anywhere in a log."""

    name: str

    def starts(self, text: str) -> bool:
        """Whether a line can only be the start of this tool's output."""

    def read(self, lines: Sequence[LogLine], context: Context) -> Parsed:
        """Read the lines from such a start up to that of another tool, or to the end. Never raises."""


@dataclass(slots=True, kw_only=True)
class OpenTable:
    """A table that is being read."""

    line: int = field(kw_only=False)
    """Number of its first line."""
    bad: Problem | None = None
    """What excludes it; the first reason counts."""
    rows: list[Any] = field(default_factory=list)
    length: int = 0
    """Length of the head, then of the longest row, which shows whether the last line is cut off."""


T = TypeVar("T", bound=OpenTable)


class LogReader(TextReader, Generic[T]):
    """The shell of a reader of text: it opens tables, gives each its lines, and keeps those that are whole.

    A reader says which lines begin its output (`starts`), what a line above a table means (`above`, which opens and
    closes tables), what a line inside of one means (`inside`), and makes the finished table (`finish`). Each of them
    raises BadTable for doubtful input, which excludes only the table that is open.
    """

    without_rows = "no rows"
    """Why a table without rows is left out; empty: it is not."""

    def __init__(self, context: Context | None = None) -> None:
        self.context = context or Context()
        self.parsed = Parsed()
        self.table: T | None = None
        self.row_lines: dict[RowLine, list[Any]] = {}
        """The lines of the open table that became rows, and these."""
        self.head_length = 0

    def read(self, lines: Sequence[LogLine], context: Context) -> Parsed:
        reader = type(self)(context)
        for line in lines:
            try:
                if not reader.above(line) and reader.table is not None:
                    before = len(reader.table.rows)
                    reader.head_length = reader.head_length if reader.row_lines else reader.table.length
                    if not line.is_noise:
                        reader.inside(reader.table, line)
                    if len(reader.table.rows) > before and reader.is_whole(reader.table):
                        reader.row_lines[RowLine(line.number, line.text)] = reader.table.rows[before:]
            except BadRow as error:
                reader.leave_out(Problem(line.number, str(error)))
            except BadTable as error:
                reader.spoil(Problem(line.number, str(error)))
        reader.close()
        reader.end()
        return reader.parsed

    def is_whole(self, table: T) -> bool:
        """Whether the last row of a table has all its columns."""
        return True

    def leave_out(self, problem: Problem) -> None:
        """Leave a row out, and name it; one of a table that is excluded anyway is not named."""
        if self.table is None or self.table.bad is None:
            self.parsed.problems.append(Problem(problem.line, f"row left out: {problem.text}"))

    def spoil(self, problem: Problem) -> None:
        """Exclude the open table from the import."""
        if self.table is None:
            self.parsed.problems.append(problem)
        else:
            self.table.bad = self.table.bad or problem

    def close(self) -> None:
        """End the open table: no line of it follows."""
        table, self.table = self.table, None
        row_lines, self.row_lines = self.row_lines, {}
        if table is None:
            return
        try:
            if table.bad is None:
                finished = self._finish_table(table)  # with all rows, which may show that a title is missing
                if self._leave_out_odd(table, row_lines):
                    finished = self._finish_table(table)
                self.parsed.tables.append(finished)
                return
        except BadTable as error:
            if not table.rows and self.parsed.problems and self.parsed.problems[-1].line > table.line:
                return  # each of its rows is named already
            table.bad = Problem(0, str(error))
        self.parsed.problems.append(Problem(table.line, self.left_out(table, table.bad)))

    def _finish_table(self, table: T) -> ImportedTable:
        if self.without_rows and not table.rows:
            raise BadTable(self.without_rows)
        return self.finish(table)

    def _leave_out_odd(self, table: T, row_lines: dict[RowLine, list[Any]]) -> bool:
        """Leave out the rows whose lines are set out unlike the others: they are lines of something else."""
        before = len(table.rows)
        while odd := odd_line(list(row_lines), self.head_length):
            left_out = row_lines.pop(odd)
            table.rows[:] = [row for row in table.rows if not any(row is other for other in left_out)]
            self.leave_out(Problem(odd.number, f"{quote_piece(odd.text)} is set out unlike the other rows"))
        return len(table.rows) < before

    def end(self) -> None:
        """Add what is to be said once the last line has been read."""

    @abstractmethod
    def above(self, line: LogLine) -> bool:
        """Take a line above a table or its title; False when it is neither."""

    @abstractmethod
    def inside(self, table: T, line: LogLine) -> None:
        """Take a line of the open table, which may be noise."""

    @abstractmethod
    def finish(self, table: T) -> ImportedTable:
        """Make the finished table."""

    @abstractmethod
    def left_out(self, table: T, problem: Problem) -> str:
        """Say that a table is left out; a problem in line 0 is one of the whole table."""


@runtime_checkable
class WholeReader(Protocol):
    """Reader of a format that takes up a whole file."""

    name: str

    def claims(self, text: str) -> bool:
        """Whether a file has this format, even if it is damaged."""

    def read_whole(self, text: str, context: Context) -> Parsed:
        """Read the tables of the file. Never raises."""


def whole(word: str, most: int = INT64) -> int:
    """Convert a word to a whole number from 0 to `most`. Raises BadRow."""
    if not _WHOLE.fullmatch(word) or int(word) > most:
        raise BadRow(f"{quote_piece(word)} is not a whole number")
    return int(word)


def number(word: str) -> float | None:
    """Convert a word to a number of at least 0; None for nan and inf. Raises BadRow."""
    if word in _NO_NUMBER:
        return None
    if not _NUMBER.fullmatch(word):
        raise BadRow(f"{quote_piece(word)} is not a number")
    return _read_number(word)


def result(value: float | None) -> float:
    """The number of a row's result. Raises BadRow where it is none: a tool that measured has one."""
    if value is None:
        raise BadRow("no number where the result stands: take the line away")
    return value


def _read_number(word: str) -> float | None:
    """The number in a word. Raises BadRow for a negative one: no tool measures less than nothing."""
    if float(word) < 0:
        raise BadRow(f"{quote_piece(word)} is negative")
    return _finite(float(word))


def decimal(word: str) -> float | None:
    """Convert a number that C printed with ``%.2f``; None for nan and inf.

    Raises BadRow, also for fewer than two decimals, as such a number was cut off, and below 0.
    """
    if word in _NO_NUMBER:
        return None
    if not _DECIMALS.fullmatch(word):
        raise BadRow(f"{quote_piece(word)} is not a number with two decimals")
    return _read_number(word)


def check_end(line: LogLine, length: int) -> int:
    """Check that a row is not cut off, as a last line without a line end that is shorter than `length` is.

    Returns the larger of `length` and the row's length, both in characters. Raises BadRow for such a row.
    """
    own = len(line.text.rstrip())
    if not line.ended and own < length:
        raise BadRow("the file ends within the row")
    return max(own, length)


def check_row(table: OpenTable, line: LogLine, words: Sequence[str], columns: int) -> None:
    """Check that a row has so many columns and is not cut off, and keep its length. Raises BadRow for another."""
    if len(words) != columns:
        raise BadRow(f"{len(words)} of {columns} columns")
    table.length = check_end(line, table.length)


def iso_time(text: object, form: str) -> str | None:
    """A time in ISO format; files do not state their zone, so it counts as UTC. None where there is no time."""
    try:
        return datetime.strptime(" ".join(str(text).split()), form).isoformat()
    except ValueError:
        return None


def is_numeric(word: str) -> bool:
    """Whether a word starts like a number."""
    return word[:1].isdigit() or word in _NO_NUMBER or (word[:1] in "-." and word[1:2].isdigit())


def quote_piece(text: str, most: int = 40) -> str:
    """Quote a piece of a file in a message: at most `most` characters, on one line, without secrets."""
    clean = redact_text(text.strip()[:_MOST_SHOWN])
    return repr(clean if len(clean) <= most else clean[: most - 1] + "…")


def _finite(value: float) -> float | None:
    return value if value - value == 0 else None

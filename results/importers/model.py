"""What a reader makes of a file: tables of rows, and problems with the number of their line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

INT32 = 2**31 - 1
INT64 = 2**63 - 1
_MOST_SHOWN = 400
"""Characters that are searched for secrets before the piece is cut to length."""

_WHOLE = re.compile(r"\d{1,19}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,40}(\.\d{0,40})?([eE][+-]?\d{1,3})?", re.ASCII)
_DECIMALS = re.compile(r"-?\d{1,40}\.\d\d", re.ASCII)
_NO_NUMBER = frozenset({"nan", "-nan", "inf", "-inf"})


class BadTable(Exception):
    """A line that spoils the table it stands in; says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log, without its end and without what a launcher puts in front."""

    number: int
    """From 1."""
    text: str
    ended: bool = True
    """False for a last line without a line end: it may be cut off."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What of a file could not be read."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


@dataclass(slots=True)
class Table:
    """A table that was read whole: one benchmark of one start of a tool."""

    source: str
    """The tool, as in the column ``source``."""
    version: str | None
    """Its version, where the file says it."""
    benchmark: str
    line: int
    """Number of its first line."""
    launch: int
    """Which start of the tool in this file, from 0."""
    rows: list[dict[str, Any]]
    """Columns that are known; the rest is null."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """For the provenance of the launch."""
    started_at: str | None = None
    """ISO time of the launch, where the file says it."""


@dataclass(slots=True)
class Parsed:
    """All that was found in a file."""

    tables: list[Table] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    """What a tool says that it did not measure."""

    def add(self, other: Parsed) -> None:
        """Take over what another part of the file holds; launches are numbered on."""
        first = 1 + max((table.launch for table in self.tables), default=-1)
        for table in other.tables:
            table.launch += first
        self.tables += other.tables
        self.problems += other.problems
        self.notes += other.notes


@dataclass(frozen=True, slots=True)
class Context:
    """What is known besides the lines."""

    name: str = ""
    """Of the file."""
    benchmark: str | None = None
    """What the user says is measured, where a table does not say it."""
    before: Sequence[Line] = ()
    """Lines before the first of this part, such as the command."""


class TextReader(Protocol):
    """A format of text that may stand anywhere in a log."""

    name: str

    def starts(self, text: str) -> bool:
        """Whether a line can only be the beginning of this tool's output."""

    def read(self, lines: Sequence[Line], context: Context) -> Parsed:
        """The tables from one such line up to another tool's, or to the end. Never raises."""


class Reading(Protocol):
    """A reader's state over the lines of a part."""

    found: Parsed

    def take(self, line: Line) -> None:
        """The next line."""

    def close(self) -> None:
        """No line follows."""


def fed(reading: Reading, lines: Sequence[Line]) -> Parsed:
    """What a state machine has found when it has taken all lines."""
    for line in lines:
        reading.take(line)
    reading.close()
    return reading.found


class WholeReader(Protocol):
    """A format that is a whole file."""

    name: str

    def claims(self, text: str) -> bool:
        """Whether a file is meant to be of this format, whole or damaged."""

    def read_whole(self, text: str, context: Context) -> Parsed:
        """The tables of the file. Never raises."""


def whole(word: str, most: int = INT64) -> int:
    """A whole number of 0 to `most`. Raises BadTable."""
    if not _WHOLE.fullmatch(word) or int(word) > most:
        raise BadTable(f"{shown(word)} is not a whole number")
    return int(word)


def number(word: str) -> float | None:
    """A number; None for nan and inf. Raises BadTable."""
    if word in _NO_NUMBER:
        return None
    if not _NUMBER.fullmatch(word):
        raise BadTable(f"{shown(word)} is not a number")
    return _finite(float(word))


def decimal(word: str) -> float | None:
    """A number with two decimals, as C prints ``%.2f``: one with fewer is cut off. Raises BadTable."""
    if word in _NO_NUMBER:
        return None
    if not _DECIMALS.fullmatch(word):
        raise BadTable(f"{shown(word)} is not a number with two decimals")
    return _finite(float(word))


def check_end(line: Line, length: int) -> int:
    """The length of a row whose head or neighbours have `length`. Raises BadTable when it is cut off."""
    own = len(line.text.rstrip())
    if not line.ended and own < length:
        raise BadTable("the file ends within the row")
    return max(own, length)


def is_numeric(word: str) -> bool:
    """Whether a word begins like a number."""
    return word[:1].isdigit() or word in _NO_NUMBER or (word[:1] in "-." and word[1:2].isdigit())


def shown(text: str, most: int = 40) -> str:
    """A piece of a file for a message: short, on one line, without secrets."""
    from omb_py.results.store.redact import redact_text

    clean = redact_text(text.strip()[:_MOST_SHOWN])
    return repr(clean if len(clean) <= most else clean[: most - 1] + "…")


def _finite(value: float) -> float | None:
    return value if value - value == 0 else None

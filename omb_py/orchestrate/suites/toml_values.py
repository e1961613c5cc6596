"""Values of a suite's TOML file with their line numbers, which :mod:`tomllib` does not report, and readers by type."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from omb_py.errors import UsageError, nearest
from omb_py.grammar.values import parse_fraction

KeyPath = tuple[str | int, ...]
"""Keys and indices into arrays, from the top of the file."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_QUOTED = (
    re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}(?!")', re.S),
    re.compile(r"'''.*?'{3,5}(?!')", re.S),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
_PLAIN = re.compile(r"[^,\]}#\n]+")


def key_lines(text: str) -> dict[KeyPath, int]:
    """Find the line of every table, key and array element.

    Args:
        text: TOML that tomllib reads without an error; the result for anything else is meaningless.

    >>> key_lines("[[entry]]\\nranks = [2,\\n 4]")
    {('entry', 0): 1, ('entry', 0, 'ranks'): 2, ('entry', 0, 'ranks', 0): 2, ('entry', 0, 'ranks', 1): 3}
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[KeyPath, int] = {}
        self._arrays: dict[KeyPath, int] = {}
        """Array of tables -> index of its last table."""
        # offset and its line: counting on from there keeps the scan linear
        self._counted = (0, 1)

    def document(self) -> None:
        table: KeyPath = ()
        while self._next():
            if self.text.startswith("[[", self.at):
                table = self._header(2)
            elif self.text[self.at] == "[":
                table = self._header(1)
            else:
                self._pair(table)

    def _next(self) -> str:
        """Skip blanks, newlines and comments; return the character that follows, or nothing at the end."""
        match = _BLANK.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return self.text[self.at : self.at + 1]

    def _note_line(self, path: KeyPath) -> None:
        offset, line = self._counted
        line += self.text.count("\n", offset, self.at)
        self._counted = (self.at, line)
        self.lines.setdefault(path, line)

    def _header(self, brackets: int) -> KeyPath:
        begin = self.at
        self.at += brackets
        *parents, last = self._dotted()
        end = self.at
        path: KeyPath = ()
        for part in parents:
            path = self._extend_path((*path, part))
        path = (*path, last)
        if brackets == 2:
            self._arrays[path] = self._arrays.get(path, -1) + 1
            path = (*path, self._arrays[path])
        else:
            path = self._extend_path(path)
        self.at = begin
        self._note_line(path)
        self.at = end
        self._next()
        self.at += brackets
        return path

    def _extend_path(self, path: KeyPath) -> KeyPath:
        """Extend a path to the last table where it names an array of tables, as TOML does."""
        return (*path, self._arrays[path]) if path in self._arrays else path

    def _dotted(self) -> Iterator[str]:
        while True:
            self._next()
            yield self._key()
            if self._next() != ".":
                return
            self.at += 1

    def _key(self) -> str:
        if self.text[self.at] in "\"'":
            begin = self.at
            self._string()
            return str(tomllib.loads(f"k = {self.text[begin : self.at]}")["k"])
        return self._take(_BARE)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:  # not TOML: the caller did not check it with tomllib
            raise ValueError(f"no TOML at character {self.at}")
        self.at = match.end()
        return match[0]

    def _string(self) -> None:
        self._take(next((p for p in _QUOTED if p.match(self.text, self.at)), _QUOTED[-1]))

    def _pair(self, table: KeyPath) -> None:
        begin = self.at
        # the path is known only at its end, and its line is that of its beginning
        path = (*table, *self._dotted())
        end, self.at = self.at, begin
        for length in range(len(table) + 1, len(path) + 1):
            self._note_line(path[:length])
        self.at = end + 1  # the equals sign
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        first = self._next()
        if first == "[":
            self.at += 1
            index = 0
            while self._next() != "]":
                self._note_line((*path, index))
                self._value((*path, index))
                index += 1
                self._comma()
            self.at += 1
        elif first == "{":
            self.at += 1
            while self._next() != "}":
                self._pair(path)
                self._comma()
            self.at += 1
        elif first in "\"'":
            self._string()
        else:
            self._take(_PLAIN)

    def _comma(self) -> None:
        if self._next() == ",":
            self.at += 1


T = TypeVar("T")
Word = TypeVar("Word", bound=str)


class LocatedError(UsageError):
    """A suite's file is wrong; the message begins with the file and the line."""


class Located:
    """Part of a suite's file that knows its line."""

    __slots__ = ()
    file: str
    line: int

    @property
    def where(self) -> str:
        """Name of the place in messages."""
        raise NotImplementedError

    def error(self, text: str) -> LocatedError:
        """Return an error about this place, in one line."""
        return LocatedError(f"{self.file}:{self.line}: {self.where}: {text}")


@dataclass(frozen=True, slots=True)
class TomlSetting(Located):
    """A key of the file and its value."""

    key: str
    value: Any
    """The value as TOML gives it; None if a required key is missing."""
    file: str
    line: int
    place: str
    """``[defaults]`` or ``[entry 2]``; empty at the top of the file."""

    @property
    def where(self) -> str:
        """``[entry 2] key 'ranks'``."""
        return f"{self.place} key {self.key!r}".strip()

    @property
    def values(self) -> list[Any]:
        """The elements of a list, or the single value in a list."""
        return self.value if isinstance(self.value, list) else [self.value]


@dataclass(frozen=True, slots=True)
class TomlTable(Located):
    """A table of the file, with its settings in the order of the file."""

    place: str
    """``[accept]`` or ``[criterion 2]``."""
    file: str
    line: int
    settings: tuple[TomlSetting, ...]

    @property
    def where(self) -> str:
        """``[criterion 2]``."""
        return self.place

    def by_key(self, known: Iterable[str]) -> dict[str, TomlSetting]:
        """Return the settings by key. Raises LocatedError, with the nearest key, where one is not among `known`."""
        for setting in self.settings:
            if setting.key not in known:
                raise setting.error(unknown_key(setting.key, known))
        return {setting.key: setting for setting in self.settings}


def read_text(path: Path, shown: str, what: str) -> str:
    """Read the text of a TOML file. Raises UsageError: it cannot be read, or is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")  # editors of Windows write a mark first
    except OSError as error:
        raise UsageError(f"cannot read {what} {shown}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{shown}:{line}: not a TOML file: a byte that is not UTF-8") from None


def _parse(text: str, file: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(_syntax(error, text, file)) from None
    except ValueError:  # Python converts no number of thousands of digits
        line = 1 + next(n for n, words in enumerate(text.splitlines()) if re.search(r"\d{4300}", words))
        raise UsageError(f"{file}:{line}: a number has thousands of digits") from None


def _syntax(error: Exception, text: str, file: str) -> str:
    match = re.search(r"^(.*?) \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
    line = int(match[2]) if match and match[2] else text.count("\n") + (not text.endswith("\n"))
    reason = match[1] if match else str(error)
    return f"{file}:{line}: not TOML: {reason[:1].lower()}{reason[1:]}"


class TomlFile:
    """A TOML file as keys and tables that know their lines."""

    def __init__(self, text: str, file: str) -> None:
        """Read TOML text. Raises UsageError with file and line."""
        self.data, self.file, self._lines = _parse(text, file), file, key_lines(text)

    def line(self, place: KeyPath) -> int:
        # an array of tables begins where its first table does
        return self._lines.get(place) or self._lines.get((*place, 0), 1)

    def key(self, name: str) -> TomlSetting:
        """A key at the top of the file; its value is None if the key is missing."""
        return TomlSetting(name, self.data.get(name), self.file, self.line((name,)), "")

    def table(self, name: str) -> TomlTable | None:
        """The table ``[name]``, if there is one. Raises LocatedError where the key holds something else."""
        table = self.data.get(name)
        if table is None:
            return None
        if not isinstance(table, dict):
            raise self.key(name).error(f"expected a table [{name}], got {kind(table)}")
        return self._table((name,), table, f"[{name}]")

    def tables(self, name: str) -> tuple[TomlTable, ...]:
        """The tables ``[[name]]``. Raises LocatedError where the key holds something else."""
        tables = self.data.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.key(name).error(f"expected tables [[{name}]], got {kind(tables)}")
        return tuple(self._table((name, n), table, f"[{name} {n + 1}]") for n, table in enumerate(tables))

    def _table(self, place: KeyPath, table: Mapping[str, object], shown: str) -> TomlTable:
        settings = (TomlSetting(key, value, self.file, self.line((*place, key)), shown) for key, value in table.items())
        return TomlTable(shown, self.file, self.line(place), tuple(settings))


def read(settings: Mapping[str, TomlSetting], key: str, reader: Callable[[TomlSetting], T], default: T) -> T:
    """Read the value of a key, or return `default` if the key is not given.

    Raises:
        LocatedError: the reader refuses the value.
    """
    if key not in settings:
        return default
    try:
        return reader(settings[key])
    except LocatedError:
        raise
    except UsageError as error:
        raise settings[key].error(str(error)) from None


def text(setting: TomlSetting) -> str:
    """Read a text that is not blank, and strip it. Raises LocatedError."""
    if setting.value is None:
        raise setting.error("missing; it is required")
    if not isinstance(setting.value, str) or not setting.value.strip():
        raise setting.error(f"expected a text, got {kind(setting.value)}")
    return setting.value.strip()


def fraction(setting: TomlSetting) -> float:
    """Read a fraction between 0 and 1, a number or a text as ``"5%"``. Raises LocatedError, UsageError."""
    number = isinstance(setting.value, float)
    return parse_fraction(str(setting.value) if number else text(setting))


def identifier(setting: TomlSetting) -> str:
    """Read a name of letters, digits and ``. _ + -`` that begins with a letter or digit. Raises LocatedError."""
    name = text(setting)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise setting.error(f"expected letters, digits and . _ + -, got {name!r}")
    return name


def one_of(setting: TomlSetting, words: tuple[Word, ...]) -> Word:
    """Read one of some words. Raises LocatedError with the nearest."""
    word = text(setting)
    if word not in words:
        raise setting.error(f"{word!r} is unknown: {nearest(word, words)}")
    return words[words.index(word)]


def whole(setting: TomlSetting, least: int, most: int) -> int:
    """Read a whole number from `least` to `most`. Raises LocatedError."""
    value = setting.value
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise setting.error(f"expected a whole number from {least} to {most}, got {kind(value)}")
    return value


def flag(setting: TomlSetting) -> bool:
    """Read true or false. Raises LocatedError."""
    if not isinstance(setting.value, bool):
        raise setting.error(f"expected true or false, got {kind(setting.value)}")
    return setting.value


def unknown_key(key: str, keys: Iterable[str], what: str = "key") -> str:
    """Say that there is no such key, with the nearest: ``there is no such key: did you mean window-size?``."""
    return f"there is no such {what}: {nearest(key, keys)}"


_KINDS: tuple[tuple[type, Callable[[object], str]], ...] = (
    (bool, lambda value: str(value).lower()),  # before int, of which bool is a subclass
    (int, str),
    (float, str),
    (str, repr),
    (dict, lambda value: "a table"),
    (list, lambda value: "a list" if value else "an empty list"),
    (type(None), lambda value: "none"),
)


def kind(value: object) -> str:
    """Describe a TOML value in a message: numbers and texts as they are, other values by their type."""
    return next((describe(value) for known, describe in _KINDS if isinstance(value, known)), "a date or time")

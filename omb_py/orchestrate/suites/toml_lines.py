"""Line numbers of the keys of a TOML text, which :mod:`tomllib` does not report."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

Path = tuple[str | int, ...]
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


def key_lines(text: str) -> dict[Path, int]:
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
        self.lines: dict[Path, int] = {}
        self._arrays: dict[Path, int] = {}
        """Array of tables -> index of its last table."""
        # offset and its line: counting on from there keeps the scan linear
        self._counted = (0, 1)

    def document(self) -> None:
        table: Path = ()
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

    def _here(self, path: Path) -> None:
        offset, line = self._counted
        line += self.text.count("\n", offset, self.at)
        self._counted = (self.at, line)
        self.lines.setdefault(path, line)

    def _header(self, brackets: int) -> Path:
        begin = self.at
        self.at += brackets
        *parents, last = self._dotted()
        end = self.at
        path: Path = ()
        for part in parents:
            path = self._inside((*path, part))
        path = (*path, last)
        if brackets == 2:
            self._arrays[path] = self._arrays.get(path, -1) + 1
            path = (*path, self._arrays[path])
        else:
            path = self._inside(path)
        self.at = begin
        self._here(path)
        self.at = end
        self._next()
        self.at += brackets
        return path

    def _inside(self, path: Path) -> Path:
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

    def _pair(self, table: Path) -> None:
        begin = self.at
        # the path is known only at its end, and its line is that of its beginning
        path = (*table, *self._dotted())
        end, self.at = self.at, begin
        for length in range(len(table) + 1, len(path) + 1):
            self._here(path[:length])
        self.at = end + 1  # the equals sign
        self._value(path)

    def _value(self, path: Path) -> None:
        first = self._next()
        if first == "[":
            self.at += 1
            index = 0
            while self._next() != "]":
                self._here((*path, index))
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

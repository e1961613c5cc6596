"""What a terminal is given: text and colours. Other control sequences come from stored data, and are shown instead.

A store may come from anybody. A name in it with an escape sequence could set the terminal's title, write over a
verdict or answer for the user (CWE-150).
"""

from __future__ import annotations

import re
from typing import Any, TextIO

_COLOUR = r"\x1b\[[0-9;]*m"
_CURSOR = r"\x1b\[[0-9;?]*[A-HJKhl]"
_CONTROL = r"([\x00-\x08\x0b-\x1f\x7f-\x9f])"
PRINTED = re.compile(f"{_COLOUR}|{_CONTROL}")
"""For results: colours stay."""
REDRAWN = re.compile(rf"{_COLOUR}|{_CURSOR}|\r|{_CONTROL}")
"""For messages: also what progress needs to draw a line again."""


def shown(text: str, pattern: re.Pattern[str] = PRINTED) -> str:
    r"""The text with its control characters written out.

    >>> shown("a\x1b]0;title\x07")
    'a\\x1b]0;title\\x07'
    """
    return pattern.sub(lambda match: f"\\x{ord(match[1]):02x}" if match[1] else match[0], text)


class PlainTerminal:
    """A stream to a terminal, which writes control characters out."""

    def __init__(self, stream: TextIO, pattern: re.Pattern[str]) -> None:
        self._stream, self._pattern = stream, pattern

    def write(self, text: str) -> int:
        """Write the text as it may be shown; returns the number of characters that were asked for."""
        self._stream.write(shown(text, self._pattern))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def guarded(stream: TextIO, pattern: re.Pattern[str]) -> TextIO:
    """The stream itself where no terminal reads it: files get every byte as it is stored."""
    if isinstance(stream, PlainTerminal) or not stream.isatty():
        return stream
    return PlainTerminal(stream, pattern)  # type: ignore[return-value]  # what it lacks is the stream's

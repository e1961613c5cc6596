"""Standard output that may lose its reader, as in ``omb-py accept nightly | head``, or be closed, or on a full disk."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from typing import TextIO


class _Forgiving(io.FileIO):
    """A descriptor that discards what is written after its reader has gone, or after its disk was full."""

    failure = ""
    """Why the output is not complete; empty where it is, or where nobody reads it any more."""

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # typeshed says ReadableBuffer, which has no name here
        """Write, or discard. A command goes on, stores its rows, and ends with the exit code of its verdict."""
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.failure = error.strerror or type(error).__name__
            discard_output(self.fileno())
            return len(data)


def discard_output(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def open_what_is_closed() -> None:
    """Open /dev/null for each standard stream that the caller closed, as ``>&-`` does, here and in ranks."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it takes the smallest free number
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def failure() -> str:
    """Why stdout is not complete, after it was flushed; empty where it is."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.failure if isinstance(raw, _Forgiving) else ""


def survive_a_closed_pipe() -> None:
    """Replace ``sys.stdout`` and ``sys.stderr`` where they are the process's own; a caller's stream stays.

    What cannot be written on stderr is lost, and the exit code stays that of the work.
    """
    sys.stdout = _forgiving(sys.stdout, sys.__stdout__)
    sys.stderr = _forgiving(sys.stderr, sys.__stderr__)


def _forgiving(stream: TextIO, own: TextIO | None) -> TextIO:
    if stream is not own or not isinstance(stream, io.TextIOWrapper):
        return stream
    with contextlib.suppress(OSError):
        stream.flush()
    raw: io.RawIOBase = _Forgiving(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


_COLOUR = r"\x1b\[[0-9;]*m"
_CURSOR = r"\x1b\[[0-9;?]*[A-HJKhl]"
_CONTROL = r"([\x00-\x08\x0b-\x1f\x7f-\x9f])"
CONTROL = re.compile(_CONTROL)
"""For errors, which quote what was typed: nothing stays."""
PRINTED = re.compile(f"{_COLOUR}|{_CONTROL}")
"""For results: colours stay."""
REDRAWN = re.compile(rf"{_COLOUR}|{_CURSOR}|\r|{_CONTROL}")
"""For messages: also what progress needs to draw a line again."""


def write_out_controls(text: str, pattern: re.Pattern[str] = PRINTED) -> str:
    r"""The text with its control characters written out.

    >>> write_out_controls("a\x1b]0;title\x07")
    'a\\x1b]0;title\\x07'
    """
    return pattern.sub(lambda match: f"\\x{ord(match[1]):02x}" if match[1] else match[0], text)


class PlainTerminal:
    """A stream to a terminal, which writes control characters out."""

    def __init__(self, stream: TextIO, pattern: re.Pattern[str]) -> None:
        self._stream, self._pattern = stream, pattern

    def write(self, text: str) -> int:
        """Write the text as it may be shown; returns the number of characters that were asked for."""
        self._stream.write(write_out_controls(text, self._pattern))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def guarded(stream: TextIO, pattern: re.Pattern[str]) -> TextIO:
    """The stream itself where no terminal reads it: files get every byte as it is stored."""
    if isinstance(stream, PlainTerminal) or not stream.isatty():
        return stream
    return PlainTerminal(stream, pattern)  # type: ignore[return-value]  # what it lacks is the stream's

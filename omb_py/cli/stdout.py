"""Standard output that may lose its reader, as in ``omb-py accept nightly | head``, or be closed, or on a full disk."""

from __future__ import annotations

import io
import os
import sys


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
    """Replace ``sys.stdout`` where it is the process's own; a test's or a caller's stream stays."""
    stream = sys.stdout
    if stream is not sys.__stdout__ or not isinstance(stream, io.TextIOWrapper):
        return
    stream.flush()
    raw = _Forgiving(stream.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )

"""Standard output that may lose its reader, as in ``omb-py accept nightly | head``."""

from __future__ import annotations

import io
import os
import sys


class _Forgiving(io.FileIO):
    """A descriptor that discards what is written after its reader has gone."""

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # typeshed says ReadableBuffer, which has no name here
        """Write, or discard. A command goes on, stores its rows, and ends with the exit code of its verdict."""
        try:
            return super().write(data)
        except BrokenPipeError:
            discard_output(self.fileno())
            return len(data)


def discard_output(descriptor: int) -> None:
    """Send the rest to /dev/null."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


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

"""Text files that an option names: one entry a line, ``#`` before comments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from omb_py.errors import UsageError


def entries(path: Path, what: str, form: str) -> Iterator[tuple[int, str]]:
    """The (line number, text) pairs of a file, without comments and empty lines.

    Args:
        path: the file.
        what: what a message calls it.
        form: what a message says to write, where the file cannot be read.

    Raises:
        UsageError: the file cannot be read as text.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise UsageError(f"{what} {path}: {reason}: write {form}") from None
    for number, line in enumerate(lines, 1):
        if body := line.partition("#")[0].strip():
            yield number, body

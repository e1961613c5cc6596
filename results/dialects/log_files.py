"""Logs of other tools as files: those of a folder, and the content of one."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from omb_py.errors import UsageError

STDIN = "-"
MOST_BYTES = 128 << 20
"""A text takes up to seven times its length in memory while its lines are read."""


def logs_in(folder: str | Path) -> list[str]:
    """The files of a folder in the order of their names, without hidden ones."""
    return sorted(entry.path for entry in os.scandir(folder) if entry.is_file() and not entry.name.startswith("."))


def logs_below(folder: str) -> list[str]:
    """The files of a folder and of the folders in it."""
    folders = [folder, *sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())]
    return [name for each in folders for name in logs_in(each)]


def without_files(folder: str) -> str:
    """What is wrong with a folder that has no file of its own."""
    below = next((os.path.dirname(name) for name in logs_below(folder)), "")
    return f"{folder} is a folder without files" + (f": name one of its folders, as {below}" if below else "")


def read_log(source: str) -> tuple[bytes, float]:
    """The content of a file, or of standard input, and when it was last changed, in seconds since 1970.

    Raises:
        UsageError: it cannot be read, or is too long.
    """
    try:
        if source == STDIN:
            data, changed = sys.stdin.buffer.read(MOST_BYTES + 1), time.time()
        else:
            with Path(source).open("rb") as file:
                data, changed = file.read(MOST_BYTES + 1), os.fstat(file.fileno()).st_mtime
    except OSError as error:
        raise UsageError(f"cannot read it: {(error.strerror or str(error)).lower()}") from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"it has more than {MOST_BYTES >> 20} MiB: split it between two tables")
    return data, changed

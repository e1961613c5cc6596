"""Writing a file that a user named: whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from omb_py.errors import EnvironmentProblem


def write_whole(output: Path, content: bytes) -> None:
    """Write a file whole or not at all. A symlink stays, a pipe or device gets the content.

    Raises:
        EnvironmentProblem: it cannot be written.
    """
    try:
        if output.exists() and (output.is_relative_to("/dev") or not (output.is_file() or output.is_dir())):
            output.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(output)) if output.is_symlink() else output, content)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {output}: {error.strerror}") from error


def _replace(target: Path, content: bytes) -> None:
    part = target.with_name(f".{target.name}.part")
    try:
        part.write_bytes(content)
        if target.is_file():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise

"""C that is compiled for tests."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.machines.mpi import run_command

COMPILER = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
STRICT = ("-Wall", "-Werror")


def shared_library(source: Path, library: Path, *flags: str) -> Path:
    """Compile one file into a shared library, and return its path. Raises CalledProcessError."""
    assert COMPILER, "no C compiler"
    words = [COMPILER, "-shared", "-fPIC", "-O1", str(source), "-o", str(library), *flags, "-ldl"]
    run_command(words, check=True)
    return library

"""C that is compiled for tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

COMPILER = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
STRICT = ("-Wall", "-Werror")


def shared_library(source: Path, library: Path, *flags: str) -> Path:
    """Compile one file into a shared library, and return its path. Raises CalledProcessError."""
    assert COMPILER, "no C compiler"
    words = [COMPILER, "-shared", "-fPIC", "-O1", str(source), "-o", str(library), *flags, "-ldl"]
    subprocess.run(words, check=True, capture_output=True, text=True)
    return library

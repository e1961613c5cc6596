"""Loading the compiled interpreter: one process a node compiles it, the others wait, and later launches find it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def without_scipy() -> None:
    """Keep Numba from loading SciPy in a rank, for linear algebra that we do not use (docs/decisions/0004)."""
    if "scipy" not in sys.modules:
        sys.modules["scipy"] = None  # type: ignore[assignment]


def _marker() -> Path:
    source = Path(__file__).with_name("interpreter.py")
    text = f"{source} {source.stat().st_mtime_ns} {sys.version} {os.environ.get('NUMBA_CACHE_DIR', '')}"
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"omb-py-{os.getuid()}-{name}.compiled"


def load() -> Any:
    """The interpreter's ``run``; the first process of a node compiles it (seconds) while the others wait."""
    marker = _marker()
    if marker.exists():
        from omb_py.engine.interpreter import run

        return run
    descriptor = os.open(marker.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        from omb_py.engine.interpreter import run

        marker.touch()
        return run
    finally:
        os.close(descriptor)

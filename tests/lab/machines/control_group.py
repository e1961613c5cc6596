"""A control group with little memory, of either version of Linux's control groups."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OLD, NEW = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


@contextmanager
def group(nbytes: int) -> Iterator[Path | None]:
    """The folder of a new group that may take `nbytes`; None: 0 is asked for, or no group can be made here."""
    old = (OLD / "memory.limit_in_bytes").exists()
    folder = (OLD if old else NEW) / f"injected-{uuid.uuid4().hex[:8]}"
    try:
        if not nbytes:
            raise OSError
        if not old:
            (NEW / "cgroup.subtree_control").write_text("+memory")
        folder.mkdir()
        (folder / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(nbytes))
    except OSError:
        yield None
        return
    try:
        yield folder
    finally:
        folder.rmdir()


def joining(folder: Path) -> str:
    """Bash that puts the shell into the group and lets it see no other."""
    name = shlex.quote(str(folder))
    return f"echo $$ > {name}/cgroup.procs; mount --bind {name} {folder.parent}"


def told(nbytes: int) -> str:
    """Bash that makes the kernel tell of so much memory, all of it free."""
    kib = nbytes // 1024
    lines = "\\n".join(f"{name}: {kib} kB" for name in ("MemTotal", "MemFree", "MemAvailable"))
    return f"printf '{lines}\\n' > /tmp/meminfo; mount --bind /tmp/meminfo /proc/meminfo"

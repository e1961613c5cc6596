"""Private folders for the time of a launch, and the removal of those whose owner was killed.

The name says which process made the folder, in which namespace of process numbers since which boot, so that a later
process can tell whether the owner still lives. Nobody but the owner may enter (mode 0700).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from omb_py.digests import hex_digest
from omb_py.engine.rank.start_times import start_ticks

_PREFIX: Final = "omb-py"


def make() -> Path:
    """A new private folder of this process, in the folder for temporary files. Raises OSError."""
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}-{_name_this_boot()}-{os.getpid()}-{start_ticks()}-"))


def remove(folder: Path) -> None:
    """Remove a folder that :func:`make` has made; no error where it is gone."""
    shutil.rmtree(folder, ignore_errors=True)


def abandoned() -> Iterator[Path]:
    """Folders of this user whose process on this machine has ended without removing them."""
    pattern = re.compile(rf"{_PREFIX}-{_name_this_boot()}-(\d+)-(\d+)-")
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            match = pattern.match(entry.name)
            if match is None or not entry.is_dir(follow_symlinks=False):
                continue
            if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                continue
            if start_ticks(int(match[1])) != int(match[2]):
                yield Path(entry.path)


def _name_this_boot() -> str:
    """This boot and namespace of process numbers: elsewhere the same number is another process."""
    parts = []
    with contextlib.suppress(OSError):
        parts = [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return hex_digest(" ".join(parts))[:8]

"""The files that the processes of a launch have mapped to run code from: programs and shared libraries."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from omb_py.engine.rank.system_info import build_id


@dataclass(frozen=True, slots=True, order=True)
class MappedFile:
    """A file with code, as it was when a process had it mapped."""

    path: str
    build_id: str = ""
    """The GNU build id; empty where it has none."""

    @property
    def name(self) -> str:
        """Name of the file without its folder."""
        return Path(self.path).name

    def __str__(self) -> str:
        return f"{self.path} (build {self.build_id[:8]})" if self.build_id else self.path


def descendants(pid: int) -> set[int]:
    """The process and all that it has started, as far as they still have a parent among them."""
    seen, waiting = {pid}, [pid]
    while waiting:
        for task in entries_of(f"/proc/{waiting.pop()}/task"):
            with contextlib.suppress(OSError, ValueError):
                children = {int(word) for word in (task / "children").read_text().split()}
                waiting += children - seen
                seen |= children
    return seen


def entries_of(folder: str | Path) -> list[Path]:
    """What lies in a folder; nothing where it cannot be read, as that of a process that has ended."""
    try:
        return list(Path(folder).iterdir())
    except OSError:
        return []


def mapped_by(pids: Iterable[int]) -> set[MappedFile]:
    """The files from which these processes run code now."""
    paths: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", errors="replace") as maps:
            for line in maps:
                fields = line.split(maxsplit=5)
                if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):
                    paths.add(fields[5].rstrip("\n").removesuffix(" (deleted)"))
    return {MappedFile(path, _build(path)) for path in paths}


@cache
def _build(path: str) -> str:
    """What is mapped stays as it was when it was first seen."""
    return build_id(path) or ""

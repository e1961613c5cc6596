"""Core binding: the processors of this machine, those that an affinity mask leaves, and the one for each rank."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Policy = Literal["core", "hwthread", "list", "none", "default"]


@dataclass(frozen=True)
class Processors:
    """The logical processors that this process may use, grouped by core."""

    cores: tuple[tuple[int, ...], ...]
    restricted: bool = False
    """An affinity mask (taskset) excludes processors that launchers would take, so they must be given a list."""

    @property
    def logical(self) -> int:
        """Number of logical processors."""
        return sum(len(core) for core in self.cores)


@dataclass(frozen=True)
class CoreBinding:
    """How ranks are bound to processors."""

    policy: Policy
    cpus: tuple[int, ...] = ()
    """With ``list``: the logical processor of each local rank."""
    oversubscribed: bool = False
    notes: tuple[str, ...] = ()


def parse_list(text: str) -> tuple[int, ...]:
    """Parse processor numbers in the kernel's list form.

    >>> parse_list("0-2,5")
    (0, 1, 2, 5)
    """
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        if first:
            numbers += range(int(first), int(last if dash else first) + 1)
    return tuple(numbers)


def processors(system: Path = Path("/sys")) -> Processors:
    """The processors that this process may use, grouped by core."""
    usable = os.sched_getaffinity(0)
    cores: dict[tuple[int, ...], None] = {}
    for cpu in sorted(usable):
        siblings: tuple[int, ...] = (cpu,)
        with contextlib.suppress(OSError, ValueError):
            file = system / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
            siblings = tuple(other for other in parse_list(file.read_text()) if other in usable)
        cores[siblings] = None
    allowed = usable
    # Launchers know what a control group allows; they overlook what taskset excludes.
    for name in ("fs/cgroup/cpuset.cpus.effective", "devices/system/cpu/online"):
        with contextlib.suppress(OSError, ValueError):
            listed = set(parse_list((system / name).read_text()))
            if listed:
                allowed = listed
                break
    return Processors(tuple(cores), restricted=not usable >= allowed)


def bind_cores(ranks: int, here: Processors) -> CoreBinding:
    """Bind each rank to a core of its own where there are enough, else to a hardware thread, else not at all."""
    cores, logical = len(here.cores), here.logical
    if ranks <= cores:
        if here.restricted:
            return CoreBinding("list", tuple(core[0] for core in here.cores[:ranks]))
        return CoreBinding("core")
    counts = f"{_count(ranks, 'rank')} on {_count(cores, 'core')}"
    if ranks <= logical:
        note = f"{counts} with {logical} hardware threads: ranks share cores; expect slower and more scattered times"
        if here.restricted:
            every = tuple(cpu for core in here.cores for cpu in core)
            return CoreBinding("list", every[:ranks], notes=(note,))
        return CoreBinding("hwthread", notes=(note,))
    note = f"{counts}: ranks share cores; times include waiting for a turn, up to thousands of times the true ones"
    return CoreBinding("none", oversubscribed=True, notes=(note,))


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def bound_by_user(extra: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the user's launcher arguments `extra` hold one of these options, such as those for binding."""
    return any(arg.lstrip("-").split("=")[0] in words for arg in extra if arg.startswith("-"))

"""Which processor each rank gets: cores of this machine, what a restricted mask leaves of them, and what to say."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Policy = Literal["core", "hwthread", "list", "none", "default"]


@dataclass(frozen=True, slots=True)
class Processors:
    """What this process may use: a group of logical processors for each core, and whether that is a mask's choice."""

    cores: tuple[tuple[int, ...], ...]
    restricted: bool = False
    """A mask (taskset) leaves out processors that launchers would take: they must be given a list."""

    @property
    def logical(self) -> int:
        """Number of logical processors."""
        return sum(len(core) for core in self.cores)


@dataclass(frozen=True, slots=True)
class Placement:
    """How ranks are bound."""

    policy: Policy
    cpus: tuple[int, ...] = ()
    """For ``list``: a logical processor for each local rank."""
    oversubscribed: bool = False
    notes: tuple[str, ...] = ()


def parse_list(text: str) -> tuple[int, ...]:
    """Processor numbers from the kernel's list form.

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
    mine = os.sched_getaffinity(0)
    cores: dict[tuple[int, ...], None] = {}
    for cpu in sorted(mine):
        siblings: tuple[int, ...] = (cpu,)
        with contextlib.suppress(OSError, ValueError):
            file = system / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
            siblings = tuple(other for other in parse_list(file.read_text()) if other in mine)
        cores[siblings] = None
    allowed = mine
    # Launchers know what a control group allows; they overlook what taskset leaves.
    for name in ("fs/cgroup/cpuset.cpus.effective", "devices/system/cpu/online"):
        with contextlib.suppress(OSError, ValueError):
            listed = set(parse_list((system / name).read_text()))
            if listed:
                allowed = listed
                break
    return Processors(tuple(cores), restricted=not mine >= allowed)


def place(ranks: int, here: Processors) -> Placement:
    """Bind each rank to a core of its own where there are enough, else to a hardware thread, else not at all."""
    cores, logical = len(here.cores), here.logical
    if ranks <= cores:
        if here.restricted:
            return Placement("list", tuple(core[0] for core in here.cores[:ranks]))
        return Placement("core")
    said = f"{_count(ranks, 'rank')} on {_count(cores, 'core')}"
    if ranks <= logical:
        note = f"{said} with {logical} hardware threads: ranks share cores; expect slower and more scattered times"
        if here.restricted:
            every = tuple(cpu for core in here.cores for cpu in core)
            return Placement("list", every[:ranks], notes=(note,))
        return Placement("hwthread", notes=(note,))
    note = f"{said}: ranks share cores; times include waiting for a turn, up to thousands of times the true ones"
    return Placement("none", oversubscribed=True, notes=(note,))


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def bound_by_user(extra: Sequence[str], words: Sequence[str]) -> bool:
    """True when the launcher arguments say already how to bind."""
    return any(arg.lstrip("-").split("=")[0] in words for arg in extra if arg.startswith("-"))

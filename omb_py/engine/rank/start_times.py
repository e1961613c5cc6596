"""When processes began, and what the start of a rank is made of, up to its first call."""

from __future__ import annotations

import os
import time


def start_ticks(pid: int | str = "self") -> int | None:
    """When a process began (clock ticks since boot), which with its number names it for good; None once it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def now_ns() -> int:
    """Nanoseconds since this machine booted: one clock for all its processes, which nobody sets."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def process_start_ns() -> int:
    """When this process started, as :func:`now_ns`, to a hundredth of a second. (proc_pid_stat(5): field 22.)"""
    return (start_ticks() or 0) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class StartTimes:
    """Stages of a start, each from the end of the one before.

    >>> times = StartTimes(began_ns=0)
    >>> times.end("Python", 40_000_000)
    >>> times.end("the parent", 50_000_000)
    >>> times.text()
    '0.050 s: Python 0.040, the parent 0.010'
    """

    def __init__(self, began_ns: int) -> None:
        self._ends = [("", began_ns)]

    def end(self, stage: str, at_ns: int | None = None) -> None:
        """Note the end of a stage: now, unless told otherwise."""
        self._ends.append((stage, now_ns() if at_ns is None else at_ns))

    def text(self) -> str:
        pairs = zip(self._ends, self._ends[1:], strict=False)
        stages = [f"{stage} {(end - begin) / 1e9:.3f}" for (_, begin), (stage, end) in pairs]
        return f"{(self._ends[-1][1] - self._ends[0][1]) / 1e9:.3f} s: {', '.join(stages)}"

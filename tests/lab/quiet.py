"""Is the machine quiet? A benchmark waits for that, at most for a while, and says what else ran meanwhile."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

QUIET_CORES = 0.15
"""Busy cores, ours and others', below which a machine counts as quiet."""
LOOK_S = 1.0


def busy_seconds() -> float | None:
    """Processor seconds that the machine has spent on anything since it started; None where that is not told."""
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(w) for w in words)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(patience: float) -> float:
    """Wait until two looks in a row find a quiet machine, at most `patience` seconds; returns the seconds waited."""
    began, quiet = time.monotonic(), 0
    while quiet < 2 and time.monotonic() - began < patience:
        before, at = busy_seconds(), time.monotonic()
        if before is None:
            break
        time.sleep(LOOK_S)
        after = busy_seconds()
        assert after is not None
        quiet = quiet + 1 if (after - before) / (time.monotonic() - at) < QUIET_CORES else 0
    return time.monotonic() - began


@dataclass(slots=True)
class Others:
    """What other processes used between :meth:`start` and :meth:`cores`."""

    _busy: float | None = None
    _own: float = 0.0
    _at: float = 0.0

    @classmethod
    def start(cls) -> Others:
        """Begin to watch."""
        return cls(busy_seconds(), _own_seconds(), time.monotonic())

    def cores(self) -> float | None:
        """Mean number of cores that processes other than ours and our ended children kept busy."""
        now = busy_seconds()
        if now is None or self._busy is None:
            return None
        others = (now - self._busy) - (_own_seconds() - self._own)
        return max(0.0, others / (time.monotonic() - self._at))


@contextmanager
def watched(patience: float) -> Iterator[None]:
    """Print how long a quiet machine was waited for, and in the end how long all took and what else ran meanwhile."""
    began = time.monotonic()
    print(f"waited {wait_for_quiet(patience):.0f} s for a quiet machine", flush=True)
    others = Others.start()
    yield
    busy = others.cores()
    told = "" if busy is None else f"; other processes kept {busy:.2f} cores busy"
    print(f"{time.monotonic() - began:.0f} s{told}")


def _own_seconds() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)

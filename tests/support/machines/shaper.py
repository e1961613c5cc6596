"""A cable that holds packets back: two TAP devices, and a process that hands over each frame some time later.

For kernels without sch_netem. ``python -m tests.support.machines.shaper TAP TAP MICROSECONDS`` says ``ready``
and runs until its standard input is closed, as by the end of whoever started it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

_TUNSETIFF, _TAP_NO_PI = 0x400454CA, 0x0002 | 0x1000
_SPIN_S = 40e-6


def tap(name: str) -> int:
    """A new TAP device; it lives as long as the descriptor. Raises OSError."""
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(handle, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP_NO_PI))
    return handle


def main(words: list[str]) -> None:
    first, second = tap(words[0]), tap(words[1])
    after = float(words[2]) * 1e-6
    other = {first: second, second: first}
    with contextlib.suppress(OSError):  # else the busy ranks beside it would delay more
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    print("ready", flush=True)
    held: deque[tuple[float, int, bytes]] = deque()
    while True:
        wait = held[0][0] - time.monotonic() if held else None
        ready = select.select([0, *other], [], [], None if wait is None else max(0.0, wait - _SPIN_S))[0]
        if 0 in ready:
            return
        with contextlib.suppress(OSError):
            for handle in ready:
                for _ in range(64):
                    frame = os.read(handle, 65536)
                    held.append((time.monotonic() + after, other[handle], frame))
        while held and held[0][0] <= time.monotonic():
            _, target, frame = held.popleft()
            with contextlib.suppress(OSError):
                os.write(target, frame)


if __name__ == "__main__":
    main(sys.argv[1:])

"""What the kernel said when this process began: who else uses the machine is only seen over a while.

The entry point imports this first. It loads nothing and reads one line.
"""

import time

BEGAN_S = time.monotonic()
OWN_S = time.process_time()
"""CPU seconds that this process had used."""


def _first_line() -> bytes:
    try:
        with open("/proc/stat", "rb") as file:
            return file.readline()
    except OSError:
        return b""


TICKS = _first_line()
"""Ticks of all processors, as :func:`omb_py.orchestrate.launching.machine_state.busy_ticks` reads them."""

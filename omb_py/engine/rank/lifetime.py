"""A process that ends with its parent, however that ends: the kernel sees to it."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
# looked up at import: between fork and exec, beside threads, a child may do little but call the kernel
_PRCTL = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)


def die_with_parent(parent: int | None = None, signal_number: int = signal.SIGKILL) -> bool:
    """Ask the kernel to signal this process when the thread that started it ends, even by -9. Nothing where not Linux.

    SIGKILL by default: Intel MPI's mpiexec waits, after SIGTERM, for a stopped rank that never ends.

    Args:
        parent: the process id of the parent, taken before the fork.
        signal_number: what is sent.

    Returns:
        False where the parent had ended before the kernel was asked, so that no signal will come.
    """
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
    return parent is None or os.getppid() == parent

"""The end of a rank: with its parent, however that ends, and not before rank 0 has printed an error."""

from __future__ import annotations

import ctypes
import os
import signal
import time

_PR_SET_PDEATHSIG = 1
_RANK_0_PRINTS_S = 1.5
# looked up at import: between fork and exec, beside threads, a child may do little but call the kernel
_PRCTL = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)


def die_with_parent(parent: int | None = None, signal_number: int = signal.SIGKILL) -> bool:
    """Ask the kernel to signal this process when the thread that started it ends, even by -9. Nothing where not Linux.

    SIGKILL by default: Intel MPI's mpiexec waits, after SIGTERM, for a stopped rank that never ends.

    Args:
        parent: the process id of the parent, taken before the fork.
        signal_number: the signal to send.

    Returns:
        False where the parent had ended before the kernel was asked, so that no signal will come.
    """
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
    return parent is None or os.getppid() == parent


def let_rank_0_speak() -> None:
    """Wait before a rank leaves with an error that rank 0 prints.

    Launchers end the whole job when the first rank fails: rank 0 might not have come to its line by then.
    """
    time.sleep(_RANK_0_PRINTS_S)

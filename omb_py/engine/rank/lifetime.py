"""How long processes of a launch live: a rank ends with its parent, and the children that it forks end with it.

A rank that fails waits until rank 0 has printed the error. Children sleep beside a rank: does communication still work
then, and what does it cost? The kernel kills them when the thread that forked them is gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from omb_py.engine.session import Session

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


def end_with_this_process(signal_number: int = signal.SIGKILL) -> Callable[[], None]:
    """Make a function for ``Popen(preexec_fn=...)``: the child gets the signal when this process ends, even by -9."""
    parent = os.getpid()

    def follow() -> None:
        if not die_with_parent(parent, signal_number):
            os._exit(1)

    return follow


def let_rank_0_speak() -> None:
    """Wait before a rank leaves with an error that rank 0 prints.

    Launchers end the whole job when the first rank fails: rank 0 might not have come to its line by then.
    """
    time.sleep(_RANK_0_PRINTS_S)


class Children:
    """`count` sleeping children of this process."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.pids: list[int] = []

    def start(self, session: Session) -> None:
        """Fork them. Nothing where one process holds all ranks: in a simulation."""
        if len(session.local) != 1:
            return
        parent = os.getpid()
        for _ in range(self.count):
            with warnings.catch_warnings():
                # Python warns of forking beside threads; the child calls the kernel and nothing else
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                _sleep(parent)
            self.pids.append(pid)

    def end(self, session: Session) -> None:
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in self.pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self.pids.clear()


def _sleep(parent: int) -> None:
    """The life of a child: it holds none of its parent's files, sleeps, and never returns."""
    try:
        if die_with_parent(parent):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.closerange(0, os.sysconf("SC_OPEN_MAX"))
            while True:
                signal.pause()
    finally:
        os._exit(0)

"""Processes that a rank forks and that sleep beside it: does communication still work, and what does it cost?

They never outlive their rank, however it ends: the kernel kills them when the thread that forked them is gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import warnings
from typing import TYPE_CHECKING

from omb_py.engine.rank.lifetime import die_with_parent

if TYPE_CHECKING:
    from omb_py.engine.session import Session


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

"""SIGINT, SIGTERM and SIGHUP end a command by the contract, from its first import on and between launches."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType


@contextmanager
def as_interrupts(environ: Mapping[str, str]) -> Iterator[None]:
    """Raise KeyboardInterrupt within a ``with`` block when one of the signals comes.

    A supervisor catches them itself while ranks run. A signal that the user or nohup ignores stays ignored. A rank of
    a foreign launcher keeps the default, which ends it at once: a handler would wait for the MPI call that it is in,
    and Open MPI's launcher waits for ever where a rank leaves MPI_Init by an exit code.

    Args:
        environ: usually ``os.environ``.
    """
    from omb_py.engine.rank.launcher_variables import joined_environment

    before = {}
    if threading.current_thread() is threading.main_thread() and joined_environment(environ) is None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt

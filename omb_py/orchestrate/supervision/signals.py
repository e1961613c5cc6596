"""Signals as events of a selector loop, so that Ctrl-C never interrupts a callback that writes a file."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Counts signals and wakes the selector.

    A second signal raises KeyboardInterrupt at once, in case a callback is stuck. After :meth:`hold` signals are only
    counted, so that they do not interrupt the clean-up.
    """

    def __init__(self) -> None:
        self.pending = 0
        self._held = False
        self._read_end, self._write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._open = True

    def fileno(self) -> int:
        """The descriptor for a selector: readable once a signal came."""
        return self._read_end

    def drain(self) -> None:
        """Empty the pipe, so that the selector waits again."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._read_end, 64)

    def hold(self) -> None:
        """Only count signals from now on."""
        self._held = True

    def close(self) -> None:
        """Close the pipe; does nothing the second time."""
        if self._open:
            self._open = False
            os.close(self._read_end)
            os.close(self._write_end)

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Catch the signals within a ``with`` block. Does nothing outside the main thread, where Python cannot."""
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in CAUGHT:
                # What a user or nohup chose to ignore stays ignored.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    before[number] = signal.signal(number, self._came)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _came(self, number: int, frame: FrameType | None) -> None:
        self.pending += 1
        if self._open:
            with contextlib.suppress(BlockingIOError):
                os.write(self._write_end, b"!")
        if self.pending > 1 and not self._held:
            raise KeyboardInterrupt

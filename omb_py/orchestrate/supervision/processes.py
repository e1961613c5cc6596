"""Processes of a launch on this machine: the launcher, those that hold its token, and signals to this process."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TypeAlias

from omb_py.engine.rank.lifetime import end_with_this_process
from omb_py.engine.rank.link import TOKEN_VARIABLE
from omb_py.engine.rank.start_times import start_ticks
from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.supervision.wire import Output

Process: TypeAlias = tuple[int, int]
"""(pid, start time in clock ticks since boot)."""


def identify(pid: int) -> Process | None:
    """The process that has this number now; None when there is none or only a zombie."""
    ticks = start_ticks(pid)
    return None if ticks is None else (pid, ticks)


def alive(process: Process) -> bool:
    """Whether exactly this process runs or is stopped. A zombie is dead."""
    return start_ticks(process[0]) == process[1]


def kill(process: Process, signal_number: int = signal.SIGKILL) -> None:
    """Signal exactly this process. Does nothing when it is gone or not ours to signal."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(process[0])
        try:
            # The handle refers to one process for good, so the check and the signal are about the same one.
            if alive(process):
                signal.pidfd_send_signal(handle, signal_number)
        finally:
            os.close(handle)


def holders(token: str) -> list[Process]:
    """Every other process that was started with the token in its environment."""
    needle = f"{TOKEN_VARIABLE}={token}".encode()
    matches = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as environ:
                if needle not in environ.read().split(b"\0"):
                    continue
        except OSError:
            continue
        process = identify(int(name))
        if process is not None:
            matches.append(process)
    return matches


def gone(processes: Iterable[Process], within: float) -> bool:
    """Wait until none of the processes is alive. Returns False when one still is after `within` seconds."""
    deadline = time.monotonic() + within
    left = list(processes)
    while left := [process for process in left if alive(process)]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def end(token: str, known: Iterable[Process], within: float) -> list[Process]:
    """Kill the known processes and all that hold the token, repeatedly until none is left.

    Args:
        within: seconds after which to give up.

    Returns:
        Processes that are still alive, such as one in an uninterruptible system call.
    """
    deadline = time.monotonic() + within
    known = set(known)
    while True:
        # List again after each round: a process may have forked between being listed and being killed.
        left = {process for process in known if alive(process)} | set(holders(token))
        if not left:
            return []
        if time.monotonic() > deadline:
            return sorted(left)
        for process in left:
            kill(process)
        time.sleep(0.01)


def allow_files(wanted: int, least: int | None = None) -> None:
    """Raise the soft limit of open files to `wanted`, or as far as the hard limit allows.

    Args:
        least: number without which it does not work; `wanted` by default.

    Raises:
        EnvironmentProblem: the hard limit is lower than that.
    """
    least = wanted if least is None else least
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < least:
            raise EnvironmentProblem(
                f"a launch of this size needs {least} open files, but the limit is {hard}: raise it (ulimit -Hn)"
            )
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )


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


_POLITE_S = 0.4
"""Seconds that a launcher has to end its ranks after SIGTERM."""
_CERTAIN_S = 1.0
"""Seconds that killing all remaining processes may take."""


class Child:
    """A running launcher.

    Args:
        selector: event loop, with which its output and its end are registered.
        ended: called when it has ended, if the kernel has pidfd_open (else poll :attr:`status`).

    Raises:
        EnvironmentProblem: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        output: Output,
        selector: selectors.BaseSelector,
        ended: Callable[[], None],
    ) -> None:
        try:
            self._process = subprocess.Popen(
                list(command),
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C on the terminal is the parent's to handle
                preexec_fn=end_with_this_process(),
            )
        except OSError as error:
            raise EnvironmentProblem(f"cannot start {command[0]}: {error.strerror}") from None
        self._output, self._selector, self._ended = output, selector, ended
        self._pipe = self._process.stdout.fileno() if self._process.stdout else -1
        os.set_blocking(self._pipe, False)
        selector.register(self._pipe, selectors.EVENT_READ, self._readable)
        self._handle: int | None = None
        with contextlib.suppress(OSError):
            self._handle = os.pidfd_open(self._process.pid)
            selector.register(self._handle, selectors.EVENT_READ, self._note_exit)

    @property
    def pid(self) -> int:
        """Number of its process."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status as subprocess gives it (negative: a signal); None while it runs."""
        return self._process.poll()

    def _readable(self) -> None:
        if not self.read(1 << 22):
            self._selector.unregister(self._pipe)

    def read(self, most: int = 1 << 24) -> bool:
        """Record what is in the pipe, up to `most` bytes. Returns False at its end."""
        try:
            while most > 0:
                chunk = os.read(self._pipe, 1 << 16)
                if not chunk:
                    return False
                self._output.add(chunk)
                most -= len(chunk)
        except OSError:  # the pipe is empty now, or closed already
            pass
        return True

    def _note_exit(self) -> None:
        self._forget_handle()
        self._ended()

    def _forget_handle(self) -> None:
        if self._handle is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(self._handle)
            os.close(self._handle)
            self._handle = None

    def stop(self, token: str, known: Sequence[Process]) -> list[Process]:
        """End the launcher and all processes that hold the token, after some 1.5 seconds at the latest.

        Returns:
            Processes that could not be killed.
        """
        if self.status is None:
            # Asked politely, a launcher also ends its helpers on other nodes.
            self._process.terminate()
            self._wait(_POLITE_S)
        itself = identify(self._process.pid) if self.status is None else None
        left = end(token, [*known, *([itself] if itself else [])], _CERTAIN_S)
        self._wait(0.2)
        self.read()
        self._forget_handle()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return left

    def _wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

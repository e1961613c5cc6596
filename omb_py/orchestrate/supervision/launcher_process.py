"""The launcher's process. It dies with its parent, its output is kept, and it is asked to end before it is killed."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
from collections.abc import Callable, Mapping, Sequence

from omb_py.engine.rank.lifetime import die_with_parent
from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.supervision import processes
from omb_py.orchestrate.supervision.wire import Output

_POLITE_S = 0.4
"""Seconds that a launcher has to end its ranks after SIGTERM."""
_CERTAIN_S = 1.0
"""Seconds that killing all remaining processes may take."""


def _with_parent(parent: int) -> Callable[[], None]:
    """A function for ``Popen(preexec_fn=...)``, by which the child does not outlive this process."""

    def follow() -> None:
        if not die_with_parent(parent):
            os._exit(1)

    return follow


class Child:
    """A running launcher.

    Args:
        command: its command line.
        environ: its whole environment.
        output: record of what it prints.
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
                preexec_fn=_with_parent(os.getpid()),
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
            selector.register(self._handle, selectors.EVENT_READ, self._exited)

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

    def _exited(self) -> None:
        self._forget_handle()
        self._ended()

    def _forget_handle(self) -> None:
        if self._handle is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(self._handle)
            os.close(self._handle)
            self._handle = None

    def stop(self, token: str, known: Sequence[processes.Process]) -> list[processes.Process]:
        """End the launcher and all processes that hold the token, after some 1.5 seconds at the latest.

        Returns:
            Processes that could not be killed.
        """
        if self.status is None:
            # Asked politely, a launcher also ends its helpers on other nodes.
            self._process.terminate()
            self._wait(_POLITE_S)
        itself = processes.identify(self._process.pid) if self.status is None else None
        left = processes.end(token, [*known, *([itself] if itself else [])], _CERTAIN_S)
        self._wait(0.2)
        self.read()
        self._forget_handle()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return left

    def _wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

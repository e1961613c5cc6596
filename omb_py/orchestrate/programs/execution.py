"""One start of a program: its output, how it ended, and what it had loaded. No process of it is left behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omb_py.engine.rank.lifetime import end_with_this_process
from omb_py.errors import EnvironmentProblem
from omb_py.options.conduct import PROGRAM_MARK
from omb_py.orchestrate.programs.mapped_files import MappedFile, descendants, mapped_by
from omb_py.orchestrate.supervision.processes import Process, alive, identify, kill

MOST_BYTES = 64 << 20
"""A program that prints more is ended."""
_FIRST_LOOK_S, _LONGEST_S, _GROWTH = 0.002, 1.0, 1.5
"""Pauses between looks at a program's processes: short at first, so that a short program is seen too."""
_OF_SHELL = 128
"""A shell adds this to the number of the signal that ended a program."""
_POLITE_S, _CERTAIN_S = 0.5, 2.0
"""Seconds that a program has to end after SIGTERM, and that killing the rest may take."""


@dataclass(frozen=True, slots=True)
class Execution:
    """A start of a program that has ended."""

    output: bytes
    """What it printed, or the file that it wrote."""
    errors: bytes
    """What it wrote to stderr."""
    status: int
    """Exit code; negative: the number of the signal that ended it."""
    seconds: float
    peak_bytes: int
    """Largest resident memory of one process."""
    files: frozenset[MappedFile] = field(default_factory=frozenset)
    """What its processes were seen to run code from."""
    stopped: str = ""
    """Why it was ended from here; empty where it ended by itself."""
    other_cores: float | None = None
    """Cores that other programs used meanwhile, on average; None where that cannot be seen."""

    @property
    def ending(self) -> str:
        """How it ended: ``exit code 1``, ``signal SIGSEGV``, or what a shell makes of a signal."""
        number = -self.status if self.status < 0 else self.status - _OF_SHELL
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        if self.status < 0:
            return f"signal {name}"
        return f"exit code {self.status}" + (f" (signal {name})" if number in set(signal.Signals) else "")

    @property
    def last_line(self) -> str:
        """The last line of its stderr, else of its output; empty where it said nothing."""
        for data in (self.errors, self.output):
            lines = [line.strip() for line in data[-4096:].decode(errors="replace").splitlines() if line.strip()]
            if lines:
                return lines[-1][:200]
        return ""


def run_program(
    argv: Sequence[str],
    environ: Mapping[str, str],
    timeout_s: float,
    out: Path | None = None,
    folder: Path | None = None,
) -> Execution:
    """Start a program, wait for its end and end whatever it leaves.

    Args:
        argv: the words of its command.
        environ: its whole environment.
        timeout_s: seconds after which all its processes are killed.
        out: the file that it writes, to be read in place of its output.
        folder: where it is started; None: here.

    Raises:
        EnvironmentProblem: it cannot be started.
    """
    mark = secrets.token_hex(8)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began = time.monotonic()
        try:
            process = subprocess.Popen(
                list(argv),
                env={**environ, PROGRAM_MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                cwd=folder,
                preexec_fn=end_with_this_process(),
            )
        except OSError as error:
            raise EnvironmentProblem(f"cannot start {argv[0]}: {error.strerror}") from None
        watch = _Watch(process, mark, began + timeout_s, (output.fileno(), errors.fileno()))
        try:
            stopped = watch.wait()
        finally:
            watch.end()
        seconds = time.monotonic() - began
        return Execution(
            _content(output.fileno()) if out is None else _read_written(out),
            _content(errors.fileno()),
            process.returncode,
            seconds,
            watch.peak_bytes,
            frozenset(watch.files),
            stopped.format(seconds=timeout_s),
        )


def _content(handle: int) -> bytes:
    return os.pread(handle, min(os.fstat(handle).st_size, MOST_BYTES), 0)


def _read_written(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""


class _Watch:
    """Looks at the processes of a launch until it ends."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str, deadline: float, outputs: Sequence[int]) -> None:
        self._process, self._deadline, self._outputs = process, deadline, outputs
        self._needle = f"{PROGRAM_MARK}={mark}".encode()
        self._handle = os.pidfd_open(process.pid)
        self._seen: set[Process] = set()
        self.files: set[MappedFile] = set()
        self.peak_bytes = 0

    def wait(self) -> str:
        """Wait for the end of the program; returns why it must be ended, or nothing."""
        pause = _FIRST_LOOK_S
        while True:
            left = self._deadline - time.monotonic()
            if self._has_ended(max(0.0, min(pause, left))):
                return ""
            if left <= 0:
                return "it was killed after {seconds:g} s"
            self._look()
            if any(os.fstat(handle).st_size > MOST_BYTES for handle in self._outputs):
                return f"it printed more than {MOST_BYTES >> 20} MiB"
            pause = min(pause * _GROWTH, _LONGEST_S)

    def _has_ended(self, within_s: float) -> bool:
        ended = select.poll()
        ended.register(self._handle, select.POLLIN)
        return bool(ended.poll(within_s * 1000))

    def _look(self) -> None:
        pids = descendants(self._process.pid)
        self._seen |= {process for pid in pids if (process := identify(pid)) is not None}
        self.files |= mapped_by(pids)

    def end(self) -> None:
        """End the process group, all processes that were seen, and those that hold the mark."""
        with contextlib.suppress(OSError):
            if not self._has_ended(0):  # asked politely, a launcher also ends its ranks on other nodes
                os.killpg(self._process.pid, signal.SIGTERM)
                self._has_ended(_POLITE_S)
            os.killpg(self._process.pid, signal.SIGKILL)
        os.close(self._handle)
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.peak_bytes = usage.ru_maxrss * 1024
        deadline = time.monotonic() + _CERTAIN_S
        while left := [process for process in self._seen | self._holders() if alive(process)]:
            for process in left:
                kill(process)
            if time.monotonic() > deadline:
                return
            time.sleep(0.005)

    def _holders(self) -> set[Process]:
        holders = set()
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as environ:
                if self._needle in environ.read().split(b"\0") and (process := identify(int(name))) is not None:
                    holders.add(process)
        return holders

"""Processes of a launch: which are alive, and how each is ended for certain.

A process is named by its number and its start time, so that a number that is used again is never signalled.
The processes of a launch are recognised by the token in their environment, which they inherit whatever the
launcher does to process groups and sessions (MPICH and Open MPI give every rank its own).
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Iterable
from typing import TypeAlias

from omb_py.engine.rank.link import TOKEN_VARIABLE
from omb_py.engine.rank.start_times import start_ticks
from omb_py.errors import EnvironmentProblem

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
        token: the launch's secret.
        known: further processes to kill.
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
        wanted: number of files.
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

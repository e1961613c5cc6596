"""Parsers for what launchers print about the end of a process, and the advice that follows from it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from omb_py.orchestrate.supervision.rank_state import RankState


def how_ended(status: int) -> str:
    """An exit status in words, as subprocess gives it: a negative one is a signal."""
    return f"was killed by signal {_signal(-status)}" if status < 0 else f"ended with exit status {status}"


def _signal(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)


@dataclass(frozen=True, slots=True)
class Report:
    """The end of one process, as a launcher printed it."""

    pid: int | None
    rank: int | None
    signal: int | None
    status: int | None
    first: bool = False
    """True when this launcher names the process that died first. Others may name one that they ended themselves."""

    @property
    def how(self) -> str:
        """How the process ended, in words."""
        return f"killed by signal {_signal(self.signal)}" if self.signal is not None else f"exit status {self.status}"


_FIRST = 2
"""Number of leading patterns in :data:`_REPORTS` whose launcher names the first process to die."""
_REPORTS = (
    # Open MPI
    (
        r"process rank (?P<rank>\d+) with PID (?P<pid>\d+) on\s+node \S+ exited on\s+signal (?P<signal>\d+)",
        re.DOTALL,
    ),
    (r"Process name: \[\S+,(?P<rank>\d+)\]\s+Exit code: +(?P<status>\d+)", re.DOTALL),
    # Intel MPI
    (r"RANK (?P<rank>\d+) PID (?P<pid>\d+) RUNNING AT \S+\s+=\s+KILLED BY SIGNAL: (?P<signal>\d+)", re.DOTALL),
    (r"RANK (?P<rank>\d+) PID (?P<pid>\d+) RUNNING AT \S+\s+=\s+EXIT STATUS: (?P<status>\d+)", re.DOTALL),
    # MPICH: its exit code is the wait status, where a signal stands in the low seven bits
    (r"PID (?P<pid>\d+) RUNNING AT \S+\s+=\s+EXIT CODE: (?P<wait>\d+)", re.DOTALL),
    # srun
    (r"srun: error: \S+: task (?P<rank>\d+): (?P<word>Killed|Segmentation fault|Aborted|Bus error)", 0),
    (r"srun: error: \S+: task (?P<rank>\d+): Exited with exit code (?P<status>\d+)", 0),
    # torchrun: its exit code is that of Python's subprocess, where a signal is negative
    (r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: (?P<pid>\d+)\)", 0),
)
_WORDS = {
    "Killed": signal.SIGKILL,
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
}


def reports(output: str) -> list[Report]:
    """Reports about processes in a launcher's output, in the order of :data:`_REPORTS`."""
    matches = []
    for index, (pattern, flags) in enumerate(_REPORTS):
        for match in re.finditer(pattern, output, flags):
            part = {name: value for name, value in match.groupdict().items() if value is not None}
            status, number = _optional(part.get("status")), _optional(part.get("signal"))
            if "wait" in part:
                wait = int(part["wait"])
                status, number = (None, wait & 0x7F) if wait & 0x7F else (wait >> 8 or wait, None)
            if "code" in part:
                code = int(part["code"])
                status, number = (None, -code) if code < 0 else (code, None)
            if "word" in part:
                number = int(_WORDS[part["word"]])
            report = Report(_optional(part.get("pid")), _optional(part.get("rank")), number, status, index < _FIRST)
            matches.append(report)
    return matches


def _optional(text: str | None) -> int | None:
    return None if text is None else int(text)


def about(state: RankState, output: str) -> Report | None:
    """The report about a rank's process; None when the launcher printed none."""
    for report in reports(output):
        if report.pid == state.pid if report.pid is not None else report.rank == state.number:
            return report
    return None


def cause(state: RankState, output: str) -> str:
    """How a rank died, by the launcher's output; empty when that is not known."""
    report = about(state, output)
    return report.how if report else ""


def only_cause(output: str) -> str:
    """How a process died when the launcher reports a single one, which need not be the one that died first."""
    matches = reports(output)
    return matches[0].how if len(matches) == 1 else ""


def first_report(output: str) -> str:
    """The launcher's first report in words, for a process that never connected; may be empty."""
    for report in reports(output):
        who = f"rank {report.rank}" if report.rank is not None else f"process {report.pid}"
        return f"{who}: {report.how}"
    return ""


_BOILERPLATE = re.compile(
    r"BAD TERMINATION OF ONE|PID \d+ RUNNING AT|EXIT CODE:|KILLED BY SIGNAL|CLEANING UP REMAINING|YOU CAN IGNORE|"
    r"APPLICATION TERMINATED WITH|typically refers to a problem|see the FAQ page|detected that one or more processes|"
    r"thus causing the job to be|The first process to do so|^Process name:|^Exit code:|noticed that process rank|"
    r"^signal \d+ \(|process whose exit|^Primary job"
)


_CONNECTION = re.compile(
    r"^ssh: |Could not resolve hostname|Host key verification failed|Permission denied \(|No route to host|"
    r"Connection (?:refused|timed out|closed by)"
)
"""What ssh prints when it cannot reach a host."""


def last_words(lines: Sequence[str], count: int = 2) -> str:
    """The last `count` lines that carry information, without the frames that launchers print around them."""
    telling = list(dict.fromkeys(line for line in lines if re.search(r"\w", line) and not _BOILERPLATE.search(line)))
    reasons = [line for line in telling if _CONNECTION.search(line)][:count]
    # what ssh says comes first; the launcher's own lines after it only say that something failed
    return "; ".join(reasons or telling[-count:])


def unreached(lines: Sequence[str]) -> bool:
    """Whether ssh says that it cannot reach a host."""
    return any(_CONNECTION.search(line) for line in lines)


_MIB = 1 << 20


def _of_a_bus_error(host: str, folder: str = "/dev/shm") -> str:
    """Advice after SIGBUS, which the kernel sends where a page of shared memory cannot be had."""
    room = f"df -h {folder} shows it"
    if host == socket.gethostname():
        with contextlib.suppress(OSError):
            state = os.statvfs(folder)
            room = f"{state.f_blocks * state.f_frsize // _MIB} MiB in all"
    return (
        f"{folder} on {host} is too small for the library's shared memory ({room}): in a container start it with "
        f"--shm-size=1g, elsewhere mount -o remount,size=1g {folder}; or fewer ranks on a node"
    )


def advice(why: str, host: str) -> str:
    """Advice to the user for a cause of death."""
    if "SIGKILL" in why:
        return f"killed from outside, or short of memory: see dmesg on {host}"
    if "SIGBUS" in why:
        return _of_a_bus_error(host)
    if any(name in why for name in ("SIGSEGV", "SIGABRT", "SIGILL", "SIGFPE")):
        return "the communication library crashed: try another -m, --binding mpi4py, or another library version"
    if "exit status" in why:
        return "see its last words above"
    return f"see its last words above, and dmesg on {host}"

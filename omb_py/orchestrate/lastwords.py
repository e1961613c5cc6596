"""What launchers print about the end of a process, and what that hints at: pure functions over text."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from omb_py.orchestrate.ranks import RankState


def how_ended(status: int) -> str:
    """An exit status as subprocess gives it, in words: negative is a signal."""
    return f"was killed by signal {_signal(-status)}" if status < 0 else f"ended with exit status {status}"


def _signal(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)


@dataclass(frozen=True, slots=True)
class Report:
    """What a launcher printed about the end of one process."""

    pid: int | None
    rank: int | None
    signal: int | None
    status: int | None


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
)
_WORDS = {
    "Killed": signal.SIGKILL,
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
}


def reports(output: str) -> list[Report]:
    """What the launchers' last words tell about processes, in the order of :data:`_REPORTS`.

    A launcher names the process that it noticed first, which need not be the one that died first: only what it
    tells about a rank that is known to have died first is used.
    """
    found = []
    for pattern, flags in _REPORTS:
        for match in re.finditer(pattern, output, flags):
            part = {name: value for name, value in match.groupdict().items() if value is not None}
            status, number = _optional(part.get("status")), _optional(part.get("signal"))
            if "wait" in part:
                wait = int(part["wait"])
                status, number = (None, wait & 0x7F) if wait & 0x7F else (wait >> 8 or wait, None)
            if "word" in part:
                number = int(_WORDS[part["word"]])
            found.append(Report(_optional(part.get("pid")), _optional(part.get("rank")), number, status))
    return found


def _optional(text: str | None) -> int | None:
    return None if text is None else int(text)


def cause(state: RankState, output: str) -> str:
    """How a rank died as far as the launcher's output tells, with what that hints at; may be empty."""
    for report in reports(output):
        same = report.pid == state.pid if report.pid is not None else report.rank == state.number
        if not same:
            continue
        if report.signal is not None:
            return f"killed by signal {_signal(report.signal)}"
        if report.status is not None:
            return f"exit status {report.status}"
    return ""


def advice(why: str, host: str) -> str:
    """What to do about a cause of death."""
    if "SIGKILL" in why:
        return f"killed from outside, or short of memory: see dmesg on {host}"
    if any(name in why for name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE")):
        return "the communication library crashed: try another -m, --binding mpi4py, or another library version"
    if "exit status" in why:
        return "see its last words above"
    return f"see its last words above, and dmesg on {host}"

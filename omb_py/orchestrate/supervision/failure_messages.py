"""One line for each way a launch can fail: which rank, on which host, doing what, and what to do about it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from omb_py.launchers.registry import launcher_titled
from omb_py.orchestrate.supervision.rank_state import RankState, doing, find_behind, names, numbers, position


def how_ended(status: int) -> str:
    """An exit status in words, as subprocess gives it: a negative one is a signal."""
    return f"was killed by signal {_signal(-status)}" if status < 0 else f"ended with exit status {status}"


def _signal(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)


@dataclass(frozen=True, slots=True)
class DeathReport:
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
    (r"process rank (?P<rank>\d+) with PID (?P<pid>\d+) on\s+node \S+ exited on\s+signal (?P<signal>\d+)", re.DOTALL),
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


def reports(output: str) -> list[DeathReport]:
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
            report = DeathReport(
                _optional(part.get("pid")), _optional(part.get("rank")), number, status, index < _FIRST
            )
            matches.append(report)
    return matches


def _optional(text: str | None) -> int | None:
    return None if text is None else int(text)


def describe_death(state: RankState, output: str) -> DeathReport | None:
    """The report about a rank's process; None when the launcher printed none."""
    for report in reports(output):
        if report.pid == state.pid if report.pid is not None else report.rank == state.number:
            return report
    return None


def cause(state: RankState, output: str) -> str:
    """How a rank died, by the launcher's output; empty when that is not known."""
    report = describe_death(state, output)
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


_BOILERPLATE = (
    r"BAD TERMINATION OF ONE|PID \d+ RUNNING AT|EXIT CODE:|KILLED BY SIGNAL|CLEANING UP REMAINING|YOU CAN IGNORE|"
    r"APPLICATION TERMINATED WITH|typically refers to a problem|see the FAQ page|detected that one or more processes|"
    r"thus causing the job to be|The first process to do so|^Process name:|^Exit code:|noticed that process rank|"
    r"^signal \d+ \(|process whose exit|^Primary job"
)


_CONNECTION = (
    r"^ssh: |Could not resolve hostname|Host key verification failed|Permission denied \(|No route to host|"
    r"Connection (?:refused|timed out|closed by)"
)
"""What ssh prints when it cannot reach a host."""


def last_words(lines: Sequence[str], count: int = 2) -> str:
    """The last `count` lines that carry information, without the frames that launchers print around them."""
    telling = list(
        dict.fromkeys(line for line in lines if re.search(r"\w", line) and not re.search(_BOILERPLATE, line))
    )
    reasons = [line for line in telling if re.search(_CONNECTION, line)][:count]
    # what ssh says comes first; the launcher's own lines after it only say that something failed
    return "; ".join(reasons or telling[-count:])


def unreached(lines: Sequence[str]) -> bool:
    """Whether ssh says that it cannot reach a host."""
    return any(re.search(_CONNECTION, line) for line in lines)


_MIB = 1 << 20


_SHARED = "/dev/shm"


def _advise_on_bus_error(host: str) -> str:
    """Advice after SIGBUS, which the kernel sends where a page of shared memory cannot be had."""
    room = f"df -h {_SHARED} shows it"
    if host == socket.gethostname():
        with contextlib.suppress(OSError):
            state = os.statvfs(_SHARED)
            room = f"{state.f_blocks * state.f_frsize // _MIB} MiB in all"
    return (
        f"{_SHARED} on {host} is too small for the library's shared memory ({room}): in a container start it with "
        f"--shm-size=1g, elsewhere mount -o remount,size=1g {_SHARED}; or fewer ranks on a node"
    )


def advice(why: str, host: str) -> str:
    """Advice to the user for a cause of death."""
    if "SIGKILL" in why:
        return f"killed from outside, or short of memory: see dmesg on {host}"
    if "SIGBUS" in why:
        return _advise_on_bus_error(host)
    if any(name in why for name in ("SIGSEGV", "SIGABRT", "SIGILL", "SIGFPE")):
        return "the communication library crashed: try another -m, --binding mpi4py, or another library version"
    if host == socket.gethostname() and not os.access(_SHARED, os.W_OK):
        shared = f"{_SHARED} on {host} cannot be written, and the library may need it"
        return f"{shared}: mount -o remount,rw {_SHARED}"
    if "exit status" in why:
        return "see its last words above"
    return f"see its last words above, and dmesg on {host}"


_DOCTOR = "omb-py doctor says what this machine can launch"
_REACH = "check the names of the hosts, and that ssh HOST true works from here to each without a password"
_RAISE_IT = "or raise --timeout if one step may take that long"
_PASSING = ("listener thread failed to start",)
"""Launcher messages about passing conditions. Open MPI 5: a network interface came or went while it listed them."""


def passes_by_itself(states: Sequence[RankState], output: str) -> bool:
    """Whether a launcher that ended may start the same ranks the next time. `states` are those of ranks that began."""
    # join the words, because the launcher breaks long lines anywhere
    return not states and any(words in " ".join(output.split()) for words in _PASSING)


def describe_deaths(
    first: Sequence[RankState], together: int, states: Sequence[RankState], ranks: int, output: str
) -> str:
    """Text for rank processes that ended too early.

    Args:
        first: ranks whose connections closed first, in that order.
        together: how many of them were found closed in one look, so that their order is not known.
        ranks: number of ranks that were started.
    """
    named = _guilty(first, states, output) or first[:together]
    state = min(named, key=position)
    why = cause(state, output) or (only_cause(output) if len(first) > 1 else "")
    report = "" if why else first_report(output)
    ended = f"died ({why})" if why else "died"
    when = "before the launch was done"
    if len(states) < ranks:
        # A rank that never reported may have died before, and the launcher then ended this one.
        when = f"when {len(states)} of {ranks} ranks had reported{_list_missing(states, ranks, 'had not')}"
    when += f"; the launcher reports {report}" if report else ""
    todo = advice(why or report, state.host)
    return f"{names(named)} {ended} {when}; last seen in: {doing(state)}. What to do: {todo}"


def _guilty(first: Sequence[RankState], states: Sequence[RankState], output: str) -> Sequence[RankState]:
    """The ranks that the launcher's output accuses; none where it accuses nobody."""
    reported = [(state, describe_death(state, output)) for state in states]
    sure = [state for state, report in reported if report and report.first]
    if sure:
        return sure
    # Launchers kill the remaining ranks, and some then report one of these: SIGKILL alone accuses nobody.
    return [state for state, report in reported if report and state in first and "SIGKILL" not in report.how]


def _list_missing(states: Sequence[RankState], ranks: int, verb: str) -> str:
    known = {state.number for state in states if state.number is not None}
    missing = set(range(ranks)) - known
    return f" ({numbers(missing)} {verb})" if states and missing and len(known) == len(states) else ""


def launcher_ended(launcher: str, status: int, states: Sequence[RankState], ranks: int, lines: Sequence[str]) -> str:
    """Text for a launcher that ended before its ranks were done.

    Args:
        status: its exit status as subprocess gives it.
        ranks: number of ranks that were started.
        lines: the last lines of its output.
    """
    how = how_ended(status)
    present = f"{len(states)} of {ranks} ranks"
    if status < 0:
        return (
            f"the launcher {launcher} {how} with {present} present. "
            "What to do: find out who killed it (a job limit, short memory, a person), then start again"
        )
    parts = (first_report("\n".join(lines)), last_words(lines))
    words = "; it said: " + "; ".join(part for part in parts if part) if any(parts) else ""
    if len(states) < ranks:
        titled = launcher_titled(launcher)
        todo = (titled.fix_of("\n".join(lines)) if titled else "") or _DOCTOR
        todo = _REACH if unreached(lines) else todo
        return f"the launcher {launcher} {how} when {present} had reported{words}. What to do: {todo}"
    state = min(states, key=position)
    return f"the launcher {launcher} {how} before {state.name} was done, last seen in: {doing(state)}{words}"


def absent(states: Sequence[RankState], ranks: int, timeout: float, address: str, lines: Sequence[str]) -> str:
    """Text for a launch of which no rank reported for `timeout` seconds; `lines` end the launcher's output."""
    last = last_words(lines)
    words = f"; the launcher said: {last}" if last else ""
    return (
        f"{len(states)} of {ranks} ranks reported{_list_missing(states, ranks, 'did not')}, and no other for "
        f"{timeout:g} s{words}. "
        "What to do: look above for a rank that ended early, for which the others wait; check that every host can "
        "start Python with omb-py and reach this one by TCP "
        f"({address.split(',')[0]}), or raise --timeout"
    )


def silent(states: Sequence[RankState], now: float) -> str:
    """Text for ranks that send nothing any more; `now` in seconds on the supervisor's clock."""
    state = min(states, key=position)
    longest = max(now - other.seen for other in states)
    return (
        f"{names(states)} sent no sign of life for {longest:.1f} s (stopped, or its node is gone); "
        f"last seen in: {doing(state)}. What to do: look at that process and at {state.host}, {_RAISE_IT}"
    )


def stuck(states: Sequence[RankState], timeout: float) -> str:
    """Text for a launch in which all ranks send heartbeats and none has made progress for `timeout` seconds."""
    late = find_behind(states)
    if len(late) < len(states):
        which = ("is" if len(late) == 1 else "are") + " behind the others, at"
    elif len(late) == 1:
        which = "is at"
    else:
        which = "and so all ranks are at the same place"
    return (
        f"no rank made progress for {timeout:g} s; {names(late)} {which}: {doing(late[0])}. "
        f"What to do: look at {late[0].host} and its links, {_RAISE_IT}"
    )


def describe_worlds_apart(states: Sequence[RankState], ranks: int, launcher: str) -> str:
    """Text for ranks that see worlds of another size than the launcher started."""
    sizes = sorted({state.size for state in states if state.size is not None})
    if sizes == [1]:
        seen = f"{len(states)} processes each see 1 rank"
    else:
        seen = f"{ranks} were started, they see a world of {' or '.join(map(str, sizes))}"
    return f"ranks did not join one world: {seen}: {join_hint(launcher)}"


def join_hint(launcher: str) -> str:
    """Why processes of a launcher see no common world, and what to do."""
    titled = launcher_titled(launcher)
    if titled and titled.join_fix:
        return titled.join_fix
    return (
        f"the launcher ({launcher}) and the MPI library do not belong together. What to do: use the mpiexec of the MPI "
        "library that mpi4py loads (omb-py doctor names both)"
    )


def describe_too_many(ranks: int, launcher: str) -> str:
    """Text for more rank processes than were asked for."""
    return f"{launcher} started more than {ranks} rank processes: leave the rank count to -n, not to --launcher-args"

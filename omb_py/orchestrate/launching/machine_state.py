"""The state of this machine that disturbs measurements: other programs, clock rates, affinity, throttling."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from omb_py import process_begin
from omb_py.engine.measuring.statistics import median_of
from omb_py.engine.rank.system_info import throttle_count

BUSY_SHARE = 0.5
"""A machine is busy when other programs use more than this share of its cores."""
_SHARED = 0.25
"""Cores that others may take from the ranks, on average over a launch, before that is reported."""
_WATCH_S = 0.25
_NOW_S = 1.0
"""What others used in a longer time says little of now."""
STEADY_GOVERNORS = ("performance", "schedutil")
"""Governors under which the clock rate does not vary with a benchmark's load."""


@dataclass(frozen=True, slots=True)
class MachineState:
    """This machine before anything is measured."""

    cores: int
    """Processors of the machine."""
    busy_cores: float | None
    """Processors that other programs kept busy while it was watched; None where that cannot be seen."""
    load: float | None
    """Load average over one minute. It still holds what ended a minute ago, so no verdict is based on it."""
    usable: int
    """Processors that this process may use."""
    restricted: bool
    """Whether an affinity mask (taskset) excludes processors that the control group allows."""
    governor: str | None
    """Frequency governor of the first processor; None where it is not visible."""
    throttled: int | None
    """Thermal throttling events while it was watched; None where they are not counted."""

    def warnings(self) -> list[str]:
        """Sentences on what disturbs measurements here, with what to do; none on a quiet machine."""
        lines = [busy] if (busy := self.busy()) else []
        if self.restricted:
            lines.append(
                f"affinity: this process may use {self.usable} of {self.cores} cores: start it without taskset to "
                "measure on all"
            )
        if self.governor is not None and self.governor not in STEADY_GOVERNORS:
            lines.append(
                f"clock rates: the governor is {self.governor}, so they vary with load: "
                "cpupower frequency-set -g performance"
            )
        if self.throttled:
            lines.append(f"hot machine: it was throttled {self.throttled} times just now: let it cool, or mend cooling")
        return lines

    def busy(self) -> str:
        """A sentence where other programs use too much of the machine; else an empty text."""
        if self.busy_cores is None or self.busy_cores <= BUSY_SHARE * self.cores:
            return ""
        load = "" if self.load is None else f" (load {self.load:.1f})"
        used = f"other programs use {self.busy_cores:.1f} of {self.cores} cores{load}"
        return f"busy machine: {used}: end them, or expect wide spreads"

    def as_dict(self) -> dict[str, object]:
        """Return the state as plain data, with the warnings."""
        return {**asdict(self), "warnings": self.warnings()}


def observe(
    proc: Path = Path("/proc"),
    system: Path = Path("/sys"),
    wait: Callable[[float], None] = time.sleep,
    started: bool = False,
) -> MachineState:
    """Watch this machine for a quarter of a second, while nothing of ours is measured.

    Args:
        wait: sleeps for a number of seconds.
        started: whether a launcher has started this process and others of the job, which are no other programs.
    """
    from omb_py.launchers.core_binding import processors

    usable = len(os.sched_getaffinity(0))
    cores = os.cpu_count() or usable
    before, hot, ours = busy_ticks(proc), throttle_count(system), sibling_ticks(proc) if started else {}
    wait(_WATCH_S)
    after, hotter, own = busy_ticks(proc), throttle_count(system), sibling_ticks(proc) if started else {}
    busy = None
    if before is not None and after is not None and after[1] > before[1]:
        of_job = sum(ticks - ours.get(process, 0) for process, ticks in own.items())
        busy = cores * max(0, after[0] - before[0] - of_job) / (after[1] - before[1])
    load = None
    with contextlib.suppress(OSError):
        load = os.getloadavg()[0]
    governor = None
    with contextlib.suppress(OSError):
        governor = (system / "devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text().strip()
    throttled = None if hot is None or hotter is None else hotter - hot
    return MachineState(cores, busy, load, usable, processors(system).restricted, governor, throttled)


def busy_ticks(proc: Path = Path("/proc")) -> tuple[int, int] | None:
    """Read the ticks in which processors were busy, and all ticks, of all processors since the machine was started.

    Time that a hypervisor gave to others (steal) counts as busy.
    """
    try:
        with (proc / "stat").open("rb") as file:
            return _ticks_in(file.readline())
    except OSError:
        return None


def _ticks_in(line: bytes) -> tuple[int, int] | None:
    try:
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, line.split()[1:9])
    except ValueError:
        return None
    busy = user + nice + system + irq + softirq + steal
    return busy, busy + idle + iowait


def sibling_ticks(proc: Path = Path("/proc"), parent: int | None = None) -> dict[int, int]:
    """Number of each process that `parent` has started -> ticks that it was busy; `parent` is ours where None is given.

    The processes of a launcher on one node have the same parent, as the proxy of mpiexec.
    """
    return {process: ticks for process, ticks, _ in _siblings(proc, parent)}


def sibling_cores(proc: Path = Path("/proc"), parent: int | None = None) -> float:
    """The cores that the same processes have kept busy since each began, on average, without this one."""
    now = time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")  # as the kernel counts their beginnings
    return sum(
        ticks / max(1.0, now - began) for process, ticks, began in _siblings(proc, parent) if process != os.getpid()
    )


def _siblings(proc: Path, parent: int | None) -> Iterator[tuple[int, int, int]]:
    """(process, ticks that it was busy, tick in which it began) of each process that `parent`, or ours, has started."""
    parent = os.getppid() if parent is None else parent
    for stat in proc.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # a process that ended meanwhile
            # proc_pid_stat(5): the name, which may hold blanks, ends at the last parenthesis; then state, parent, …
            words = stat.read_text().rpartition(")")[2].split()
            if int(words[1]) == parent:
                yield int(stat.parent.name), int(words[11]) + int(words[12]), int(words[19])


def say_what_disturbs(note: Callable[[str], None], watch: Callable[[], MachineState] = observe) -> MachineState:
    """Watch this machine before the first launch, and note all that disturbs measurements; its state.

    Args:
        note: shows a line.
        watch: watches the machine.
    """
    state = watch()
    for line in state.warnings():
        note(f"warning: {line}")
    return state


class OtherWork:
    """Measures how many cores other programs used during a launch whose processes are our children.

    `began` holds the time, :func:`busy_ticks` and :func:`own_seconds` of its beginning; None: now.
    """

    def __init__(
        self,
        proc: Path = Path("/proc"),
        clock: Callable[[], float] = time.monotonic,
        began: tuple[float, tuple[int, int] | None, float] | None = None,
    ) -> None:
        self._proc, self._clock = proc, clock
        self._began, self._busy, self._own = began or (clock(), busy_ticks(proc), own_seconds())

    @classmethod
    def of_this_process(cls) -> OtherWork:
        """Measures since this process began: over some ms a tick of 10 ms more or less would look like a core."""
        return cls(began=(process_begin.BEGAN_S, _ticks_in(process_begin.TICKS), process_begin.OWN_S))

    @property
    def seconds(self) -> float:
        """The time since this was made."""
        return self._clock() - self._began

    def cores(self) -> float | None:
        """The mean number of cores that others used since this was made; call it after the children have ended."""
        seconds, busy = self.seconds, busy_ticks(self._proc)
        if busy is None or self._busy is None or seconds <= 0:
            return None
        used = (busy[0] - self._busy[0]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, (used - (own_seconds() - self._own)) / seconds)


def machine_facts(before: MachineState, other_cores: Sequence[float], ranks: int) -> dict[str, object]:
    """The machine's part of a report, as plain data.

    Args:
        before: its state before the first launch.
        other_cores: for each launch, the mean number of cores that other programs used.

    Returns:
        The state, ``other_cores`` (median, maximum and launches of it) and ``warnings``: sentences, of a quiet machine
        none.
    """
    facts = before.as_dict()
    sentence = during(other_cores, before.cores, ranks)
    if other_cores:
        facts["other_cores"] = {
            "median": round(median_of(other_cores), 2),
            "max": round(max(other_cores), 2),
            "launches": len(other_cores),
        }
    if sentence:
        # measured over all launches, it says more than the moment before them
        facts["warnings"] = [*(line for line in before.warnings() if not line.startswith("busy")), sentence]
    return facts


def stored_facts(provenances: Iterable[Mapping[str, object]], ranks: int) -> dict[str, object]:
    """The same part of the report of stored launches, as far as they say who else used the machine; else empty."""
    others, cores = [], 0
    for provenance in provenances:
        match provenance:
            case {
                "launch": {"other_cores": int() | float() as used},
                "node_facts": [{"cores_online": int() as count}, *_],
            }:
                others.append(float(used))
                cores = count
    sentence = during(others, cores, ranks)
    return {"warnings": [sentence]} if sentence else {}


def own_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def during(other_cores: Sequence[float], cores: int, ranks: int) -> str:
    """A sentence where other programs disturbed launches on this machine; else an empty text.

    Args:
        other_cores: for each launch, the mean number of cores that others used.
        ranks: ranks of a launch; each keeps a core busy.
    """
    if not other_cores:
        return ""
    middle = median_of(other_cores)
    if middle <= min(BUSY_SHARE * cores, max(cores - ranks, 0) + _SHARED):
        return ""
    return (
        f"busy machine: other programs used {middle:.1f} of {cores} cores during the launches (median of "
        f"{len(other_cores)}, at most {max(other_cores):.1f}): numbers and spreads are larger than on a quiet machine"
    )


def busy_now(started: bool, since: OtherWork | None = None, watch: Callable[..., MachineState] = observe) -> str:
    """A sentence where other programs use much of this machine now; else an empty text.

    What they used while the command began is looked at first, which takes no time. Only where that may be too much, or
    is long ago, the machine is watched.

    Args:
        started: whether a launcher has started this process and others of the job, which are no other programs.
        since: what others used while the command began; None: since the process did.
    """
    since = since or OtherWork.of_this_process()
    seconds = since.seconds
    used = since.cores() if seconds <= _NOW_S else None
    if used is not None:
        if started:
            used -= sibling_cores()
        if used <= BUSY_SHARE / 2 * (os.cpu_count() or 1):
            return ""
    return watch(started=started).busy()

"""A process beside a rank of a foreign launcher, which ends the rank where it would wait for ever.

A library waits in MPI_Init without an end for a rank that never comes, and in MPI_Finalize for one that was killed
there, which srun leaves alone; mpi4py keeps the interpreter there, and the collector may be dead or stopped itself. So
what watches is neither a thread nor the collector. It ends with its rank, except that it leaves no stopped collector.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
import warnings

from omb_py.engine.rank.lifetime import die_with_parent

_TICK_S = 0.5
_TO_SPEAK_S = 3.0
"""After the collector has ended, until a rank that still waits to join is ended; after rank 0 has ended, until a
collector that is stopped is."""
_JOINED, _LEAVING = b"j", b"l"
_TO_FINISH_S = 30.0
"""After the collector has ended, until a rank that has joined is ended."""


class Watcher:
    """Watches this process until :meth:`end`; a rank that measures is only watched where it has a collector.

    Ticks are counted, not time: a job that is stopped and continued has not waited.

    Args:
        rank: number of this rank, for the message.
        limit_s: seconds within which the rank joins and ends, and a collector may be stopped.
        collector: process id of the collector, a child of this process; None on other ranks.
    """

    def __init__(self, rank: int, limit_s: float, collector: int | None = None) -> None:
        reader, self._writer = os.pipe()
        parent = os.getpid()
        with warnings.catch_warnings():
            # Python warns of forking beside threads; the child reads files, writes a line and kills
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            _live(_Watch(parent, rank, limit_s, collector), reader)
        os.close(reader)

    def joined(self) -> None:
        """The rank has joined: from now on whoever supervises it ends it."""
        self._tell(_JOINED)

    def leaving(self) -> None:
        """All cells are done: from now on nobody supervises it, and its library may wait for others."""
        self._tell(_LEAVING)

    def _tell(self, what: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # somebody has killed it
            os.write(self._writer, what)

    def end(self) -> None:
        """Stop watching."""
        os.close(self._writer)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


class _Watch:
    def __init__(self, rank_pid: int, rank: int, limit_s: float, collector: int | None) -> None:
        self.rank_pid, self.rank, self.limit_s, self.collector = rank_pid, rank, limit_s, collector
        self.is_joined = self.is_leaving = False
        self.waited_s = self.stopped_s = self.ended_s = 0.0

    @property
    def sleeps(self) -> bool:
        """Whether there is nothing to look at: beside a rank that measures nobody wakes up."""
        return self.is_joined and not self.is_leaving and self.collector is None

    def hear(self, told: bytes) -> None:
        """Take what the rank says."""
        self.is_joined, self.is_leaving = True, told == _LEAVING
        self.waited_s = 0.0

    def tick(self) -> str | None:
        """Look once more; why the rank must end, empty where somebody has said it, None while all is well."""
        self.waited_s += _TICK_S
        why = self._look_at(self.collector) if self.collector is not None else None
        if why is None and not self.is_joined and self.waited_s >= self.limit_s:
            return (
                f"rank {self.rank} has not joined within {self.waited_s:g} s: another rank ended before MPI_Init or "
                "hangs there. What to do: look above for what that rank said, or raise --timeout"
            )
        if why is None and self.is_leaving and self.waited_s >= self.limit_s:
            return (
                f"rank {self.rank} has not ended within {self.waited_s:g} s, though all cells are done: another rank "
                "was killed in MPI_Finalize or hangs there. What to do: use the results; look at the other ranks"
            )
        return why

    def _look_at(self, collector: int) -> str | None:
        state, signal_number = process_state(collector)
        self.stopped_s = self.stopped_s + _TICK_S if state in "Tt" else 0.0
        # rank 0 alone can have reaped it: it knows of the end, and says it once it has joined
        has_ended = state == "Z" or (state == "X" and self.is_joined)
        self.ended_s = self.ended_s + _TICK_S if has_ended else 0.0
        if self.stopped_s >= self.limit_s or (self.stopped_s and not self.is_joined and self.waited_s >= self.limit_s):
            return self._end_stopped(collector)
        if self.ended_s >= (_TO_FINISH_S if self.is_joined else _TO_SPEAK_S):
            return f"{collector_name(collector)} was ended by signal {signal_number}" if signal_number else ""
        return None

    def _end_stopped(self, collector: int) -> str:
        with contextlib.suppress(ProcessLookupError):
            os.kill(collector, signal.SIGKILL)
        return (
            f"{collector_name(collector)} was stopped for {self.stopped_s:g} s. "
            "What to do: find out who stopped it, then start again"
        )

    def outlive(self) -> str:
        """End a collector that is stopped when its rank has ended, as by torchrun: nobody else would. Why, or empty."""
        waited_s = 0.0
        while self.collector is not None and process_state(self.collector)[0] in "Tt":
            if waited_s >= _TO_SPEAK_S:
                return self._end_stopped(self.collector)
            time.sleep(_TICK_S)
            waited_s, self.stopped_s = waited_s + _TICK_S, self.stopped_s + _TICK_S
        return ""


def collector_name(pid: int) -> str:
    """What messages call the collector."""
    return f"the collector of this job (process {pid}, started by rank 0)"


def process_state(pid: int) -> tuple[str, int]:
    """State of a process as /proc has it, ``X`` where it is gone, and the signal that ended it, 0 for none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return "X", 0
    return fields[0], int(fields[49]) & 0x7F


def _live(watch: _Watch, reader: int) -> None:
    """The life of the watcher: it holds no file of the rank but stderr, and never returns."""
    try:
        if watch.collector is None and not die_with_parent(watch.rank_pid):
            os._exit(0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # it ends with its rank
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.closerange(3, reader)
        os.closerange(reader + 1, os.sysconf("SC_OPEN_MAX"))
        while True:
            if select.select([reader], [], [], None if watch.sleeps else _TICK_S)[0]:
                told = os.read(reader, 1)
                if not told:
                    _say(watch.outlive())  # the rank has ended
                    break
                watch.hear(told)
            elif os.getppid() != watch.rank_pid:
                _say(watch.outlive())  # what the rank forked holds the pipe
                break
            elif (why := watch.tick()) is not None:
                _say(why)
                os.kill(watch.rank_pid, signal.SIGKILL)
                break
    finally:
        os._exit(0)


def _say(why: str) -> None:
    if why:
        os.write(2, f"omb-py: error: {why}\n".encode())

"""Threads of one rank that run a stage together: thread t of T runs the iterations i with ``i % T == t``.

Each thread has a loop of its own, translated from the variants that its iterations use, and starts when all are there.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from omb_py.engine.program.language import Stage
from omb_py.engine.samples import LapTimes
from omb_py.engine.session import StepFailed
from omb_py.engine.simple_queue import SimpleQueue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = LapTimes | NDArray[np.int64]


class Work(Protocol):
    """The loop of one thread. Iterations are its own, counted from that thread's iteration 0."""

    labels: tuple[str, ...]

    def run(self, first: int, iterations: int) -> Samples:
        """Run in the calling thread, after the gate; shape (iterations, laps). Raises StepFailed."""

    def position(self) -> tuple[int, int]:
        """(iteration, step), asked from another thread."""


class ThreadGate:
    """Opens when the last of those expected is there.

    Generated code looks at :attr:`word` itself; Python waits in :meth:`wait`.
    """

    def __init__(self) -> None:
        self.word = array("q", [0])
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._missing = 0

    def close(self, expected: int) -> None:
        """Close the gate for a run of `expected` threads."""
        self._missing = expected
        self.word[0] = 0
        self._open.clear()

    def arrive(self) -> None:
        """Note that a thread has come; the last one opens the gate."""
        with self._lock:
            self._missing -= 1
            if self._missing == 0:
                self.word[0] = 1
                self._open.set()

    def wait(self) -> None:
        self.arrive()
        self._open.wait()


def stages_of(stage: Stage) -> list[Stage]:
    """The part of each thread. Raises ValueError when the variants cannot be shared out."""
    if len(stage.variants) % stage.threads:
        raise ValueError(f"{len(stage.variants)} variants cannot be shared among {stage.threads} threads")
    return [replace(stage, variants=stage.variants[t :: stage.threads], threads=1) for t in range(stage.threads)]


def share(first: int, iterations: int, threads: int, thread: int) -> tuple[int, int]:
    """(number of the first one, how many) of a thread's own iterations among ``first … first + iterations - 1``."""
    begin, end = (-(-(bound - thread) // threads) for bound in (first, first + iterations))
    return begin, end - begin


class Crew:
    def __init__(self, works: Sequence[Work], gate: ThreadGate) -> None:
        self._works, self._gate = works, gate
        self._running: set[int] = set()
        self.labels = tuple(f"thread {t}: {label}" for t, work in enumerate(works) for label in work.labels)
        """The text of each step; the steps of thread 0 come first."""
        lengths = [len(work.labels) for work in works]
        self._offsets = [sum(lengths[:t]) for t in range(len(works))]

    def run(self, first: int, iterations: int, laps: int) -> NDArray[np.int64]:
        """Run iterations, shared out; nanoseconds by iteration, shape (iterations, laps).

        Raises what the first thread that failed raised; the others, which may never end, are left alone.
        """
        import numpy as np

        threads = len(self._works)
        shares = {t: share(first, iterations, threads, t) for t in range(threads)}
        active = [t for t in shares if shares[t][1]]
        results: SimpleQueue[tuple[int, Samples | BaseException]] = SimpleQueue()
        self._gate.close(len(active))
        self._running = set(active)
        for t in active:  # daemons: a thread that never returns must not keep a failed rank alive
            threading.Thread(
                target=self._run_thread, args=(t, *shares[t], results), name=f"omb-{t}", daemon=True
            ).start()
        out = np.zeros((iterations, laps), np.int64)
        for _ in active:
            t, result = results.get()
            if isinstance(result, BaseException):
                raise result
            self._running.discard(t)
            table = result.table() if isinstance(result, LapTimes) else result
            out[shares[t][0] * threads + t - first :: threads] = table
        return out

    def _run_thread(
        self, thread: int, first: int, iterations: int, results: SimpleQueue[tuple[int, Samples | BaseException]]
    ) -> None:
        try:
            results.put((thread, self._works[thread].run(first, iterations)))
        except StepFailed as error:
            results.put((thread, StepFailed(error.step + self._offsets[thread], error.code, error.text)))
        except BaseException as error:  # the rank's own thread must hear of everything
            results.put((thread, error))

    def position(self) -> tuple[int, int]:
        """(iteration, step) of the thread that is furthest behind and not done."""
        threads = len(self._works)
        places = []
        for t in tuple(self._running):
            iteration, step = self._works[t].position()
            places.append((iteration * threads + t, step + self._offsets[t]))
        return min(places, default=(0, 0))

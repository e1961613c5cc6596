"""What is counted during the timed loop: read before and after it, so nothing of it is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from omb_py.engine.session import Session

PREFIX: Final = "pvar."
"""Begins the names of what a library counts (``--pvar``) in the metrics of a row."""


def library_counters(session: Session, names: str) -> Difference:
    """What the library counts on each rank: variables of MPI_T, separated by commas."""
    asked = tuple(names.split(","))
    return Difference(session, lambda: session.counted(asked), PREFIX)


class Difference:
    """The difference of each counter between two readings, on each process that has it.

    It covers warm-up, timed loop and the barriers in it, on all communicators where a library does not tell them
    apart.

    Args:
        session: of all ranks; each calls every method together with the others.
        read: the counters of this process by name; empty where another process reads them.
        prefix: begins the names of the metrics.
    """

    def __init__(self, session: Session, read: Callable[[], Mapping[str, float]], prefix: str) -> None:
        self._session, self._read, self._prefix = session, read, prefix
        self._before: Mapping[str, float] = {}

    def start(self) -> None:
        """Take the first reading."""
        self._before = self._read()

    def stop(self) -> dict[str, float]:
        """Take the second reading.

        Returns:
            The sum over the processes by the counter's name after the prefix, and the smallest and largest of a
            process as ``.min`` and ``.max``; empty but on the process of rank 0.
        """
        after = self._read()
        everyone = self._session.gather(
            {name: after[name] - self._before[name] for name in after if name in self._before}
        )
        out: dict[str, float] = {}
        for name in dict.fromkeys(name for of_process in everyone for name in of_process):
            values = [of_process[name] for of_process in everyone if name in of_process]
            out |= {
                f"{self._prefix}{name}": sum(values),
                f"{self._prefix}{name}.min": min(values),
                f"{self._prefix}{name}.max": max(values),
            }
        return out

"""What a library counts during the timed loop (``--pvar``), and what observers of counters have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from omb_py.engine.observers.observer import Observer, StoredRow, metrics_of

if TYPE_CHECKING:
    from omb_py.engine.session import Session


class DifferenceObserver(Observer):
    """The difference of each counter between two readings, on each process that has it.

    It covers warm-up, timed loop and the barriers in it, on all communicators where a library does not tell them
    apart.
    """

    prefix: ClassVar[str]
    """Begins the names of the metrics."""

    def __init__(self, session: Session, text: str) -> None:
        super().__init__(session, text)
        self._before: Mapping[str, float] = {}

    def read(self) -> Mapping[str, float]:
        """The counters of this process by name; empty where another process reads them."""
        raise NotImplementedError

    def start(self) -> None:
        self._before = self.read()

    def stop(self, operations: int) -> dict[str, float]:
        """Take the second reading.

        Returns:
            The sum over the processes by the counter's name after the prefix, and the smallest and largest of a
            process as ``.min`` and ``.max``; empty but on the process of rank 0.
        """
        after = self.read()
        differences = {name: after[name] - self._before[name] for name in after if name in self._before}
        everyone = self.session.gather(differences)
        out: dict[str, float] = {}
        for name in dict.fromkeys(name for of_process in everyone for name in of_process):
            values = [of_process[name] for of_process in everyone if name in of_process]
            out |= {
                f"{self.prefix}{name}": sum(values),
                f"{self.prefix}{name}.min": min(values),
                f"{self.prefix}{name}.max": max(values),
            }
        return out


PREFIX: Final = "pvar."


def counts_text(row: StoredRow) -> str:
    """What the library counted on all ranks together: ``sent=12, late=4``."""
    metrics = metrics_of(row)
    names = [name for name in metrics if name.startswith(PREFIX) and f"{name}.max" in metrics]
    return ", ".join(f"{name.removeprefix(PREFIX)}={metrics[name]:g}" for name in names)


class LibraryCounters(DifferenceObserver):
    """What the library counts on each rank; the text names variables of MPI_T, separated by commas."""

    name, option, prefix = "pvars", "--pvar", PREFIX
    columns = (("counted", counts_text),)

    def read(self) -> Mapping[str, float]:
        return self.session.counted(tuple(self.text.split(",")))

"""The interface of an observer: what is read right before and right after the timed loop of a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

if TYPE_CHECKING:
    from omb_py.engine.session import Session


StoredRow: TypeAlias = Mapping[str, Any]
"""A row of the store, of which the engine does not know the columns."""
TextColumn: TypeAlias = tuple[str, Callable[[StoredRow], str]]
"""A column of printed tables: its head, and the text of a row, which is empty or ``-`` where nothing was read."""


class Observer:
    """Reads counters around the timed loop, so that nothing of it is timed.

    A cell names its observers in ``Cell.observers``: name -> text of the option. Each is made once for a cell, on all
    ranks, and its methods are called by all ranks together, so they may use the session's reductions. An example::

        class PageFaults(Observer):
            name, option, help = "page_faults", "--page-faults", "Pages that the loop loads from disk."

            def start(self) -> None:
                self.before = getrusage(RUSAGE_SELF).ru_majflt

            def stop(self, operations: int) -> dict[str, float]:
                own = float(getrusage(RUSAGE_SELF).ru_majflt - self.before)
                return {"page_faults": float(self.session.total(np.array([own]))[0])}

            columns = (("page faults", lambda row: f"{row['metrics'].get('page_faults', 0):.0f}"),)

    A package offers it by an entry point of the group ``omb_py.observers`` with the observer's name::

        [project.entry-points."omb_py.observers"]
        page_faults = "my_package:PageFaults"

    Args:
        session: of all ranks.
        text: the text of the option; empty for an option without a value.

    Raises:
        EnvironmentProblem: on every rank alike, where nothing can be read.
    """

    name: ClassVar[str]
    """Its key in ``Cell.observers``."""
    option: ClassVar[str]
    """The command-line option that asks for it."""
    metavar: ClassVar[str] = ""
    """What the option takes, for help; empty: it is a flag."""
    help: ClassVar[str] = ""
    """The option's line in help."""
    columns: ClassVar[tuple[TextColumn, ...]] = ()
    """What tables show of it."""
    warnings: ClassVar[tuple[TextColumn, ...]] = ()
    """Columns that warn; they stand last in a table."""

    def __init__(self, session: Session, text: str) -> None:
        self.session, self.text = session, text

    @classmethod
    def explain_missing(cls, session: Session, text: str) -> str:
        """A sentence on what will not be read in this launch; empty where all is. All ranks call it together."""
        return ""

    def start(self) -> None:
        """Take the first reading: warm-ups and the timed loop follow."""

    def stop(self, operations: int) -> dict[str, float]:
        """Take the second reading.

        Args:
            operations: that the loop did, warm-ups among them.

        Returns:
            Entries of the row's ``metrics``; they count on the process that holds rank 0.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Give back what was opened."""


def metrics_of(row: StoredRow) -> dict[str, float]:
    return dict(row.get("metrics") or {})


def number_of(value: Any) -> float:
    """A value of a row as a number; NaN where it is null."""
    try:
        return float(value)
    except TypeError:
        return math.nan


def leads_its_host(session: Session) -> bool:
    """Whether this process holds the first rank of its host, which reads the counters of the host."""
    return any(session.hosts.index(session.hosts[rank]) == rank for rank in session.local)

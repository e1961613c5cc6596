"""What a library counts during the timed loop (``--pvar``): read before and after it, so nothing of it is timed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omb_py.engine.session import Session

PREFIX: Final = "pvar."
"""Begins the names of these metrics in a row."""


class Difference:
    """The difference of each variable between two readings, on each rank.

    It covers warm-up, timed loop and the barriers in it, on all communicators where the library does not tell them
    apart.
    """

    def __init__(self, session: Session, names: str) -> None:
        self._session, self._names = session, tuple(names.split(","))
        self._before: Mapping[str, float] = {}

    def start(self) -> None:
        """Take the first reading."""
        self._before = self._session.counted(self._names)

    def stop(self) -> dict[str, float]:
        """Take the second reading.

        Returns:
            The sum over the ranks by the variable's name after :data:`PREFIX`, and the smallest and largest of a rank
            as ``.min`` and ``.max``; empty but on the process of rank 0.
        """
        after = self._session.counted(self._names)
        everyone = self._session.gather({name: after[name] - self._before[name] for name in self._names})
        out: dict[str, float] = {}
        for name in self._names if everyone else ():
            values = [of_rank[name] for of_rank in everyone]
            out |= {
                f"{PREFIX}{name}": sum(values),
                f"{PREFIX}{name}.min": min(values),
                f"{PREFIX}{name}.max": max(values),
            }
        return out

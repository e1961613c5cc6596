"""The points of a tuning's grid: a collective on a number of ranks, with its type, operation and kind of buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """What a search holds fixed: everything but the size and the setting."""

    benchmark: str
    ranks: int
    dtype: str = ""
    op: str = ""
    """Reduction; empty where the collective has none."""
    in_place: bool = False

    @staticmethod
    def of_row(row: Mapping[str, Any]) -> Point:
        """The point of a stored row."""
        return Point(
            str(row["benchmark"]), int(row["ranks"]), str(row["dtype"]), str(row["op"] or ""), bool(row["in_place"])
        )

    @property
    def place(self) -> tuple[str, int]:
        """Collective and ranks: a library's file distinguishes no more, besides sizes."""
        return self.benchmark, self.ranks

    @property
    def variant(self) -> str:
        """What distinguishes it from the other points of its place, in words.

        >>> Point("allreduce", 4, "int32", "max", True).variant
        'int32, max, in place'
        """
        return ", ".join(filter(None, (self.dtype, self.op, "in place" if self.in_place else "")))

    def __str__(self) -> str:
        return f"{self.benchmark} on {self.ranks} ranks, {self.variant}"

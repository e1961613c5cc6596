"""The result of a tuning: a table of rules, as data and as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from omb_py.results.compare.tags import TUNE_DEFAULT
from omb_py.results.store.row import Row

FORM = 1


@dataclass(frozen=True)
class LibrarySetting:
    """What the environment of a launch holds for a candidate; without variables it is the library's default."""

    name: str
    """As people call it: ``ring``, ``ring segsize=8192``, ``default``."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables and their values, sorted by name."""


DEFAULT = LibrarySetting(TUNE_DEFAULT)
"""The library as it is. It is a candidate too, and wins every tie."""


@dataclass(frozen=True)
class Rule:
    """Messages of `first_bytes` to `last_bytes` on `ranks` ranks use `setting`."""

    collective: str
    ranks: int
    first_bytes: int
    last_bytes: int | None
    """None: and all larger messages."""
    setting: LibrarySetting
    ratio: float
    """Time with the setting over the default's, as the geometric mean over the sizes that were measured."""
    low: float
    """Lower end of the interval of `ratio`; the smallest of its sizes."""
    high: float
    """Upper end of it; the largest of its sizes."""

    @property
    def for_all_sizes(self) -> bool:
        """Whether the rule has neither a smallest nor a largest size."""
        return self.first_bytes == 0 and self.last_bytes is None

    def holds(self, nbytes: int) -> bool:
        return self.first_bytes <= nbytes and (self.last_bytes is None or nbytes <= self.last_bytes)


@dataclass(frozen=True)
class RuleTable:
    """All rules of one tuning."""

    library: str
    """Name and version as the rows of the store have them: ``MPICH 5.0.2``."""
    rules: tuple[Rule, ...]
    who: tuple[tuple[str, str], ...] = ()
    """Lines for the head of a file: hosts, time, command, version of omb-py."""


def to_json(table: RuleTable) -> str:
    """Write a table as JSON. An interval without an end has null there."""
    data: dict[str, Any] = {"form": FORM, **asdict(table), "who": dict(table.who)}
    for rule in data["rules"]:
        rule["setting"]["variables"] = dict(rule["setting"]["variables"])
        rule["high"] = rule["high"] if math.isfinite(rule["high"]) else None
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True, order=True)
class TunePoint:
    """What a search holds fixed: everything but the size and the setting."""

    benchmark: str
    ranks: int
    dtype: str = ""
    op: str = ""
    """Reduction; empty where the collective has none."""
    in_place: bool = False

    @staticmethod
    def of_row(row: Row) -> TunePoint:
        """The point of a stored row."""
        return TunePoint(
            str(row["benchmark"]), int(row["ranks"]), str(row["dtype"]), str(row["op"] or ""), bool(row["in_place"])
        )

    @property
    def file_key(self) -> tuple[str, int]:
        """Collective and ranks: a library's file distinguishes no more, besides sizes."""
        return self.benchmark, self.ranks

    @property
    def variant(self) -> str:
        """What distinguishes it from the other points of its place, in words.

        >>> TunePoint("allreduce", 4, "int32", "max", True).variant
        'int32, max, in place'
        """
        return ", ".join(filter(None, (self.dtype, self.op, "in place" if self.in_place else "")))

    def __str__(self) -> str:
        return f"{self.benchmark} on {self.ranks} ranks, {self.variant}"

"""Criteria of an acceptance, each with its source, and the metrics that they bound. Data only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from omb_py.grammar.values import Dimension
from omb_py.results.store.row import Row
from omb_py.results.store.schema import value_of
from omb_py.results.units import in_unit, size_text

Source = Literal["contract", "baseline", "lower bound", "guideline", "drift", "interference", "promise"]

Facts = Mapping[str, Any]
"""Columns of a cell's rows, and :data:`OPTIONS`."""
OPTIONS = "options"
"""Key in a cell's facts, beside columns: the options in which it differs from other cells of its benchmark, as text."""

PLACED = "placed"
"""Key in the facts of a cell whose ranks a suite has placed: their number and their nodes, as text."""


@dataclass(frozen=True, slots=True)
class CriterionMetric:
    """A number that is read from a row."""

    name: str
    dimension: Dimension
    better: Literal["less", "more"]
    read: Callable[[Row], float | None]
    """Reads the number in µs, MB/s or %; None where the row has none."""
    doc: str
    counted: bool = False
    """True if the number depends on how many samples it is of: launches are then compared at equal counts only."""


def _column(name: str, factor: float = 1.0) -> Callable[[Row], float | None]:
    def read(row: Row) -> float | None:
        value = value_of(row, name)
        return None if value is None else float(value) * factor

    return read


def _printed(row: Row) -> float | None:
    return None if row.get("unit") != "MB/s" else _column("value")(row)


def _mean(row: Row) -> float | None:
    """The mean; other tools print one number a launch, which is that."""
    mean = _column("mean_us")(row)
    printed = mean is None and row.get("unit") == "us" and row.get("source") != "omb-py"
    return _column("value")(row) if printed else mean


def _overlap(row: Row) -> float | None:
    return (row.get("metrics") or {}).get("overlap_pct")


def _stolen(row: Row) -> float | None:
    mean, least = row.get("mean_us"), row.get("min_us")
    return None if not mean or not least else 100 * (mean / least - 1)


METRICS: Mapping[str, CriterionMetric] = {
    m.name: m
    for m in (
        CriterionMetric(
            "median", "time", "less", _column("median_us"), "median of the launch's samples (maximum over ranks)"
        ),
        CriterionMetric("mean", "time", "less", _mean, "mean of them"),
        CriterionMetric("p99", "time", "less", _column("p99_us"), "99th percentile; needs 100 samples", True),
        CriterionMetric("p999", "time", "less", _column("p999_us"), "99.9th percentile; needs 1000 samples", True),
        CriterionMetric("bandwidth", "rate", "more", _printed, "what a bandwidth benchmark prints"),
        CriterionMetric("algbw", "rate", "more", _column("algbw_gbps", 1e3), "algorithm bandwidth"),
        CriterionMetric("busbw", "rate", "more", _column("busbw_gbps", 1e3), "bus bandwidth"),
        CriterionMetric("overlap", "share", "more", _overlap, "overlap of a non-blocking collective"),
        CriterionMetric(
            "stolen",
            "share",
            "less",
            _stolen,
            "mean over smallest sample, less 1: the OS noise, of benchmark `noise`",
            counted=True,
        ),
    )
}


def _add_space(value: str) -> str:
    """A value with a space before its unit.

    >>> _add_space("5ms"), _add_space("1.5 GB/s"), _add_space("")
    ('5 ms', '1.5 GB/s', '')
    """
    return re.sub(r"(?<=[\d.])(?=[A-Za-zµ%])", " ", value)


@dataclass(frozen=True, slots=True)
class Range:
    """A contract's bound, in µs, MB/s or %, with at least one end."""

    low: float | None = None
    high: float | None = None
    given: tuple[str, str] = field(default=("", ""), compare=False)
    """Both ends as somebody wrote them; empty: nobody did."""

    def text(self, dimension: Dimension, unit: str = "") -> str:
        """Write the bound in a unit, without one as it was given: ``at most 5 us``."""
        ends = []
        if self.low is not None:
            ends.append(f"at least {(not unit and _add_space(self.given[0])) or in_unit(self.low, dimension, unit)}")
        if self.high is not None:
            ends.append(f"at most {(not unit and _add_space(self.given[1])) or in_unit(self.high, dimension, unit)}")
        return ", ".join(ends)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One demand on one benchmark."""

    id: str
    """Name that stays the same between runs; test cases are named by it."""
    source: Source
    benchmark: str
    metric: str
    """One of :data:`METRICS`."""
    text: str = ""
    sizes: tuple[int, ...] = ()
    """Message sizes in bytes; ``()`` means all that are measured."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Column of the store -> value that a row must have."""
    ranges: Mapping[int | None, Range] = field(default_factory=dict)
    """Bounds of a contract: size in bytes -> bound; None stands for all other sizes."""
    share: float = 0.0
    """Tolerance of the other sources as a fraction; for a lower bound the efficiency that is asked, for a promise that
    is unknown the part of the link's peak."""
    program: str = ""
    """Benchmark that measures a guideline, both sides in turn."""
    mock_up: str = ""
    """Description of a guideline's other side, which does the same."""
    at: str = ""
    unit: str = ""
    """Unit of its numbers; empty: the one that suits their size."""

    @property
    def promised(self) -> bool:
        """Whether its bound is what a supplier promises (``omb-py accept --contract``), and none is known."""
        return self.source == "promise"

    def range_of(self, size: int) -> Range:
        """Look up a contract's bound at a size in bytes."""
        return self.ranges[size] if size in self.ranges else self.ranges[None]

    @property
    def measured(self) -> str:
        """Benchmark whose rows are judged."""
        return self.program or self.benchmark

    def covers(self, facts: Facts) -> bool:
        """Say whether the criterion applies to a cell with these columns."""
        if facts["benchmark"] != self.measured or any(facts.get(k) != v for k, v in self.where.items()):
            return False
        return not self.sizes or int(facts.get("size_bytes") or 0) in self.sizes

    def bound_facts(self) -> dict[str, Any]:
        """What is demanded, as plain data: without the place and the words with which it was written."""
        facts = asdict(replace(self, at="", text=""))
        for ends in facts["ranges"].values():
            del ends["given"]
        return facts

    def bound_text(self, size: int) -> str:
        """Write the demand at a size in bytes as text."""
        share = f"{100 * self.share:g} %"
        if self.source == "contract" or size in self.ranges:
            return self.range_of(size).text(METRICS[self.metric].dimension, self.unit)
        return {
            "promise": f"at least {share} of the link's peak" if self.share else "none",
            "baseline": f"at most {share} worse than the baseline",
            "lower bound": f"at least {share} of the lower bound's speed",
            "guideline": f"at most {share} slower than {self.mock_up}",
            "drift": f"at most {share} slower at the end",
            "interference": f"at most {share} slower beside another job",
        }[self.source]


@dataclass(frozen=True, slots=True)
class Case:
    """A criterion at one cell, which gets one verdict."""

    criterion: Criterion
    facts: Facts
    """Columns of the cell's rows: benchmark, size_bytes, ranks, backend, binding, dtype, op; and :data:`OPTIONS`."""
    cell: str
    apart: tuple[str, ...] = ()
    """Columns that distinguish it from other cases of the criterion."""

    @property
    def size(self) -> int:
        """Message size in bytes; 0 where there is none."""
        return int(self.facts.get("size_bytes") or 0)

    @property
    def name(self) -> str:
        """Name that stays the same between runs, as ``small-latency, 8 B``."""
        parts = [f"{size_text(self.size)}"] if self.size else []
        parts += [f"{self.facts[name]} {name}" if name == "ranks" else str(self.facts[name]) for name in self.apart]
        return ", ".join([self.criterion.id, *parts])

    @property
    def bound(self) -> str:
        return self.criterion.bound_text(self.size)

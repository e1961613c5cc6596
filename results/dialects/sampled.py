"""Rows of tools that are no communication benchmark: a name, a unit, and one or several numbers of a launch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from omb_py.results.dialects.reading import BadTable, ImportedRow
from omb_py.results.statistics.summary import summarise

BACKEND = "program"
"""Backend of rows of which no communication library is known."""
BETTER, LOWER, HIGHER = "better", "lower", "higher"
"""Name of the parameter of a row whose unit does not say which numbers are better, and its values."""
MICROSECONDS: Mapping[str, float] = {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
"""Unit of a time -> how many microseconds it has."""


def sampled_row(
    source: str, name: str, unit: str, better: str, samples: Sequence[float], size: int | None = None
) -> ImportedRow:
    """The row of a launch's numbers: times of which there are several have a median and a tail, all else a mean.

    Args:
        source: the tool.
        name: what was measured; it becomes the benchmark.
        unit: unit of the numbers.
        better: :data:`LOWER` or :data:`HIGHER`.
        samples: the numbers, at least one.
        size: message size in bytes; None where there is none.

    Raises:
        BadTable: a number is not finite and above 0, so that no ratio can be told.
    """
    for value in samples:
        if not (math.isfinite(value) and value > 0):
            raise BadTable(f"{name} is {value:g}, and only numbers above 0 can be compared")
    row: ImportedRow = {"source": source, "benchmark": name, "backend": BACKEND, "size_bytes": size, "metric": name}
    if better == LOWER and unit in MICROSECONDS:
        times = [value * MICROSECONDS[unit] for value in samples]
        row |= {"unit": "us", "value": math.fsum(times) / len(times), "iterations": len(times)}
        if len(times) > 1:
            row |= {**summarise(times), "samples_us": times}
        return row
    row |= {"unit": unit, "value": math.fsum(samples) / len(samples), "iterations": len(samples)}
    return {**row, "parameters": {BETTER: better}}

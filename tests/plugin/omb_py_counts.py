"""A view of somebody else: how many samples each benchmark has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omb_py.plugin import InReport, Shown, View, ViewEntry, table


def counts(cells: Any) -> Iterator[Shown]:
    """A table for each benchmark: samples by message size."""
    for benchmark, rows in cells.rows.groupby("benchmark", observed=True):
        samples = rows.groupby("size_bytes")["iterations"].sum()
        numbers = table(("size, B", "samples"), samples.items())
        yield Shown(View("counts", f"{benchmark}: {samples.sum()} samples", "", None, **numbers), rows)


COUNTS = ViewEntry("counts", "Cell", "number of samples", counts, "No cell.", report=InReport(61))

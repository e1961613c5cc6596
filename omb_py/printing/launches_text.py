"""The table over the launches of one run: each cell's smallest, median and largest value."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from omb_py.results.store.row import Row

_CELL = ("benchmark", "backend", "binding", "device", "dtype", "metric", "unit", "comparability_key", "size_bytes")
_TOLD = ("backend", "binding", "device", "dtype")
"""Columns that a title names where they differ within the run."""
_WIDTH = 12


def launches_text(rows: Sequence[Row]) -> str:
    """Write what several launches of the same cells gave, as lines that readers of OMB's text skip.

    Args:
        rows: rows of all launches, in the order of measuring; rows without a value are left out.

    Returns:
        A block for each benchmark and variant, with a line for each size; empty where no cell has two launches.
    """
    cells: dict[tuple[object, ...], dict[str, float]] = {}
    for row in rows:
        if row.get("value") is not None:
            launches = cells.setdefault(tuple(row.get(name) for name in _CELL), {})
            launches.setdefault(str(row["launch_id"]), float(row["value"]))  # of a soak the first pass
    repeated = {cell: list(launches.values()) for cell, launches in cells.items() if len(launches) > 1}
    varied = [name for name in _TOLD if len({cell[_CELL.index(name)] for cell in repeated}) > 1]
    columns = "".join(f"{word:>{_WIDTH}}" for word in ("min", "median", "max"))
    blocks: dict[str, list[str]] = {}
    for cell, values in repeated.items():
        fact = dict(zip(_CELL, cell, strict=True))
        variant = "".join(f", {fact[name]}" for name in varied)
        head = f"# {fact['benchmark']}{variant}: {fact['metric']} ({fact['unit']}) over {len(values)} launches"
        numbers = (min(values), statistics.median(values), max(values))
        size = str(fact["size_bytes"] or "")
        line = f"# {size:<{_WIDTH}}" + "".join(f"{number:>{_WIDTH}.2f}" for number in numbers)
        first = f"# {'bytes' if size else '':<{_WIDTH}}{columns}"
        blocks.setdefault(head, [first]).append(line)
    return "".join("\n".join(["", head, *lines, ""]) for head, lines in blocks.items())

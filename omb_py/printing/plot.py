"""Curves in a terminal: a pure function from rows to text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from omb_py.results.units import amount, number_of, size_text

MARKS = "ox+*#@"
"""Characters of the series, in turn."""


def curve(rows: Sequence[Mapping[str, Any]], width: int = 72, height: int = 16) -> str:
    """Draw the value of each row over its message size on logarithmic axes, with one mark a series and a legend.

    Args:
        rows: cells with ``size_bytes``, ``value``, ``unit``, ``benchmark``, ``backend``, ``binding``.
        width: width of the drawing in characters, without the labels.
        height: height of it in lines.

    Returns:
        Lines that each end in a newline; one sentence where there is nothing to draw (fewer than two sizes).
    """
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        size, value = number_of(row.get("size_bytes")), number_of(row.get("value"))
        if 0 < size < math.inf and 0 < value < math.inf:
            points.setdefault(_label(row), []).append((math.log2(size), math.log10(value)))
    everything = [point for series in points.values() for point in series]
    if len({x for x, _ in everything}) < 2:
        return "nothing to draw: a curve needs two message sizes\n"
    left, right = min(x for x, _ in everything), max(x for x, _ in everything)
    low, high = min(y for _, y in everything), max(y for _, y in everything)
    high = high if high > low else low + 0.01
    grid = [[" "] * width for _ in range(height)]
    for number, series in enumerate(points.values()):
        for x, y in series:
            column = round((x - left) / (right - left) * (width - 1))
            line = round((high - y) / (high - low) * (height - 1))
            taken = grid[line][column]
            grid[line][column] = MARKS[number % len(MARKS)] if taken == " " else "&"
    unit = str(rows[0].get("unit") or "")
    ticks = {0: amount(10**high), height // 2: amount(10 ** ((high + low) / 2)), height - 1: amount(10**low)}
    margin = max(len(text) for text in ticks.values())
    lines = [f"{'µs' if unit == 'us' else unit}, {rows[0].get('benchmark')}"]
    lines += [f"{ticks.get(number, ''):>{margin}} |{''.join(line).rstrip()}" for number, line in enumerate(grid)]
    ends = size_text(2**left), size_text(2**right)
    lines.append(" " * margin + " +" + "-" * width)
    lines.append(" " * (margin + 2) + ends[0] + ends[1].rjust(width - len(ends[0])))
    if len(points) > 1:
        lines += [f"  {MARKS[number % len(MARKS)]} {label}" for number, label in enumerate(points)]
        lines.append("  & several")
    return "\n".join(lines) + "\n"


def _label(row: Mapping[str, Any]) -> str:
    names = ("backend", "library", "library_version", "binding", "dtype")
    return " · ".join(str(row[name]) for name in names if row.get(name))

"""Curves and maps in a terminal: pure functions from rows to text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from omb_py.results.store.row import Row
from omb_py.results.units import amount, number_of, size_text

MARKS = "ox+*#@"
"""Characters of the series, in turn."""


def curve(rows: Sequence[Row], width: int = 72, height: int = 16) -> str:
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


def _label(row: Row) -> str:
    names = ("backend", "library", "library_version", "binding", "dtype")
    return " · ".join(str(value) for name in names if (value := row.get(name)))


if TYPE_CHECKING:
    import pandas as pd

SHADES = ((0.5, "#"), (0.8, "x"), (0.9, "+"), (0.95, "-"), (1.05, "."))
"""Largest share of the median and its character; more than the last is a blank."""
MOST = 100
"""Most nodes of a matrix that is drawn."""


def heat_map(links: pd.DataFrame) -> str:
    """Draw every pair as a character: bandwidth from the line's node to the column's, as a share of the median.

    Args:
        links: a row for each direction of a pair: ``source``, ``target``, ``value`` (more is better), ``unit``.
    """
    names = list(dict.fromkeys([*links["source"], *links["target"]]))
    if len(names) > MOST:
        return f"{len(names)} nodes are too many to draw here: --output FILE.html\n"
    middle = float(links["value"].median())
    share = {(a, b): v / middle for a, b, v in zip(links["source"], links["target"], links["value"], strict=True)}
    margin = max(map(len, names))
    lines = [f"bandwidth from a line's node to a column's, of the median {middle:.4g} {links['unit'].iloc[0]}"]
    lines += [f"{name:>{margin}} |{''.join(_shade(share.get((name, other))) for other in names)}|" for name in names]
    low = 0.0
    legend = []
    for high, mark in SHADES:
        legend.append(f"{mark} {low:.0%}-{high:.0%}")
        low = high
    return "\n".join([*lines, f"{'':>{margin}}  {'  '.join(legend)}  blank: more"]) + "\n"


def _shade(share: float | None) -> str:
    if share is None:
        return "\\"
    return next((mark for high, mark in SHADES if share <= high), " ")

"""The bandwidth of all pairs of nodes in a terminal: a matrix of characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

"""A sparkline: a row of values as a small picture that stands in a line of text."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from omb_py.dashboards.base import theme

WIDTH, HEIGHT, EDGE = 120, 22, 3
"""Pixels."""
MOST = 120
"""Values that are drawn; of more the medians of neighbours are."""


def sparkline(values: Sequence[float], mark: int | None = None) -> str:
    """The values as an SVG picture in a ``data:`` address; empty with fewer than two values.

    Args:
        values: in order; finite.
        mark: place of the first value that is drawn in the colour of a change.
    """
    if len(values) < 2:
        return ""
    step = -(-len(values) // MOST)
    groups = [sorted(values[at : at + step]) for at in range(0, len(values), step)]
    drawn = [group[len(group) // 2] for group in groups]
    low, high = min(drawn), max(drawn)
    reach = (high - low) or 1.0
    across = (WIDTH - 2 * EDGE) / (len(drawn) - 1)
    points = [
        (EDGE + across * at, HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (value - low) / reach)
        for at, value in enumerate(drawn)
    ]
    split = len(points) if mark is None else max(1, min(len(points), mark // step))
    lines = _line(points[: split + 1], theme.GREY) + _line(points[split:], theme.VERDICT_COLOURS["SLOWER"])
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f"{lines}</svg>"
    )
    return f"data:image/svg+xml,{quote(text)}"


def _line(points: Sequence[tuple[float, float]], colour: str) -> str:
    if not points:
        return ""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-linejoin="round"/>'

"""Contrast of colours as WCAG 2.2 defines it, and text that can be read on a colour."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

INKS = ("#000000", "#ffffff")
"""One of them has 4.5:1 or more on every colour; a dark grey instead of black would not."""


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb``, 0 to 1 (https://www.w3.org/TR/WCAG22/#dfn-relative-luminance)."""
    parts = [part / 255 for part in _parts(colour)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours, 1 to 21.

    >>> contrast("#ffffff", "#000000")
    21.0
    """
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def ink_on(colour: str) -> str:
    """The one of :data:`INKS` that is read better on a colour."""
    return max(INKS, key=lambda ink: contrast(ink, colour))


def on_scale(scale: Sequence[tuple[float, str]], place: float) -> str:
    """The colour at a place, 0 to 1, of a colour scale that begins at 0 and ends at 1, as Plotly mixes it."""
    place = min(1.0, max(0.0, place))
    for (low, before), (high, after) in pairwise(scale):
        if place <= high:
            share = (place - low) / (high - low) if high > low else 0.0
            pairs = zip(_parts(before), _parts(after), strict=True)
            return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in pairs)
    return scale[-1][1]


def _parts(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))

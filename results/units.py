"""Numbers, sizes and counts as text for people."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from omb_py.grammar.values import UNITS, Dimension, four_digits
from omb_py.results.json_values import plain

BASE_UNITS: dict[Dimension, str] = {"time": "us", "rate": "MB/s", "share": "%"}
"""Dimension -> the unit in which numbers are kept."""
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size_text(size_bytes: object) -> str:
    """A size in bytes as exact text, in the largest binary unit that divides it: ``8192`` is ``8 KiB``.

    >>> size_text(1536)
    '1536 B'
    """
    number = number_of(size_bytes)
    if math.isnan(number):
        return "-"
    size = int(number)
    for unit, name in _UNITS:
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def counted(count: int, word: str) -> str:
    """A number with its noun: ``1 launch``, ``3 launches``."""
    ending = "es" if word.endswith(("ch", "s", "x")) else "s"
    return f"{count} {word if count == 1 else word + ending}"


def natural_key(name: object) -> list[tuple[int, str]]:
    """A key by which ``n2`` is before ``n10``."""
    return [(int(text), "") if text.isdecimal() else (-1, text) for text in re.split(r"(\d+)", str(name))]


def share_text(share: float) -> str:
    """A fraction in per cent, with up to six digits.

    >>> share_text(0.999)
    '99.9%'
    """
    return f"{100 * share:g}%"


def number_of(value: object) -> float:
    """A value as a float; NaN for None and for pandas' NA."""
    number = plain(value)
    return math.nan if number is None else float(number)


def amount(value: float) -> str:
    """A number for a reader: three digits, thousands apart.

    >>> amount(16384.2), amount(0.25)
    ('16 384', '0.25')
    """
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.3g}"


def factor_text(ratio: float) -> str:
    """How many times slower, or faster, a time is, from its ratio to another.

    >>> factor_text(1.204), factor_text(0.5)
    ('1.2× slower', '2× faster')
    """
    return f"{amount(max(ratio, 1 / ratio))}× {'slower' if ratio > 1 else 'faster'}"


def in_unit(value: float, dimension: Dimension, given: str = "") -> str:
    """A time in µs, a rate in MB/s or a share in %, in the unit that is given or else suits its size.

    >>> in_unit(12000.0, "rate"), in_unit(12000.0, "rate", "MB/s")
    ('12 GB/s', '12000 MB/s')
    """
    if not math.isfinite(value):
        return "unknown"
    if given:
        return f"{four_digits(value / UNITS[dimension][given])} {given}"
    unit, number = BASE_UNITS[dimension], value
    if dimension == "rate" and value >= 1000:
        unit, number = "GB/s", value / 1000
    if dimension == "time" and value >= 10_000:
        unit, number = "ms", value / 1000
    return f"{four_digits(number)} {unit}"


def listed(words: Iterable[object], most: int = 4) -> str:
    """Words with commas, each once, at most so many.

    >>> listed(["n1", "n2"]), listed("abcdef")
    ('n1, n2', 'a, b, c, d and 2 more')
    """
    known = list(dict.fromkeys(map(str, words)))
    return ", ".join(known[:most]) + (f" and {len(known) - most} more" if len(known) > most else "")


def range_text(words: Sequence[str]) -> str:
    """The first and the last of words in order: ``8 B to 1 KiB``."""
    return words[0] if len(words) == 1 else f"{words[0]} to {words[-1]}"


def without_text(lost: Mapping[str, str]) -> str:
    """The end of a first line: ``; without n3, which stopped answering``; empty where no node is lost.

    Args:
        lost: node -> why it does not answer.
    """
    return f"; without {listed(lost)}, which stopped answering" if lost else ""

"""Quantities with a unit, read strictly: a bound of which the unit is guessed is no bound."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from omb_py.errors import UsageError, nearest
from omb_py.results.formats.units import share_text

Kind = Literal["time", "rate", "share"]
UNITS: Mapping[Kind, Mapping[str, float]] = {
    "time": {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6},
    "rate": {
        "B/s": 1e-6,
        "KB/s": 1e-3,
        "MB/s": 1.0,
        "GB/s": 1e3,
        "TB/s": 1e6,
        "Kbit/s": 0.125e-3,
        "Mbit/s": 0.125,
        "Gbit/s": 125.0,
        "Tbit/s": 125e3,
    },
    "share": {"%": 1.0},
}
"""Kind -> unit -> its worth in the unit of the kind. Rates are decimal, as everywhere in this field."""
BASE: Mapping[Kind, str] = {"time": "us", "rate": "MB/s", "share": "%"}
_FORM = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.ASCII | re.S)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in the unit of its kind."""

    value: float
    """µs, MB/s or %."""
    kind: Kind
    text: str
    """As it was written."""


def parse_quantity(text: str) -> Quantity:
    """A time, a rate or a share: ``2.5 us``, ``12 GB/s``, ``5 %``.

    >>> parse_quantity("12 GB/s").value
    12000.0

    Raises:
        UsageError: no number, no unit or an unknown one (with the nearest), or a number that cannot be: negative, or 0
            of anything but a share.
    """
    word = text.strip()
    found = _FORM.fullmatch(word)
    if found is None:
        raise UsageError(f"{word!r} is no quantity: write a number and a unit, as 5 us, 12 GB/s or 5 %")
    number, unit = float(found[1]), found[2]
    known = {name: kind for kind, names in UNITS.items() for name in names}
    if not unit:
        raise UsageError(f"{word!r} has no unit: {', '.join(name for name in known if name != 'µs')}")
    if unit not in known:
        raise UsageError(f"unknown unit {unit!r} in {word!r}: {_near(unit, known)}")
    kind = known[unit]
    value = number * UNITS[kind][unit]
    if number < 0 or not math.isfinite(value):
        raise UsageError(f"{word!r} is no bound: it must be a number of 0 or more")
    if value == 0 and kind != "share":
        raise UsageError(f"{word!r} is no bound: every {kind} is more than 0")
    return Quantity(value, kind, word)


def parse_share(text: str, least: float = 0.0, most: float = math.inf) -> float:
    """A share such as ``5%`` as a fraction. Raises UsageError as :func:`parse_quantity`, and outside `least` … `most`.

    >>> parse_share("5 %")
    0.05
    """
    found = parse_quantity(text)
    if found.kind != "share":
        raise UsageError(f"{found.text!r} is no share: write it as 5%")
    share = found.value / 100
    if not least <= share <= most:
        reach = f"{share_text(least)} to {share_text(most)}" if math.isfinite(most) else f"{share_text(least)} or more"
        raise UsageError(f"{found.text!r} is out of range: {reach}")
    return share


def in_unit(value: float, kind: Kind) -> str:
    """A value of a kind for a reader.

    >>> in_unit(12000.0, "rate")
    '12 GB/s'
    """
    if not math.isfinite(value):
        return "unknown"
    unit, number = BASE[kind], value
    if kind == "rate" and value >= 1000:
        unit, number = "GB/s", value / 1000
    if kind == "time" and value >= 10_000:
        unit, number = "ms", value / 1000
    return f"{_plain(number)} {unit}"


def _plain(number: float) -> str:
    """Four digits, never with an exponent."""
    digits = 3 - math.floor(math.log10(abs(number))) if number else 2
    text = f"{number:.{min(max(digits, 0), 12)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def _near(unit: str, known: Mapping[str, Kind]) -> str:
    alike = {name.lower(): name for name in known}
    return f"did you mean {alike[unit.lower()]}?" if unit.lower() in alike else nearest(unit, known)

"""Readers of option values: numbers, words, sizes, counts, percentiles, tags, times, rates and shares.

Every value that a user writes as text is read here: on the command line, in a suite file, in ``KEY=VALUE`` lists
(:mod:`omb_py.grammar.key_values`). The functions are pure and need only the standard library. Each raises
:class:`~omb_py.errors.UsageError` with one line that states the rule and, where there is one, the nearest valid form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Literal

from omb_py.errors import UsageError, nearest

MAX_NUMBER = 1e18
"""No number without a unit is larger than this."""
MAX_BYTES = 2**62
"""No message size is larger than this, in bytes."""
MAX_COUNT = 2**40
"""No iteration or warm-up count is larger than this."""
_PERCENTILE = re.compile(r"\d{1,3}(\.\d{1,6})?")
DEFAULT_PERCENTILES = (50, 90, 99)
"""Percentiles of ``-z`` without a value."""

_SIZE_POWERS = {"": 0, "B": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"(\d+)(?:\^(\d+))?\s*([A-Za-z]*)", re.ASCII)
_NUMBER_AND_UNIT = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.ASCII | re.S)


def digits_of(text: str) -> int | None:
    """The whole number that 1 to 18 ASCII digits write; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def pair_of(text: str, separator: str) -> tuple[int, int] | None:
    """The two whole numbers on the sides of a separator; None for any other text.

    >>> pair_of("8: 4", ":"), pair_of("8", ":")
    ((8, 4), None)
    """
    numbers = [digits_of(part.strip()) for part in text.split(separator)]
    match numbers:
        case [int(first), int(second)]:
            return first, second
    return None


def parse_whole(text: str, least: int = 0, most: int = 10**15, error: str = "") -> int:
    """A whole number from `least` to `most`, written in digits alone.

    Args:
        text: what the user wrote.
        least: the smallest number that is allowed.
        most: the largest.
        error: the message about any other text, a template with ``{text!r}``, ``{least}`` and ``{most}``.

    Raises:
        UsageError: the text is no such number.
    """
    value = digits_of(text)
    if value is None or not least <= value <= most:
        template = error or "{text!r} is not a whole number from {least} on"
        raise UsageError(template.format(text=text, least=least, most=most))
    return value


def parse_count(text: str, what: str, least: int = 0, most: int = 2**53, malformed: str = "") -> int:
    """A whole number of at least `least`, with a message of its own for each way to miss it.

    Args:
        text: what the user wrote.
        what: the name of the number in messages, such as ``iterations``.
        least: the smallest number that is allowed.
        most: the largest.
        malformed: the message about a text that is no whole number.

    Raises:
        UsageError: the text is no whole number, too small or too large.
    """
    try:
        value = int(text, 10)
    except ValueError:
        raise UsageError(malformed or f"{what} {text!r} is not a whole number") from None
    if value < least:
        raise UsageError(f"{what} must be {least} or more, not {value}")
    if value > most:
        raise UsageError(f"{what} {value} is too large: at most {most}")
    return value


def parse_number(text: str, least: float = 0.0, most: float = MAX_NUMBER) -> float:
    """A finite number from `least` to `most`. Raises UsageError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise UsageError(f"{text!r} is not a number from {least:g} on")
    return value


def parse_word(text: str, words: Iterable[str], error: str = "{text!r}: {nearest}") -> str:
    """One of `words`.

    Args:
        text: what the user wrote.
        words: the words that are allowed.
        error: the message about another word, a template with ``{text!r}`` and ``{nearest}``.

    Raises:
        UsageError: the text is none of them.
    """
    choices = tuple(words)
    if text not in choices:
        raise UsageError(error.format(text=text, nearest=nearest(text, choices)))
    return text


def parse_size(text: str) -> int:
    """Bytes of a message size: ``8``, ``4K``, ``1MiB``, ``2^20``.

    K, M, G and T are powers of 1024, also when written KB or KiB: message sizes are binary in OMB and nearly
    everywhere in HPC. (Rates are not: MB/s is 10^6 bytes a second.)

    >>> parse_size("4K"), parse_size("1MiB"), parse_size("2^20")
    (4096, 1048576, 1048576)

    Raises:
        UsageError: not a size, negative, or above :data:`MAX_BYTES`.
    """
    word = text.strip()
    if word.startswith("-"):
        raise UsageError(f"a message size cannot be negative: {word!r}")
    match = _SIZE.fullmatch(word)
    if match is None:
        raise UsageError(f"{word!r} is not a message size: write bytes as 8, 4K, 1MiB or 2^20")
    digits, power, unit = match.groups()
    letters = unit.upper()
    prefix = letters.removesuffix("IB") if letters.endswith("IB") else letters.removesuffix("B")
    if prefix not in _SIZE_POWERS or (power and unit):
        hint = "write 2^20 without a unit" if power else "write bytes as 8, 4K, 1MiB or 2^20"
        raise UsageError(f"{word!r} is not a message size: {hint}")
    # The lengths are checked first, so that no huge power is ever computed.
    if len(digits) > 19 or (power and (len(power) > 3 or int(power) > 62)):
        raise UsageError(f"message size {word!r} is too large: at most 2^62 bytes")
    value = int(digits) ** int(power) if power else int(digits) << _SIZE_POWERS[prefix]
    if value > MAX_BYTES:
        raise UsageError(f"message size {word!r} is too large: at most 2^62 bytes")
    return value


def one_size(text: str) -> str:
    """The sizes of a suite file in the grammar of :func:`parse_sizes`: in a file, a single size is this size only.

    On the command line it is a MAX, as in OMB; a file is read by people, who mean one size by one size.

    >>> one_size("8"), one_size("8:64"), one_size("8,32")
    ('8:8', '8:64', '8,32')
    """
    return text if "," in text or ":" in text else f"{text}:{text}"


def parse_sizes(text: str | None, minimum: int, maximum: int, from_zero: bool = False) -> tuple[int, ...]:
    """The message sizes of a sweep, in bytes.

    ============== ===============================================================
    nothing        doubling from `minimum` to `maximum`, the benchmark's own range
    ``MAX, :MAX``  doubling from `minimum` to MAX
    ``MIN:``       doubling from MIN to `maximum`
    ``MIN:MAX``    doubling from MIN to MAX
    ``MIN:MAX:F``  times F at each step
    ``A,B,C``      exactly these, in this order; no size twice
    ============== ===============================================================

    One size alone is ``8:8``. A range from 0 begins with 0 where `from_zero`, and elsewhere at 1, as in OMB.

    >>> parse_sizes("4:64:4", 1, 1024)
    (4, 16, 64)

    Raises:
        UsageError: MIN > MAX, a factor below 2, a size twice, or not this form.
    """
    if text is None:
        return _range(minimum, maximum, 2)
    if "," in text:
        return _parse_listed(text)
    parts = [part.strip() for part in text.split(":")]
    if len(parts) > 3 or not any(parts):
        raise UsageError(f"{text!r} is not a range of sizes: write MAX, MIN:MAX, MIN:MAX:FACTOR or A,B,C")
    if len(parts) == 1:
        parts = ["", parts[0]]
    low = parse_size(parts[0]) if parts[0] else minimum
    high = parse_size(parts[1]) if parts[1] else maximum
    factor = _factor(parts[2]) if len(parts) == 3 else 2
    if low > high:
        hint = f"write {parts[1]}:{parts[0]}" if parts[0] and parts[1] else "write MIN:MAX"
        what = f"MIN {low}" if parts[0] else f"the smallest size of this benchmark, {low},"
        other = f"MAX {high}" if parts[1] else f"the largest size of its default sweep, {high}"
        raise UsageError(f"message sizes {text!r}: {what} is greater than {other}: {hint}")
    return _range(low if low or from_zero or not high else 1, high, factor)


def _range(low: int, high: int, factor: int) -> tuple[int, ...]:
    sizes, size = [], low
    while size <= high:
        sizes.append(size)
        size = size * factor if size else 1
    return tuple(sizes)


def _factor(text: str) -> int:
    return parse_whole(
        text, 2, 10**9, "factor {text!r} of a range of sizes must be a whole number of 2 or more, as in 1:1M:4"
    )


def _parse_listed(text: str) -> tuple[int, ...]:
    if ":" in text:
        raise UsageError(f"message sizes {text!r}: either a range MIN:MAX[:FACTOR] or a list A,B,C, not both")
    words = text.split(",")
    if any(not word.strip() for word in words):
        tidy = ",".join(word.strip() for word in words if word.strip())
        hint = f"write {tidy}" if "," in tidy else f"one size alone is {tidy or '8'}:{tidy or '8'}"
        raise UsageError(f"message sizes {text!r}: an empty place in the list: {hint}")
    sizes: list[int] = []
    for word in words:
        size = parse_size(word)
        if size in sizes:
            raise UsageError(f"message sizes {text!r}: {size} is listed twice")
        sizes.append(size)
    return tuple(sizes)


@dataclass(frozen=True, slots=True)
class Iterations:
    """Iteration counts by message size, as :func:`parse_iterations` reads them."""

    limits: tuple[int, ...] = ()
    """Ascending sizes in bytes; bucket k holds sizes up to and with ``limits[k]``, the last bucket the rest."""
    counts: tuple[int, ...] = ()
    """One count a bucket; empty means the benchmark's own counts."""
    exact: bool = True
    """True: every cell does its whole count. False: a cell may stop early."""

    @property
    def auto(self) -> bool:
        """Whether a cell may stop early."""
        return not self.exact

    def of(self, size: int, default: int) -> tuple[int, bool]:
        """(iterations, may stop early) of a message of `size` bytes, where the benchmark's own count is `default`."""
        if not self.counts:
            return default, not self.exact
        for limit, count in zip(self.limits, self.counts, strict=False):
            if size <= limit:
                return count, False
        return self.counts[-1], False


def parse_iterations(text: str) -> Iterations:
    """Iteration counts: ``auto``, ``omb``, ``N``, ``S1:c1,S2:c2,…,0:cN`` or ``S:a:b``.

    ``auto`` is the benchmark's count for the size, which a cell need not reach. All others are exact:
    ``omb`` is the benchmark's count, as in OMB without ``-i``;
    ``N`` for every size, small and large; in a list (OMB 7.5.1) messages up to and with S1 bytes get c1 iterations,
    larger ones up to S2 get c2, and what is larger than all sizes gets the last count, whose own size is not
    used and is written 0 by custom; ``S:a:b`` is short for ``S:a,0:b``.

    >>> parse_iterations("8K:1000,1M:100,0:10").of(8193, 7)
    (100, False)

    Raises:
        UsageError: a count below 1, sizes that do not ascend, or not this form.
    """
    word = text.strip()
    if word.lower() in ("auto", "omb"):
        return Iterations(exact=word.lower() == "omb")
    if ":" not in word:
        if "," in word:
            raise UsageError(f"iterations {word!r}: each part of a list is SIZE:N, as in 8K:1000,0:100")
        return Iterations((), (_iterations(word),))
    if "," not in word:
        parts = word.split(":")
        if len(parts) == 2:
            raise UsageError(f"iterations {word!r}: a list also needs a count for larger messages: write {word},0:N")
        if len(parts) != 3:
            raise UsageError(f"iterations {word!r}: write auto, omb, N, SIZE:N,…,0:N or SIZE:N:N")
        return Iterations((parse_size(parts[0]),), (_iterations(parts[1]), _iterations(parts[2])))
    return _buckets(word)


def _buckets(word: str) -> Iterations:
    limits, counts = [], []
    for pair in word.split(","):
        size, colon, count = pair.partition(":")
        if not colon or ":" in count:
            raise UsageError(f"iterations {word!r}: {pair!r} is not SIZE:N, as in 8K:1000,0:100")
        limits.append(parse_size(size))
        counts.append(_iterations(count))
    used = limits[:-1]  # the last count is for everything larger
    if any(a >= b for a, b in pairwise(used)) or (limits[-1] and limits[-1] <= used[-1]):
        ordered = sorted(set(used))
        raise UsageError(f"iterations {word!r}: sizes must ascend ({', '.join(map(str, ordered))}), the last may be 0")
    return Iterations(tuple(used), tuple(counts))


def parse_warmup(text: str) -> int:
    """Warm-up iterations, 0 or more. Raises UsageError."""
    return parse_count(text.strip(), "warm-up", 0, MAX_COUNT)


def _iterations(text: str) -> int:
    word = text.strip()
    malformed = f"{word!r} is not a number of iterations: write auto, omb or a whole number"
    return parse_count(word, "iterations", 1, MAX_COUNT, malformed)


def parse_root(text: str) -> int:
    """Root of ``-k``: ``fixed:N`` is N, ``rotate`` is -1, another root in every iteration.

    >>> parse_root("fixed:3"), parse_root("rotate")
    (3, -1)

    Raises:
        UsageError: neither.
    """
    kind, colon, number = text.strip().lower().partition(":")
    if kind == "rotate" and not colon:
        return -1
    if kind == "fixed":
        return parse_count(number or "0", "root rank", 0, MAX_COUNT)
    raise UsageError(f"root {text!r}: write fixed:N, as fixed:0, or rotate")


MOST_COUNTS = 128
"""Threads or processes on a side, as in OMB."""


def parse_counts(text: str, sender: int) -> str:
    """Threads or processes on the two sides, ``R`` or ``S:R``, each 1 to 128, as ``S:R``.

    Args:
        text: what was given.
        sender: S where only R is given.

    Raises:
        UsageError: another form, or a number out of range.
    """
    counts = [digits_of(part.strip()) for part in text.split(":")]
    if len(counts) > 2 or not all(count and count <= MOST_COUNTS for count in counts):
        raise UsageError(f"{text!r} is not of the form R or S:R with numbers from 1 to {MOST_COUNTS}, as 1:2")
    return ":".join(map(str, counts if len(counts) == 2 else [sender, *counts]))


def parse_percentiles(text: str) -> tuple[float, ...]:
    """Percentiles for ``-z``: ``50,99.9``; nothing means 50, 90 and 99. Above 0, at most 100, any number of them.

    >>> parse_percentiles("50,99.9")
    (50, 99.9)

    Raises:
        UsageError: out of range, twice, or not numbers.
    """
    word = text.strip()
    if not word:
        return DEFAULT_PERCENTILES
    values: list[float] = []
    for part in word.split(","):
        if not _PERCENTILE.fullmatch(part.strip()) or not 0 < float(part) <= 100:
            raise UsageError(f"percentile {part.strip()!r}: numbers above 0 and up to 100, as in -z50,90,99.9")
        value = float(part)
        if value in values:
            raise UsageError(f"percentiles {word!r}: {value:.12g} is listed twice")
        values.append(int(value) if value.is_integer() else value)
    return tuple(values)


def parse_tags(texts: Iterable[str], what: str = "tag", form: str = "K=V", option: str = "--tag") -> dict[str, str]:
    """Tags ``K=V``, in the order given; a value may be empty and may hold ``=``. Raises UsageError.

    Args:
        texts: the words.
        what: what they are called, in messages.
        form: how they are written, in messages.
        option: the option that takes them.
    """
    tags: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UsageError(f"{what} {text!r} is not {form}, as in {option} {(key or 'cluster')}=value")
        if key in tags:
            raise UsageError(f"{what} {key!r} is given twice")
        tags[key] = value.strip()
    return tags


_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "m": 60.0, "min": 60.0, "h": 3600.0}
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_DAYS = {"": 1, "d": 1, "w": 7, "m": 30, "y": 365}
_MAX_DAYS = 36_500


def parse_duration(text: str) -> float:
    """Seconds of a positive duration: ``30``, ``2m``, ``500ms``, ``1h``. A bare number is seconds.

    >>> parse_duration("2m"), parse_duration("500ms")
    (120.0, 0.5)

    Raises:
        UsageError: zero, negative, an unknown unit, or not a number.
    """
    word = text.strip()
    match = _NUMBER_AND_UNIT.fullmatch(word)
    if match is None or (match[2] and not (match[2].isascii() and match[2].isalpha())):
        raise UsageError(f"{word!r} is not a duration: write 30, 500ms, 2m or 1h (a bare number is seconds)")
    number, unit = float(match[1]), match[2]
    if number <= 0:
        raise UsageError(f"a duration must be greater than 0, not {word}")
    if unit.lower() not in _SECONDS:
        raise UsageError(f"{word!r} is not a duration: {nearest(unit, filter(None, _SECONDS))}")
    seconds = number * _SECONDS[unit.lower()]
    if seconds >= 1e9:
        raise UsageError(f"duration {word!r} is too long")
    return seconds


def duration_text(seconds: float) -> str:
    """Write a duration as ``40 s``, ``3 min 20 s`` or ``2 h 5 min``.

    >>> duration_text(39.6), duration_text(200), duration_text(7500)
    ('40 s', '3 min 20 s', '2 h 5 min')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole < 600 and whole % 60 else f"{round(whole / 60)} min"
    minutes = round(whole / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def parse_nanoseconds(text: str) -> float:
    """Nanoseconds of a time of 0 or more, with its unit: ``1.5us``, ``0.1ns``.

    >>> parse_nanoseconds("1.5us")
    1500.0

    Raises:
        UsageError: no number, negative, or no unit of time.
    """
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match is None or match[2] not in _NANOSECONDS or not 0 <= float(match[1]) <= MAX_NUMBER:
        raise UsageError(f"{text!r} is not a time: write 0.1ns, 2us, 5ms or 1s")
    return float(match[1]) * _NANOSECONDS[match[2]]


def parse_age(text: str) -> timedelta:
    """An age in days: ``30d``, ``6w``, ``3m`` (of 30 days), ``1y``; a bare number is days. Raises UsageError."""
    match = _NUMBER_AND_UNIT.fullmatch(text.strip().lower())
    count = digits_of(match[1]) if match else None
    if match is None or count is None or match[2] not in _DAYS or count * _DAYS[match[2]] > _MAX_DAYS:
        raise UsageError(f"{text!r} is not an age: write days as 30d, or 6w, 3m, 1y")
    return timedelta(days=count * _DAYS[match[2]])


def _fraction(word: str) -> float | None:
    """The fraction that a number or a percentage writes; None for any other text."""
    try:
        return float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    except ValueError:
        return None


def parse_fraction(text: str) -> float:
    """A fraction between 0 and 1, as ``0.01`` or ``1%``. Raises UsageError."""
    word = text.strip()
    value = _fraction(word)
    if value is None:
        raise UsageError(f"{word!r} is not a fraction: write 0.01 or 1%")
    if not 0 < value < 1:
        raise UsageError(f"{word} is not between 0 and 1: write 0.01 or 1%")
    return value


def parse_imbalance(text: str) -> float:
    """A fraction from 0 to 1, both included, as ``0.5`` or ``50%``. Raises UsageError."""
    word = text.strip()
    value = _fraction(word)
    if value is None or not 0 <= value <= 1:
        raise UsageError(f"imbalance {word!r} is not between 0 and 1: write 0.5 or 50%")
    return value


Dimension = Literal["time", "rate", "share"]
UNITS: Mapping[Dimension, Mapping[str, float]] = {
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
"""Dimension -> unit -> its worth in µs, MB/s or %. Rates are decimal, as everywhere in this field."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit."""

    value: float
    """The number in µs, MB/s or %, by its dimension."""
    dimension: Dimension
    text: str
    """The quantity as the user wrote it."""


def parse_quantity(text: str) -> Quantity:
    """A time, a rate or a share: ``2.5 us``, ``12 GB/s``, ``5 %``. A bound needs its unit: none is assumed.

    >>> parse_quantity("12 GB/s").value
    12000.0

    Raises:
        UsageError: no number, no unit or an unknown one (with the nearest), or a number that cannot be: negative, or 0
            of anything but a share.
    """
    word = text.strip()
    match = _NUMBER_AND_UNIT.fullmatch(word)
    if match is None:
        raise UsageError(f"{word!r} is no quantity: write a number and a unit, as 5 us, 12 GB/s or 5 %")
    number, unit = float(match[1]), match[2]
    dimensions = {name: dimension for dimension, names in UNITS.items() for name in names}
    if not unit:
        raise UsageError(f"{word!r} has no unit: {', '.join(name for name in dimensions if name != 'µs')}")
    if unit not in dimensions:
        raise UsageError(f"unknown unit {unit!r} in {word!r}: {_nearest_unit(unit, dimensions)}")
    dimension = dimensions[unit]
    value = number * UNITS[dimension][unit]
    if number < 0 or not math.isfinite(value):
        raise UsageError(f"{word!r} is no bound: it must be a number of 0 or more")
    if value == 0 and dimension != "share":
        raise UsageError(f"{word!r} is no bound: every {dimension} is more than 0")
    return Quantity(value, dimension, word)


def _nearest_unit(unit: str, units: Iterable[str]) -> str:
    by_lower_case = {name.lower(): name for name in units}
    same = by_lower_case.get(unit.lower())
    return f"did you mean {same}?" if same else nearest(unit, units)


def parse_share(text: str, least: float = 0.0, most: float = math.inf) -> float:
    """A share such as ``5%``, as a fraction. Raises UsageError as :func:`parse_quantity`, and outside `least` … `most`.

    >>> parse_share("5 %")
    0.05
    """
    quantity = parse_quantity(text)
    if quantity.dimension != "share":
        raise UsageError(f"{quantity.text!r} is no share: write it as 5%")
    share = quantity.value / 100
    if not least <= share <= most:
        reach = f"{100 * least:g}% to {100 * most:g}%" if math.isfinite(most) else f"{100 * least:g}% or more"
        raise UsageError(f"{quantity.text!r} is out of range: {reach}")
    return share


def four_digits(number: float) -> str:
    """A number with at least four significant digits and no exponent."""
    digits = 3 - math.floor(math.log10(abs(number))) if number else 2
    text = f"{number:.{min(max(digits, 0), 12)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"

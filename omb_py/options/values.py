"""The small languages of the command line: sizes, iteration counts, percentiles, tags, durations.

Pure functions of the standard library. Each raises :class:`~omb_py.errors.UsageError` with one line that says the
rule and, where there is one, the nearest valid form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from omb_py.errors import UsageError, nearest

MAX_BYTES = 2**62
"""No message size is larger than this, in bytes."""
MAX_COUNT = 2**40
"""No iteration or warm-up count is larger than this."""
MAX_PERCENTILES = 5
"""OMB prints at most five percentiles."""
DEFAULT_PERCENTILES = (50, 90, 99)
"""What a bare ``-z`` means."""

_UNITS = {"": 0, "B": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"(\d+)(?:\^(\d+))?\s*([A-Za-z]*)", re.ASCII)
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]*)", re.ASCII)
_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "m": 60.0, "min": 60.0, "h": 3600.0}


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
    if prefix not in _UNITS or (power and unit):
        hint = "write 2^20 without a unit" if power else nearest(unit, ["K", "M", "G", "T", "KiB", "MiB", "GiB"])
        raise UsageError(f"{word!r} is not a message size: {hint}")
    # The lengths are checked first, so that no huge power is ever computed.
    if len(digits) > 19 or (power and (len(power) > 3 or int(power) > 62)):
        raise UsageError(f"message size {word!r} is too large: at most 2^62 bytes")
    value = int(digits) ** int(power) if power else int(digits) << _UNITS[prefix]
    if value > MAX_BYTES:
        raise UsageError(f"message size {word!r} is too large: at most 2^62 bytes")
    return value


def parse_sizes(text: str | None, minimum: int, maximum: int, zero_ok: bool = False) -> tuple[int, ...]:
    """The message sizes of a sweep, in bytes.

    ============== ===============================================================
    nothing        doubling from `minimum` to `maximum`, the benchmark's own range
    ``MAX, :MAX``  doubling from `minimum` to MAX
    ``MIN:``       doubling from MIN to `maximum`
    ``MIN:MAX``    doubling from MIN to MAX
    ``MIN:MAX:F``  times F at each step
    ``A,B,C``      exactly these, in this order; no size twice
    ============== ===============================================================

    One size alone is ``8:8``. Zero starts a range or stands in a list where `zero_ok`.

    >>> parse_sizes("4:64:4", 1, 1024)
    (4, 16, 64)

    Raises:
        UsageError: MIN > MAX, a factor below 2, a size twice, a zero where it means nothing, or not this form.
    """
    if text is None:
        return _range(minimum, maximum, 2)
    if "," in text:
        return _listed(text, zero_ok)
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
    if parts[0]:
        _refuse_zero(low, zero_ok)
    return _range(low, high, factor)


def _range(low: int, high: int, factor: int) -> tuple[int, ...]:
    sizes, size = [], low
    while size <= high:
        sizes.append(size)
        size = size * factor if size else 1
    return tuple(sizes)


def _factor(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) < 2:
        raise UsageError(f"factor {text!r} of a range of sizes must be a whole number of 2 or more, as in 1:1M:4")
    return int(text)


def _listed(text: str, zero_ok: bool) -> tuple[int, ...]:
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
        _refuse_zero(size, zero_ok)
        if size in sizes:
            raise UsageError(f"message sizes {text!r}: {size} stands there twice")
        sizes.append(size)
    return tuple(sizes)


def _refuse_zero(size: int, zero_ok: bool) -> None:
    if size == 0 and not zero_ok:
        raise UsageError("a message of 0 bytes means nothing in this benchmark: the smallest size is 1")


@dataclass(frozen=True, slots=True)
class Iterations:
    """How many iterations a message size gets; made by :func:`parse_iterations`."""

    limits: tuple[int, ...] = ()
    """Ascending sizes in bytes; bucket k holds sizes up to and with ``limits[k]``, the last bucket the rest."""
    counts: tuple[int, ...] = ()
    """One count a bucket; empty means the benchmark's own counts."""
    exact: bool = True
    """False: a cell may stop early."""

    @property
    def auto(self) -> bool:
        """A cell may stop early."""
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
        return Iterations((), (_count(word, "iterations"),))
    if "," not in word:
        parts = word.split(":")
        if len(parts) == 2:
            raise UsageError(f"iterations {word!r}: a list also needs a count for larger messages: write {word},0:N")
        if len(parts) != 3:
            raise UsageError(f"iterations {word!r}: write auto, omb, N, SIZE:N,…,0:N or SIZE:N:N")
        return Iterations((parse_size(parts[0]),), (_count(parts[1], "iterations"), _count(parts[2], "iterations")))
    return _buckets(word)


def _buckets(word: str) -> Iterations:
    limits, counts = [], []
    for pair in word.split(","):
        size, colon, count = pair.partition(":")
        if not colon or ":" in count:
            raise UsageError(f"iterations {word!r}: {pair!r} is not SIZE:N, as in 8K:1000,0:100")
        limits.append(parse_size(size))
        counts.append(_count(count, "iterations"))
    used = limits[:-1]  # the last count is for everything larger
    if any(a >= b for a, b in pairwise(used)) or (limits[-1] and limits[-1] <= used[-1]):
        ordered = sorted(set(used))
        raise UsageError(f"iterations {word!r}: sizes must ascend ({', '.join(map(str, ordered))}), the last may be 0")
    return Iterations(tuple(used), tuple(counts))


def parse_warmup(text: str) -> int:
    """Warm-up iterations, 0 or more. Raises UsageError."""
    return _count(text.strip(), "warm-up", smallest=0)


def _count(text: str, what: str, smallest: int = 1) -> int:
    word = text.strip()
    if re.fullmatch(r"-\d+", word) or (word.isascii() and word.isdigit() and int(word[:15]) < smallest):
        raise UsageError(f"{what} must be {smallest} or more, not {word}")
    if not (word.isascii() and word.isdigit()):
        extra = ": write auto, omb or a whole number" if what == "iterations" else ": write a whole number"
        raise UsageError(f"{word!r} is not a number of {what}{extra}")
    if len(word) > 15 or int(word) > MAX_COUNT:
        raise UsageError(f"{what} {word} is too large: at most {MAX_COUNT}")
    return int(word)


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
        return _count(number or "0", "root rank", 0)
    raise UsageError(f"root {text!r}: {nearest(kind, ['fixed', 'rotate'])} write fixed:N or rotate")


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
    parts = [part.strip() for part in text.split(":")]
    if len(parts) > 2 or not all(part.isdecimal() and 1 <= int(part) <= MOST_COUNTS for part in parts):
        raise UsageError(f"{text!r} is not of the form R or S:R with numbers from 1 to {MOST_COUNTS}, as 1:2")
    return ":".join(str(int(part)) for part in ([str(sender)] if len(parts) == 1 else []) + parts)


def parse_percentiles(text: str) -> tuple[int, ...]:
    """Percentiles for ``-z``: ``50,99``; nothing means 50, 90 and 99. Whole numbers, 1 to 100, at most five.

    Raises:
        UsageError: out of range, twice, more than five, or not numbers.
    """
    word = text.strip()
    if not word:
        return DEFAULT_PERCENTILES
    values: list[int] = []
    for part in word.split(","):
        digits = part.strip()
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 3 or not 1 <= int(digits) <= 100:
            raise UsageError(f"percentile {digits!r}: whole numbers from 1 to 100, as in -z50,90,99")
        if int(digits) in values:
            raise UsageError(f"percentiles {word!r}: {int(digits)} stands there twice")
        values.append(int(digits))
    if len(values) > MAX_PERCENTILES:
        raise UsageError(f"percentiles {word!r}: at most {MAX_PERCENTILES}, as in OMB")
    return tuple(values)


def parse_tags(texts: Iterable[str]) -> dict[str, str]:
    """Tags ``K=V``, in the order given; a value may be empty and may hold ``=``. Raises UsageError."""
    tags: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UsageError(f"tag {text!r} is not K=V, as in --tag {(key or 'cluster')}=value")
        if key in tags:
            raise UsageError(f"tag {key!r} is given twice")
        tags[key] = value.strip()
    return tags


def parse_duration(text: str) -> float:
    """Seconds of a positive duration: ``30``, ``2m``, ``500ms``, ``1h``. A bare number is seconds.

    >>> parse_duration("2m"), parse_duration("500ms")
    (120.0, 0.5)

    Raises:
        UsageError: zero, negative, an unknown unit, or not a number.
    """
    word = text.strip()
    match = _DURATION.fullmatch(word)
    if match is None:
        if re.fullmatch(r"-[\d.]+\s*[A-Za-z]*", word):
            raise UsageError(f"a duration must be greater than 0, not {word}")
        raise UsageError(f"{word!r} is not a duration: write 30, 500ms, 2m or 1h (a bare number is seconds)")
    number, unit = match.groups()
    if unit.lower() not in _SECONDS:
        raise UsageError(f"{word!r} is not a duration: {nearest(unit, [u for u in _SECONDS if u])}")
    seconds = float(number) * _SECONDS[unit.lower()]
    if seconds <= 0:
        raise UsageError(f"a duration must be greater than 0, not {word}")
    if seconds > 1e9:
        raise UsageError(f"duration {word!r} is too long")
    return seconds


def _part(word: str) -> float | None:
    """A number, or one of percent; None where it is neither."""
    try:
        return float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    except ValueError:
        return None


def parse_fraction(text: str) -> float:
    """A fraction between 0 and 1, as ``0.01`` or ``1%``. Raises UsageError."""
    word = text.strip()
    value = _part(word)
    if value is None:
        raise UsageError(f"{word!r} is not a fraction: write 0.01 or 1%")
    if not 0 < value < 1:
        raise UsageError(f"{word} is not between 0 and 1: write 0.01 or 1%")
    return value


def parse_imbalance(text: str) -> float:
    """A part from 0 to 1, as ``0.5`` or ``50%``. Raises UsageError."""
    word = text.strip()
    value = _part(word)
    if value is None or not 0 <= value <= 1:
        raise UsageError(f"imbalance {word!r} is not between 0 and 1: write 0.5 or 50%")
    return value

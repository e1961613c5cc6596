"""The text that configures the simulation: ``alpha=1us,beta=0.1ns,noise=0.05,hang=2:8:17`` (docs/mock.md)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from omb_py.backends.mock.faults import Fault
from omb_py.errors import UsageError, nearest

_UNITS: Final = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_SIZES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True, slots=True)
class Config:
    """Costs and faults of a simulated machine. Times in nanoseconds."""

    alpha: float = 1000.0
    """Start-up time of a message, ns."""
    beta: float = 0.1
    """Time per byte, ns."""
    gflops: float = 50.0
    """Floating point operations of a matrix product, 10⁹ a second."""
    noise: float = 0.0
    """Standard deviation of the logarithm of each operation's time."""
    launch: float = 0.0
    """Standard deviation of the logarithm of a factor that all operations of a launch share."""
    spike: tuple[float, float] = (0.0, 1.0)
    """(share, factor): this share of the operations takes `factor` times as long."""
    drift: float = 0.0
    """Each launch is slower than the one before by this share."""
    straggler: tuple[tuple[int, float], ...] = ()
    """(rank, ns): added to each timed collective call of the rank."""
    slow: tuple[tuple[int, float], ...] = ()
    """(rank, factor): messages from and to the rank take so many times as long."""
    link: tuple[tuple[int, int, float], ...] = ()
    """(rank, rank, factor): messages between the two do."""
    series: tuple[tuple[float, ...], ...] = ()
    """Times in ns of timed operations by iteration, one list for every rank or one a rank."""
    nodes: int = 1
    eager: int = 65536
    """Messages of more bytes wait for their receive."""
    version: str = "1.0"
    data: str = "auto"
    """Whether bytes are moved: ``on``, ``off``, ``auto``."""
    path: str = "auto"
    """``event``: never use the vectorised path for symmetric programs."""
    flip: tuple[Fault, ...] = ()
    hang: tuple[Fault, ...] = ()
    die: tuple[Fault, ...] = ()

    def ranks_named(self) -> tuple[int, ...]:
        """Ranks that the text names."""
        faults = tuple(f.rank for f in (*self.flip, *self.hang, *self.die))
        ends = tuple(rank for a, b, _ in self.link for rank in (a, b))
        return faults + tuple(rank for rank, _ in (*self.straggler, *self.slow)) + ends


def parse(text: str) -> Config:
    """Read a configuration.

    Args:
        text: ``KEY=VALUE`` separated by commas; "" for the default machine. `flip`, `hang`, `die`, `straggler`,
            `slow` and `link` may come several times.

    Raises:
        UsageError: an unknown key (with the nearest one), a key given twice, or a bad value (with the rule).
    """
    values: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if key not in _PARSERS:
            raise UsageError(f"mock: unknown setting {key!r}: {nearest(key, _PARSERS)}")
        if not equals or not value:
            raise UsageError(f"mock: {key} needs a value, {key}={_FORMS[key]}")
        try:
            parsed = _PARSERS[key](value)
        except ValueError:
            raise UsageError(f"mock: {key}={value!r} is not of the form {key}={_FORMS[key]}") from None
        if key in _REPEATED:
            values[key] = (*values.get(key, ()), parsed)
        elif key in values:
            raise UsageError(f"mock: {key} is given twice")
        else:
            values[key] = parsed
    return Config(**values)


def _number(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(text)
    return value


def _rate(text: str) -> float:
    value = _number(text)
    if not value:
        raise ValueError(text)
    return value


def _share(text: str) -> float:
    value = _number(text)
    if value > 1:
        raise ValueError(text)
    return value


def _signed(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value > -1):
        raise ValueError(text)
    return value


def _time(text: str) -> float:
    """Nanoseconds; the unit must be there."""
    found = re.fullmatch(r"([0-9.eE+-]+)\s*(ns|us|ms|s)", text)
    if not found:
        raise ValueError(text)
    return _number(found[1]) * _UNITS[found[2]]


def _natural(text: str) -> int:
    if not re.fullmatch(r"\d+", text):
        raise ValueError(text)
    return int(text)


def _nodes(text: str) -> int:
    value = _natural(text)
    if value < 1:
        raise ValueError(text)
    return value


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([kmg]?)(?:i?b)?", text.lower())
    if not found:
        raise ValueError(text)
    return int(found[1]) * _SIZES[found[2]]


def _spike(text: str) -> tuple[float, float]:
    share, _, factor = text.partition(":")
    return _share(share), _number(factor)


def _straggler(text: str) -> tuple[int, float]:
    rank, _, delay = text.partition(":")
    return _natural(rank), _time(delay)


def _slow(text: str) -> tuple[int, float]:
    rank, _, factor = text.partition(":")
    return _natural(rank), _number(factor)


def _link(text: str) -> tuple[int, int, float]:
    ends, _, factor = text.partition(":")
    a, _, b = ends.partition("-")
    if _natural(a) == _natural(b):
        raise ValueError(text)
    return _natural(a), _natural(b), _number(factor)


def _series(text: str) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(_time(item) for item in row.split("/")) for row in text.split(":"))


def _fault(text: str) -> Fault:
    rank, *rest = text.split(":")
    if len(rest) > 2:
        raise ValueError(text)
    size, iteration = (*rest, "", "")[:2]
    return Fault(_natural(rank), _size(size) if size else None, _natural(iteration) if iteration else None)


def _one_of(*words: str) -> Callable[[str], str]:
    def parser(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return parser


_FAULT_FORM = "RANK[:SIZE[:ITERATION]], as 2:8:17 or 2::17"
_TABLE: Final[tuple[tuple[str, Callable[[str], Any], str], ...]] = (
    ("alpha", _time, "TIME, as 1us"),
    ("beta", _time, "TIME for a byte, as 0.1ns"),
    ("gflops", _rate, "NUMBER above 0, as 50"),
    ("noise", _number, "NUMBER of 0 or more, as 0.05"),
    ("launch", _number, "NUMBER of 0 or more, as 0.1"),
    ("spike", _spike, "SHARE:FACTOR, as 0.03:10"),
    ("drift", _signed, "SHARE a launch, as 0.01"),
    ("straggler", _straggler, "RANK:TIME, as 3:2us"),
    ("slow", _slow, "RANK:FACTOR, as 3:1.06"),
    ("link", _link, "RANK-RANK:FACTOR, as 2-5:3"),
    ("series", _series, "TIME/TIME/…, one list or one a rank with ':' between, as 10us/12us:20us/22us"),
    ("nodes", _nodes, "COUNT of 1 or more"),
    ("eager", _size, "BYTES, as 64K"),
    ("version", str, "TEXT, as 1.0"),
    ("data", _one_of("on", "off", "auto"), "on|off|auto"),
    ("path", _one_of("auto", "event"), "auto|event"),
    ("flip", _fault, _FAULT_FORM),
    ("hang", _fault, _FAULT_FORM),
    ("die", _fault, _FAULT_FORM),
)
_PARSERS: Final = {key: parser for key, parser, _ in _TABLE}
_FORMS: Final = {key: form for key, _, form in _TABLE}
_REPEATED: Final = frozenset({"flip", "hang", "die", "straggler", "slow", "link"})

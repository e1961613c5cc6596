"""The text of a workload, ``NAME:KEY=VALUE,…``: what keys a family has, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from omb_py.engine.program.dtypes import parse_dtype
from omb_py.errors import UsageError, nearest
from omb_py.options.values import parse_duration, parse_size
from omb_py.suites.workloads.models import NAMES, model, transformer

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """A key of a workload."""

    default: str
    about: str
    read: Callable[[str], Any]
    """Raises UsageError."""
    travels: Callable[[str], str] | None = None
    """The text as it is passed on to ranks, where it names a file here."""


def _whole(text: str, smallest: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16) or int(text) < smallest:
        raise UsageError(f"{text!r} is not a whole number from {smallest} on")
    return int(text)


def _number(text: str, smallest: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not smallest <= value < 1e18:
        raise UsageError(f"{text!r} is not a number from {smallest:g} on")
    return value


def _scale(text: str) -> float:
    top, slash, bottom = text.partition("/")
    value = _number(top, 0) / max(_number(bottom, 0), 1e-18) if slash else _number(text, 0)
    if not 0 < value <= 1:
        raise UsageError(f"{text!r} is not a share of the sizes: write 1/64, or a number up to 1")
    return value


def _word(text: str, words: tuple[str, ...]) -> str:
    if text not in words:
        raise UsageError(f"{text!r}: {nearest(text, words)}")
    return text


@dataclass(frozen=True, slots=True)
class Computing:
    """How long a step computes."""

    ns: int
    shared: bool = False
    """It is what all ranks together compute."""
    products: bool = False
    """Not a time but real matrix products, as long as they take."""

    def of(self, ranks: int) -> int:
        """The ns of one rank."""
        return self.ns // ranks if self.shared else self.ns


def _compute(text: str) -> Computing | None:
    if text == "auto":
        return None
    if text == "matmul":
        return Computing(0, products=True)
    if text.isalpha():
        raise UsageError(f"{text!r} is no time, as 5ms: {nearest(text, ('auto', 'matmul'))}")
    return Computing(round(parse_duration(text.removesuffix("/n")) * 1e9), text.endswith("/n"))


def _order(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split("-")))


def whole(default: int, about: str, smallest: int = 1) -> Setting:
    """A whole number."""
    return Setting(str(default), about, partial(_whole, smallest=smallest))


def number(default: float, about: str, smallest: float = 0.0) -> Setting:
    """A number."""
    return Setting(f"{default:g}", about, partial(_number, smallest=smallest))


def word(default: str, about: str, *words: str) -> Setting:
    """One of some words."""
    return Setting(default, f"{about}: {', '.join(words)}", partial(_word, words=words))


def size(default: str, about: str) -> Setting:
    """Bytes."""
    return Setting(default, about, parse_size)


def order(default: str, about: str) -> Setting:
    """Names of dimensions, with dashes between them."""
    return Setting(default, about, _order)


def any_model(default: str) -> Setting:
    """A model by name."""
    return Setting(default, f"the model: {', '.join(NAMES)}", model)


def attention_model(default: str) -> Setting:
    """A model with layers of attention."""
    return Setting(default, "the model, one with layers of attention", lambda text: (model(text), transformer(text))[0])


COMMON: Final[Mapping[str, Setting]] = {
    "scale": Setting("1", "all sizes are multiplied by it, as 1/64, to fit a small machine", _scale),
    "compute": Setting(
        "auto",
        "time of the step's computing: 5ms; 5ms/n: of all ranks together; auto: as long as all calls take one "
        "by one; matmul: real matrix products of the layers' sizes, as long as they take",
        _compute,
    ),
}
"""Keys of every family."""
FLOATS: Final = ("float32", "bfloat16", "float16", "float64")


def dtype(default: str) -> Setting:
    """The element type."""
    return Setting(default, f"element type: {', '.join(FLOATS)}", lambda text: _word(parse_dtype(text), FLOATS))


def read(name: str, known: Mapping[str, Setting], text: str) -> tuple[dict[str, Any], str]:
    """The values of all keys, and the settings that were given, in the form that travels.

    Args:
        name: of the family, for messages.
        known: its keys.
        text: ``KEY=VALUE`` with commas between.

    Raises:
        UsageError: an unknown key (with the nearest), one given twice, a bad value.
    """
    given: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if key not in known:
            raise UsageError(f"workload {name}: unknown setting {key!r}: {nearest(key, known)}")
        if not equals or not value:
            raise UsageError(f"workload {name}: {key} needs a value, as {key}={known[key].default or '…'}")
        if key in given:
            raise UsageError(f"workload {name}: {key} is given twice")
        travels = known[key].travels
        given[key] = travels(value) if travels else value
    values: dict[str, Any] = {}
    for key, setting in known.items():
        try:
            values[key] = setting.read(given.get(key, setting.default))
        except UsageError as error:
            raise UsageError(f"workload {name}: {key}: {error}") from None
    return values, ",".join(f"{key}={given[key]}" for key in known if key in given)

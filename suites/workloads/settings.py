"""The settings in the text of a workload, ``NAME:KEY=VALUE,…``: kinds of keys, and how their values are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from omb_py.engine.program.dtypes import parse_dtype
from omb_py.errors import UsageError, nearest
from omb_py.grammar.key_values import Key, KeyValues
from omb_py.grammar.values import parse_duration, parse_number, parse_size, parse_whole, parse_word
from omb_py.suites.workloads.models import CUSTOM_KEYS, NAMES, model, transformer

Values = Mapping[str, Any]


def _scale(text: str) -> float:
    top, slash, bottom = text.partition("/")
    value = parse_number(top) / max(parse_number(bottom), 1e-18) if slash else parse_number(text)
    if not 0 < value <= 1:
        raise UsageError(f"{text!r} is not a share of the sizes: write 1/64, or a number up to 1")
    return value


@dataclass(frozen=True, slots=True)
class Computing:
    """The computing of a step."""

    ns: int
    """Time in ns."""
    shared: bool = False
    """Whether `ns` is the time of all ranks together."""
    products: bool = False
    """Whether real matrix products are computed instead, as long as they take."""

    def of(self, ranks: int) -> int:
        """Time of one of so many ranks in ns."""
        return self.ns // ranks if self.shared else self.ns


def _compute(text: str) -> Computing | None:
    if text == "auto":
        return None
    if text == "matmul":
        return Computing(0, products=True)
    if text.isalpha():
        raise UsageError(f"{text!r} is no time, as 5ms: {nearest(text, ('auto', 'matmul'))}")
    return Computing(round(parse_duration(text.removesuffix("/n")) * 1e9), text.endswith("/n"))


@dataclass(frozen=True, slots=True)
class Slow:
    """A rank whose computing takes `factor` times as long as that of the others."""

    rank: int
    factor: float

    def of(self, rank: int) -> float:
        """The factor of a rank."""
        return self.factor if rank == self.rank else 1.0


def _slow(text: str) -> Slow | None:
    if text == "off":
        return None
    rank, colon, factor = text.partition(":")
    if not colon:
        raise UsageError(f"{text!r}: write RANK:FACTOR, as 3:2.5, or off")
    return Slow(parse_whole(rank, least=0), parse_number(factor, least=1.0))


def _order(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split("-")))


MOST_EXPERTS: Final = 1 << 16


def whole(default: int, about: str, smallest: int = 1, most: int = 0) -> Key:
    """A key whose value is a whole number; `about` is its help, `most` 0: any."""
    if not most:
        return Key(partial(parse_whole, least=smallest), str(default), about)
    error = "{text!r} is not a whole number from {least} to {most}"
    return Key(partial(parse_whole, least=smallest, most=most, error=error), str(default), about)


def number(default: float, about: str, smallest: float = 0.0) -> Key:
    """A key whose value is a number."""
    return Key(partial(parse_number, least=smallest), f"{default:g}", about)


def word(default: str, about: str, *words: str) -> Key:
    """A key whose value is one of some words."""
    return Key(partial(parse_word, words=words), default, f"{about}: {', '.join(words)}")


def duration(about: str) -> Key:
    """A key whose value is a time in seconds; 0: none."""
    return Key(lambda text: 0.0 if text == "0" else parse_duration(text), "0", about)


def size(default: str, about: str) -> Key:
    """A key whose value is a size in bytes."""
    return Key(parse_size, default, about)


def order(default: str, about: str) -> Key:
    """A key whose value is names of dimensions, with dashes between them."""
    return Key(_order, default, about)


_SHAPED: Final = "custom:layers=24,hidden=1024 with " + ", ".join(sorted(CUSTOM_KEYS - {"layers", "hidden"}))


def any_model(default: str) -> Key:
    """A key whose value is the name of a model."""
    return Key(model, default, f"the model: {', '.join(NAMES)}, {_SHAPED}", takes=CUSTOM_KEYS)


def attention_model(default: str) -> Key:
    """A key whose value is the name of a model with layers of attention."""
    about = f"the model, one with layers of attention, or {_SHAPED}"
    return Key(lambda text: (model(text), transformer(text))[0], default, about, takes=CUSTOM_KEYS)


COMMON: Final[Mapping[str, Key]] = {
    "scale": Key(_scale, "1", "all sizes are multiplied by it, as 1/64, to fit a small machine"),
    "compute": Key(
        _compute,
        "auto",
        "time of the step's computing: 5ms; 5ms/n: of all ranks together; auto: as long as all calls take one "
        "by one; matmul: real matrix products of the layers' sizes, as long as they take",
    ),
    "slow": Key(_slow, "off", "a slow rank, as 3:2.5: the computing of rank 3 takes 2.5 times as long"),
}
"""Keys of every family."""
FLOATS: Final = ("float32", "bfloat16", "float16", "float64")


def dtype(default: str) -> Key:
    """A key whose value is an element type."""
    return Key(lambda text: parse_word(parse_dtype(text), FLOATS), default, f"element type: {', '.join(FLOATS)}")


def grammar(name: str, keys: Mapping[str, Key]) -> KeyValues:
    """The reader of the settings ``KEY=VALUE,…`` of a workload or a model."""
    return KeyValues(keys, prefix=f"workload {name}: ")

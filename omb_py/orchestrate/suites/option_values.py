"""The options of the command line, as suites use them: what they are called, and how a TOML value becomes theirs.

The command line makes them out of its own options (:mod:`omb_py.cli.suite_options`), so that an option that is added
there can be used in a suite at once, with the same name and the same grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.suites.toml_values import Setting, kind

Values = Mapping[str, Any]
"""Key -> value as the command line's parser makes it; None is as if it were not given."""

_WANTED = "expected a text, a number or a list of them"


@dataclass(frozen=True, slots=True)
class Key:
    """An option of the command line, as a suite may give it."""

    name: str
    """Its long name without the dashes."""
    parse: Callable[[str], Any]
    """Reads the text of one value; raises UsageError."""
    scope: Literal["cell", "run", "line"] = "cell"
    """It may differ from entry to entry, or holds for a whole run, or belongs to the command line alone."""
    fits: bool = True
    """The benchmark takes it."""
    bare: Any = None
    """The value that ``true`` means; None where a text or a number is needed."""
    text: bool = True
    """It takes a text or a number; else only true and false."""
    repeats: bool = False
    """It may be given several times; `parse` then reads one of them, and values are tuples."""


class Vocabulary(Protocol):
    """The command line, as far as suites need it."""

    def keys(self, benchmark: Benchmark) -> Mapping[str, Key]:
        """The options of a benchmark by name."""

    def request(self, benchmark: Benchmark, values: Values) -> Request:
        """The request that these options make. Raises UsageError."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One value of a key, and where it was given; None: on the command line."""

    key: str
    value: Any
    text: str
    at: Setting | None = None


def choose(setting: Setting, key: Key) -> list[Chosen]:
    """The values of a setting, each read by the command line's parser; a list is one alternative after the other.

    Raises UsageError, with the setting's file and line.
    """
    value = setting.value
    if key.scope == "run":
        if key.repeats:
            values = tuple(_read(setting, key, each) for each in setting.values)
            return [Chosen(setting.key, values, kind(value), setting)]
        if isinstance(value, list):
            raise setting.error("expected one value: it holds for the whole suite")
    if value == []:
        raise setting.error("expected at least one value, got an empty list")
    chosen: list[Chosen] = []
    for each in setting.values:
        read = _read(setting, key, each)
        read = (read,) if key.repeats and read is not None else read
        if any(read == other.value for other in chosen):
            raise setting.error(f"{kind(each)} stands there twice")
        chosen.append(Chosen(setting.key, read, each if isinstance(each, str) else kind(each), setting))
    return chosen


def _read(setting: Setting, key: Key, value: Any) -> Any:
    if isinstance(value, bool):
        if key.bare is None:
            raise setting.error(f"{_WANTED}, got {kind(value)}")
        return key.bare if value else None
    if not key.text:
        raise setting.error(f"expected true or false, got {kind(value)}")
    if not isinstance(value, (str, int, float)):
        raise setting.error(f"{_WANTED}, got {kind(value)}")
    try:
        return key.parse(str(value))
    except UsageError as error:
        raise setting.error(str(error)) from None

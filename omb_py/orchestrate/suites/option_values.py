"""The options that a suite may give, and the values that TOML gives them.

The command line makes this list from its own options (:mod:`omb_py.cli.suite_options`), so a new option works in suites
at once, with the same name and the same grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.suites.toml_values import TomlSetting, kind

Values = Mapping[str, object]
"""Key -> value as the command line's parser returns it; None means not given."""

_WANTED = "expected a text, a number or a list of them"


@dataclass(frozen=True, slots=True)
class OptionKey:
    """An option of the command line that a suite may give."""

    name: str
    """The long name of the option without the dashes."""
    parse: Callable[[str], object]
    """The reader of one value's text; it raises UsageError."""
    scope: Literal["cell", "run", "line"] = "cell"
    """``cell``: may differ from entry to entry; ``run``: holds for a whole run; ``line``: not for suites."""
    fits: bool = True
    """True if the benchmark takes the option."""
    bare: object = None
    """The value that ``true`` stands for; None if the option needs a text or a number."""
    text: bool = True
    """False if the option takes only true and false."""
    repeats: bool = False
    """True if the option may be given several times: `parse` reads one value, and values are tuples."""


class Vocabulary(Protocol):
    """The part of the command line that suites need."""

    def keys(self, benchmark: Benchmark) -> Mapping[str, OptionKey]:
        """Return the options of a benchmark by name."""

    def request(self, benchmark: Benchmark, values: Values) -> Request:
        """Make a request from these options. Raises UsageError."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One value of a key."""

    key: str
    value: object
    text: str
    at: TomlSetting | None = None
    """The place in the file; None if the value was given on the command line."""


def choose(setting: TomlSetting, key: OptionKey) -> list[Chosen]:
    """Read the values of a setting with the command line's parser; a list gives alternatives.

    Raises:
        UsageError: a value is refused; the message has the setting's file and line.
    """
    value = setting.value
    if key.scope == "run":
        if key.repeats:
            values = tuple(_read(setting, key, element) for element in setting.values)
            return [Chosen(setting.key, values, kind(value), setting)]
        if isinstance(value, list):
            raise setting.error("expected one value: it holds for the whole suite")
    if value == []:
        raise setting.error("expected at least one value, got an empty list")
    chosen: list[Chosen] = []
    for element in setting.values:
        value = _read(setting, key, element)
        value = (value,) if key.repeats and value is not None else value
        if any(value == other.value for other in chosen):
            raise setting.error(f"{kind(element)} is listed twice")
        chosen.append(Chosen(setting.key, value, element if isinstance(element, str) else kind(element), setting))
    return chosen


def _read(setting: TomlSetting, key: OptionKey, value: object) -> object:
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

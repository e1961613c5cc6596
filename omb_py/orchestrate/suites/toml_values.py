"""Values of a suite's TOML file with their line numbers, and readers by type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from omb_py.errors import UsageError, nearest

T = TypeVar("T")


class LocatedError(UsageError):
    """A suite's file is wrong; the message begins with the file and the line."""


class Located:
    """Part of a suite's file that knows its line."""

    __slots__ = ()
    file: str
    line: int

    @property
    def where(self) -> str:
        """Name of the place in messages."""
        raise NotImplementedError

    def error(self, text: str) -> LocatedError:
        """Return an error about this place, in one line."""
        return LocatedError(f"{self.file}:{self.line}: {self.where}: {text}")


@dataclass(frozen=True, slots=True)
class TomlSetting(Located):
    """A key of the file and its value."""

    key: str
    value: Any
    """The value as TOML gives it; None if a required key is missing."""
    file: str
    line: int
    place: str
    """``[defaults]`` or ``[entry 2]``; empty at the top of the file."""

    @property
    def where(self) -> str:
        """``[entry 2] key 'ranks'``."""
        return f"{self.place} key {self.key!r}".strip()

    @property
    def values(self) -> list[Any]:
        """The elements of a list, or the single value in a list."""
        return self.value if isinstance(self.value, list) else [self.value]


@dataclass(frozen=True, slots=True)
class TomlTable(Located):
    """A table of the file, with its settings in the order of the file."""

    place: str
    """``[accept]`` or ``[criterion 2]``."""
    file: str
    line: int
    settings: tuple[TomlSetting, ...]

    @property
    def where(self) -> str:
        """``[criterion 2]``."""
        return self.place

    def by_key(self, known: Iterable[str]) -> dict[str, TomlSetting]:
        """Return the settings by key. Raises LocatedError, with the nearest key, where one is not among `known`."""
        for setting in self.settings:
            if setting.key not in known:
                raise setting.error(unknown_key(setting.key, known))
        return {setting.key: setting for setting in self.settings}


def read(settings: Mapping[str, TomlSetting], key: str, reader: Callable[[TomlSetting], T], default: T) -> T:
    """Read the value of a key, or return `default` if the key is not given.

    Raises:
        LocatedError: the reader refuses the value.
    """
    if key not in settings:
        return default
    try:
        return reader(settings[key])
    except LocatedError:
        raise
    except UsageError as error:
        raise settings[key].error(str(error)) from None


def text(setting: TomlSetting) -> str:
    """Read a text that is not blank, and strip it. Raises LocatedError."""
    if setting.value is None:
        raise setting.error("missing; it is required")
    if not isinstance(setting.value, str) or not setting.value.strip():
        raise setting.error(f"expected a text, got {kind(setting.value)}")
    return setting.value.strip()


def identifier(setting: TomlSetting) -> str:
    """Read a name of letters, digits and ``. _ + -`` that begins with a letter or digit. Raises LocatedError."""
    name = text(setting)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise setting.error(f"expected letters, digits and . _ + -, got {name!r}")
    return name


def one_of(setting: TomlSetting, words: tuple[str, ...]) -> str:
    """Read one of some words. Raises LocatedError with the nearest."""
    word = text(setting)
    if word not in words:
        raise setting.error(f"{word!r} is unknown: {nearest(word, words)}")
    return word


def whole(setting: TomlSetting, least: int, most: int) -> int:
    """Read a whole number from `least` to `most`. Raises LocatedError."""
    value = setting.value
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise setting.error(f"expected a whole number from {least} to {most}, got {kind(value)}")
    return value


def flag(setting: TomlSetting) -> bool:
    """Read true or false. Raises LocatedError."""
    if not isinstance(setting.value, bool):
        raise setting.error(f"expected true or false, got {kind(setting.value)}")
    return setting.value


def unknown_key(key: str, keys: Iterable[str], what: str = "key") -> str:
    """Say that there is no such key, with the nearest: ``there is no such key: did you mean window-size?``."""
    return f"there is no such {what}: {nearest(key, keys)}"


_KINDS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: str(value).lower()),  # before int, of which bool is a subclass
    (int, str),
    (float, str),
    (str, repr),
    (dict, lambda value: "a table"),
    (list, lambda value: "a list" if value else "an empty list"),
    (type(None), lambda value: "none"),
)


def kind(value: Any) -> str:
    """Describe a TOML value in a message: numbers and texts as they are, other values by their type."""
    return next((describe(value) for known, describe in _KINDS if isinstance(value, known)), "a date or time")

"""A suite as its TOML file says it, read with a schema (docs/suites.md). Nothing in it is evaluated.

Which options there are is not known here: :mod:`omb_py.orchestrate.suites.expand` asks the command line's vocabulary.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from omb_py.errors import UsageError
from omb_py.orchestrate.suites.toml_lines import Path as Place
from omb_py.orchestrate.suites.toml_lines import key_lines
from omb_py.results.store.keys import digest

DEFAULTS = "defaults"
ENTRY = "entry"
ACCEPT = "accept"
CRITERION = "criterion"
_TOP = ("name", "description", DEFAULTS, ENTRY, ACCEPT, CRITERION)
_OF_VERDICTS = ("description", ACCEPT, CRITERION)
"""What says nothing about what is measured."""
MOST = "max"
"""Instead of a number of ranks: as many as there are (docs/suites.md)."""
Ranks = int | Literal["max"]


class _Placed:
    """What stands in a line of the file."""

    __slots__ = ()
    file: str
    line: int

    @property
    def where(self) -> str:
        """What a message calls it."""
        raise NotImplementedError

    def error(self, text: str) -> UsageError:
        """An error about it, in one line."""
        return UsageError(f"{self.file}:{self.line}: {self.where}: {text}")


@dataclass(frozen=True, slots=True)
class Setting(_Placed):
    """A key of the file and its value."""

    key: str
    value: Any
    """As TOML has it."""
    file: str
    line: int
    place: str
    """``[defaults]`` or ``[entry 2]``."""

    @property
    def where(self) -> str:
        """``[entry 2] key 'ranks'``."""
        return f"{self.place} key {self.key!r}"


@dataclass(frozen=True, slots=True)
class Named:
    """A benchmark of an entry."""

    name: str
    at: Setting


@dataclass(frozen=True, slots=True)
class Entry(_Placed):
    """Benchmarks × options × numbers of ranks."""

    number: int
    """From 1."""
    file: str
    line: int
    benchmarks: tuple[Named, ...]
    ranks: tuple[Ranks, ...]
    """``()``: those of the defaults."""
    ranks_at: Setting | None
    options: tuple[Setting, ...]

    @property
    def where(self) -> str:
        """``[entry 2]``."""
        return f"[{ENTRY} {self.number}]"


@dataclass(frozen=True, slots=True)
class Table(_Placed):
    """A table of the file as it stands there: what its keys mean is for others to say."""

    place: str
    """``[accept]`` or ``[criterion 2]``."""
    file: str
    line: int
    settings: tuple[Setting, ...]

    @property
    def where(self) -> str:
        """``[criterion 2]``."""
        return self.place


@dataclass(frozen=True, slots=True)
class Suite:
    """A list of benchmarks with options."""

    name: str
    description: str
    file: str
    defaults: tuple[Setting, ...]
    ranks: tuple[Ranks, ...]
    """Of entries that give none; ``()``: what ``-n`` or the launcher say."""
    entries: tuple[Entry, ...]
    digest: str
    """Hash of all that is measured: not of the description, nor of criteria."""
    accept: Table | None = None
    """How verdicts are made (:mod:`omb_py.orchestrate.accept.criteria_file`)."""
    criteria: tuple[Table, ...] = ()
    """What ``omb-py accept`` asks of the results; ``omb-py run`` passes them over."""


def read_suite(path: Path, shown: str | None = None) -> Suite:
    """Read a suite's file; `shown` is what messages call it.

    Raises:
        UsageError: no such file, no TOML, an unknown key, or a value of the wrong kind: with file, line and key.
    """
    shown = shown or str(path)
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"cannot read suite {shown}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{shown}:{line}: not a TOML file: a byte that is not UTF-8") from None
    return parse_suite(text, shown)


def parse_suite(text: str, file: str) -> Suite:
    """The suite that a TOML text says. Raises UsageError as :func:`read_suite`."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(_syntax(error, text, file)) from None
    return _Reader(data, key_lines(text), file).suite()


def nearest_key(word: str, keys: Iterable[str]) -> str:
    """``unknown, the nearest is 'window-size'``."""
    return f"unknown, the nearest is {difflib.get_close_matches(word, sorted(keys), n=1, cutoff=0.0)[0]!r}"


def _syntax(error: Exception, text: str, file: str) -> str:
    found = re.search(r"^(.*?) \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
    line = int(found[2]) if found and found[2] else text.count("\n") + (not text.endswith("\n"))
    said = found[1] if found else str(error)
    return f"{file}:{line}: not TOML: {said[:1].lower()}{said[1:]}"


class _Reader:
    def __init__(self, data: Mapping[str, Any], lines: Mapping[Place, int], file: str) -> None:
        self.data, self.lines, self.file = data, lines, file

    def suite(self) -> Suite:
        for key in self.data:
            if key not in _TOP:
                what = "table" if isinstance(self.data[key], dict) else "key"
                raise UsageError(f"{self.file}:{self._line((key,))}: {what} {key!r}: " + nearest_key(key, _TOP))
        name = self._text("name")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise self._top("name", f"expected letters, digits and . _ -, got {name!r}")
        defaults = self.data.get(DEFAULTS, {})
        if not isinstance(defaults, dict):
            raise self._top(DEFAULTS, f"expected a table [{DEFAULTS}], got {kind(defaults)}")
        found = self.data.get(ENTRY)
        if not isinstance(found, list) or not found or not all(isinstance(entry, dict) for entry in found):
            told = "none" if found is None else kind(found)
            raise self._top(ENTRY, f"expected at least one table [[{ENTRY}]], got {told}")
        description = self._text("description")
        settings = self._settings((DEFAULTS,), defaults, f"[{DEFAULTS}]")
        ranks = next((_ranks(s) for s in settings if s.key == "ranks"), ())
        entries = tuple(self._entry(index, entry) for index, entry in enumerate(found))
        said = {key: value for key, value in self.data.items() if key not in _OF_VERDICTS}
        rest = tuple(s for s in settings if s.key != "ranks")
        verdicts = self._accept(), self._criteria()
        return Suite(name, description, self.file, rest, ranks, entries, digest(said)[:12], *verdicts)

    def _accept(self) -> Table | None:
        table = self.data.get(ACCEPT)
        if table is None:
            return None
        if not isinstance(table, dict):
            raise self._top(ACCEPT, f"expected a table [{ACCEPT}], got {kind(table)}")
        return self._table((ACCEPT,), table, f"[{ACCEPT}]")

    def _criteria(self) -> tuple[Table, ...]:
        tables = self.data.get(CRITERION, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self._top(CRITERION, f"expected tables [[{CRITERION}]], got {kind(tables)}")
        shown = enumerate(tables, 1)
        return tuple(self._table((CRITERION, n - 1), table, f"[{CRITERION} {n}]") for n, table in shown)

    def _table(self, place: Place, table: Mapping[str, Any], shown: str) -> Table:
        return Table(shown, self.file, self._line(place), self._settings(place, table, shown))

    def _entry(self, index: int, table: Mapping[str, Any]) -> Entry:
        place: Place = (ENTRY, index)
        settings = self._settings(place, table, f"[{ENTRY} {index + 1}]")
        named = {setting.key: setting for setting in settings}
        line = self._line(place)
        if "benchmarks" not in named:
            raise UsageError(
                f"{self.file}:{line}: [{ENTRY} {index + 1}]: no key 'benchmarks': expected a list of names"
            )
        at = named.get("ranks")
        options = tuple(setting for setting in settings if setting.key not in ("benchmarks", "ranks"))
        benchmarks = self._benchmarks(place, named["benchmarks"])
        return Entry(index + 1, self.file, line, benchmarks, _ranks(at) if at else (), at, options)

    def _benchmarks(self, place: Place, setting: Setting) -> tuple[Named, ...]:
        names = setting.value
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise setting.error(f'expected a list of names, as ["latency", "bw"], got {kind(names)}')
        found: dict[str, Named] = {}
        for index, name in enumerate(names):
            line = self._line((*place, "benchmarks", index))
            at = Setting(setting.key, name, self.file, line, setting.place)
            short = name.lower().removeprefix("osu_")
            if short in found:
                raise at.error(f"benchmark {short!r} stands there twice")
            found[short] = Named(short, at)
        return tuple(found.values())

    def _settings(self, place: Place, table: Mapping[str, Any], shown: str) -> tuple[Setting, ...]:
        return tuple(Setting(key, value, self.file, self._line((*place, key)), shown) for key, value in table.items())

    def _text(self, key: str) -> str:
        value = self.data.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self._top(key, f"expected a text, got {'none' if value is None else kind(value)}")
        return value

    def _top(self, key: str, text: str) -> UsageError:
        return UsageError(f"{self.file}:{self._line((key,))}: key {key!r}: {text}")

    def _line(self, place: Place) -> int:
        return self.lines.get(place, 1)


def _ranks(setting: Setting) -> tuple[Ranks, ...]:
    values = setting.value if isinstance(setting.value, list) else [setting.value]
    for value in values:
        if isinstance(value, bool) or not (value == MOST or (isinstance(value, int) and value >= 1)):
            raise setting.error(f"expected whole numbers of 1 or more, or {MOST!r}, got {kind(value)}")
        if values.count(value) > 1:
            raise setting.error(f"{value} stands there twice")
    if not values:
        raise setting.error("expected at least one number of ranks, got an empty list")
    return tuple(values)


_KINDS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: str(value).lower()),
    (int, str),
    (float, str),
    (str, repr),
    (dict, lambda value: "a table"),
    (list, lambda value: "a list" if value else "an empty list"),
)


def kind(value: Any) -> str:
    """A TOML value in a message: as it is, or what it is."""
    return next((tell(value) for known, tell in _KINDS if isinstance(value, known)), "a date or time")

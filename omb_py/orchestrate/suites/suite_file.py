"""Read a suite from its TOML file and check its structure (docs/suites.md). Nothing in the file is evaluated;
:mod:`omb_py.orchestrate.suites.trust` decides what it may start and read.

The names of options are checked later: :mod:`omb_py.orchestrate.suites.expand` asks the command line for them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from omb_py.errors import UsageError
from omb_py.orchestrate.suites import toml_values as toml
from omb_py.orchestrate.suites.node_layout import LAYOUT_KEYS, NodeLayout, read_layout
from omb_py.orchestrate.suites.toml_values import KeyPath, Located, TomlFile, TomlSetting, TomlTable, kind, unknown_key
from omb_py.results.store.keys import digest

DEFAULTS = "defaults"
ENTRY = "entry"
ACCEPT = "accept"
CRITERION = "criterion"
ENTRY_KEYS = ("benchmarks", "ranks", "name", *LAYOUT_KEYS)
"""Keys of an entry that are no options of the command line."""
_TOP = ("name", "description", DEFAULTS, ENTRY, ACCEPT, CRITERION)
_OF_VERDICTS = ("description", ACCEPT, CRITERION)
"""Keys that do not change what is measured, so the digest leaves them out."""
MOST = "max"
"""Stands for a number of ranks: as many as there are (docs/suites.md)."""
Ranks = int | Literal["max"]


@dataclass(frozen=True, slots=True)
class Named:
    """A benchmark of an entry."""

    name: str
    at: TomlSetting


@dataclass(frozen=True, slots=True)
class SuiteEntry(Located):
    """Benchmarks × options × numbers of ranks."""

    number: int
    """Position in the file, from 1."""
    file: str
    line: int
    benchmarks: tuple[Named, ...]
    ranks: tuple[Ranks, ...]
    """``()`` means those of the defaults."""
    ranks_at: TomlSetting | None
    options: tuple[TomlSetting, ...]
    name: str = ""
    """What criteria call it; empty: it has no name."""
    layout: NodeLayout | None = None
    """Where its ranks lie, instead of a number of ranks."""

    @property
    def where(self) -> str:
        """``[entry 2]``."""
        return f"[{ENTRY} {self.number}]"


@dataclass(frozen=True, slots=True)
class Suite:
    """Benchmarks with options, and the criteria by which their results are accepted."""

    name: str
    description: str
    file: str
    defaults: tuple[TomlSetting, ...]
    ranks: tuple[Ranks, ...]
    """Ranks of entries that give none; ``()`` means what ``-n`` or the launcher gives."""
    entries: tuple[SuiteEntry, ...]
    digest: str
    """Hash of what is measured; the description and the criteria are not in it."""
    accept: TomlTable | None = None
    """Rules for verdicts (:mod:`omb_py.orchestrate.accept.criteria_file`)."""
    criteria: tuple[TomlTable, ...] = ()
    """Criteria that ``omb-py accept`` judges; ``omb-py run`` ignores them."""
    word: str = ""
    """What names it on a command line: its file, or the name of a shipped suite."""
    content: str = ""
    """SHA-256 of the whole file, by which it is trusted (:mod:`omb_py.orchestrate.suites.trust`); empty: it comes with
    omb-py."""


def read_suite(path: Path, shown: str | None = None) -> Suite:
    """Read a suite's file.

    Args:
        shown: the name of the file in messages; None: its path.

    Raises:
        UsageError: there is no such file, it is not TOML, a key is unknown, or a value has the wrong kind. The message
            has file, line and key.
    """
    shown = shown or str(path)
    return parse_suite(toml.read_text(path, shown, "suite"), shown)


def parse_suite(text: str, file: str) -> Suite:
    """Read a suite from TOML text. Raises UsageError as :func:`read_suite`."""
    suite = _Reader(TomlFile(text, file)).suite()
    return replace(suite, content=hashlib.sha256(text.encode()).hexdigest())


class _Reader:
    def __init__(self, file: TomlFile) -> None:
        self.file = file
        self.names: dict[str, int] = {}

    def suite(self) -> Suite:
        for key, value in self.file.data.items():
            if key not in _TOP:
                tables = isinstance(value, list) and value and isinstance(value[0], dict)
                what = "table" if tables or isinstance(value, dict) else "key"
                raise UsageError(
                    f"{self.file.file}:{self.file.line((key,))}: {what} {key!r}: {unknown_key(key, _TOP, what)}"
                )
        name = toml.identifier(self.file.key("name"))
        defaults = self.file.table(DEFAULTS)
        entries = self._entries()
        given = self.file.key("description")
        description = "" if given.value is None else toml.text(given)
        settings = defaults.settings if defaults else ()
        ranks = next((_ranks(s) for s in settings if s.key == "ranks"), ())
        measured = {key: value for key, value in self.file.data.items() if key not in _OF_VERDICTS}
        return Suite(
            name,
            description,
            self.file.file,
            tuple(s for s in settings if s.key != "ranks"),
            ranks,
            tuple(self._entry(number, table) for number, table in enumerate(entries, 1)),
            digest(measured)[:12],
            self.file.table(ACCEPT),
            self.file.tables(CRITERION),
            self.file.file,
        )

    def _entries(self) -> tuple[TomlTable, ...]:
        tables = self.file.data.get(ENTRY)
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            raise self.file.key(ENTRY).error(f"expected at least one table [[{ENTRY}]], got {kind(tables)}")
        return self.file.tables(ENTRY)

    def _entry(self, number: int, table: TomlTable) -> SuiteEntry:
        named = {setting.key: setting for setting in table.settings}
        if "benchmarks" not in named:
            raise table.error("no key 'benchmarks': expected a list of names")
        at = named.get("ranks")
        options = tuple(setting for setting in table.settings if setting.key not in ENTRY_KEYS)
        benchmarks = self._benchmarks((ENTRY, number - 1, "benchmarks"), named["benchmarks"])
        name = toml.identifier(named["name"]) if "name" in named else ""
        if name in self.names:
            raise named["name"].error(f"{name!r} is the name of entry {self.names[name]} already")
        if name:
            self.names[name] = number
        ranks, layout = _ranks(at) if at else (), read_layout(named)
        return SuiteEntry(number, table.file, table.line, benchmarks, ranks, at, options, name, layout)

    def _benchmarks(self, place: KeyPath, setting: TomlSetting) -> tuple[Named, ...]:
        names = setting.value
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise setting.error(f'expected a list of names, as ["latency", "bw"], got {kind(names)}')
        benchmarks: dict[str, Named] = {}
        for index, name in enumerate(names):
            at = replace(setting, value=name, line=self.file.line((*place, index)))
            short = name.lower().removeprefix("osu_")
            if short in benchmarks:
                raise at.error(f"benchmark {short!r} is listed twice")
            benchmarks[short] = Named(short, at)
        return tuple(benchmarks.values())


def _ranks(setting: TomlSetting) -> tuple[Ranks, ...]:
    values = setting.values
    for value in values:
        if isinstance(value, bool) or not (value == MOST or (isinstance(value, int) and value >= 1)):
            raise setting.error(f"expected whole numbers of 1 or more, or {MOST!r}, got {kind(value)}")
        if values.count(value) > 1:
            raise setting.error(f"{value} is listed twice")
    if not values:
        raise setting.error("expected at least one number of ranks, got an empty list")
    return tuple(values)

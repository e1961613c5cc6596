"""Read a gate's file: which programs are compared, by which rules, in how much time. Nothing in it is started here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from omb_py.errors import UsageError
from omb_py.grammar.values import parse_duration
from omb_py.orchestrate.compare.session import DEFAULT_LAUNCHES, FEWEST
from omb_py.orchestrate.compare.side_environments import parse_sides
from omb_py.orchestrate.compare.stored import declared_rules
from omb_py.orchestrate.programs.request import ProgramTexts
from omb_py.orchestrate.programs.session import DEFAULT_TIMEOUT_S
from omb_py.orchestrate.suites import toml_values as toml
from omb_py.orchestrate.suites.toml_values import TomlFile, TomlSetting, TomlTable, kind
from omb_py.orchestrate.suites.trust import Demand
from omb_py.results.compare.interleaved import can_show
from omb_py.results.compare.judge import CompareRules

COMMAND = "command"
_TOP = ("name", "launches", "rounds", "delta", "tail-delta", "time-budget", "strict", COMMAND)
_STARTED = ("run", "base", "new")
_OF_COMMAND = ("name", *_STARTED, "read", "metric", "set", "env", "module", "pip", "expect-library", "timeout")


@dataclass(frozen=True, slots=True)
class GateCommand:
    """Two programs, or one under two environments."""

    name: str
    table: TomlTable
    texts: ProgramTexts


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate's file."""

    name: str
    file: str
    content: str
    """SHA-256 of the file: what is trusted."""
    commands: tuple[GateCommand, ...]
    rules: CompareRules
    launches: int
    budget_s: float | None
    """Seconds for all commands together; None: any."""
    strict: bool

    @property
    def demands(self) -> list[Demand]:
        """The lines that start a program, for which the file must be trusted."""
        settings = (setting for command in self.commands for setting in command.table.settings)
        return [
            Demand(setting, str(setting.value), "starts a program") for setting in settings if setting.key in _STARTED
        ]


def read_gate(path: str) -> Gate:
    """Read a gate's file. Raises UsageError with the line that is wrong."""
    text = toml.read_text(Path(path), path, "gate")
    file = TomlFile(text, path)
    top = TomlTable("", path, 1, tuple(file.key(name) for name in file.data if name != COMMAND))
    settings = top.by_key(_TOP)
    commands = [_command(table) for table in file.tables(COMMAND)]
    if not commands:
        raise UsageError(f"{path}: expected at least one table [[{COMMAND}]], got {kind(file.data.get(COMMAND))}")
    for number, command in enumerate(commands):
        if command.name in {earlier.name for earlier in commands[:number]}:
            raise command.table.error(f"there is a command {command.name!r} above: give it another name")
    rules = declared_rules(
        toml.read(settings, "delta", toml.fraction, None),
        toml.read(settings, "tail-delta", toml.fraction, None),
        toml.read(settings, "rounds", lambda at: toml.whole(at, 1, 3), 3),
    )
    # all commands are one report: together they raise a false alarm no more often than one alone
    rules = replace(rules, alpha=rules.alpha / len(commands))
    return Gate(
        toml.read(settings, "name", toml.identifier, Path(path).stem),
        path,
        hashlib.sha256(text.encode()).hexdigest(),
        tuple(commands),
        rules,
        _launches(settings, rules),
        toml.read(settings, "time-budget", lambda at: parse_duration(toml.text(at)), None),
        toml.read(settings, "strict", toml.flag, False),
    )


def _launches(settings: Mapping[str, TomlSetting], rules: CompareRules) -> int:
    """The launches of each side. Raises LocatedError where they are too few to show a change."""
    fewest = next(count for count in range(FEWEST, 200) if can_show(count, rules.alpha, rules.rounds))
    launches = toml.read(settings, "launches", lambda at: toml.whole(at, FEWEST, 1000), max(DEFAULT_LAUNCHES, fewest))
    if launches < fewest:
        raise settings["launches"].error(
            f"{launches} launches cannot show a change with so many commands, which share the chance of a false alarm: "
            f"{fewest} can"
        )
    return launches


def _command(table: TomlTable) -> GateCommand:
    settings = table.by_key(_OF_COMMAND)
    runs = [toml.text(settings["run"])] if "run" in settings else []
    runs += [
        f"{side}: {toml.text(settings[key])}" for side, key in (("BASE", "base"), ("NEW", "new")) if key in settings
    ]
    if "name" not in settings or not runs:
        raise table.error("expected the keys 'name', and 'base' and 'new', or 'run'")

    def texts(key: str) -> Sequence[str]:
        return toml.read(settings, key, _texts, ())

    try:
        sides = parse_sides(texts("env"), texts("module"), texts("set"), (), texts("pip"))
    except UsageError as error:
        raise table.error(str(error)) from None
    timeout_s = toml.read(settings, "timeout", lambda at: parse_duration(toml.text(at)), DEFAULT_TIMEOUT_S)
    tool = toml.read(settings, "read", toml.text, "")
    return GateCommand(
        toml.identifier(settings["name"]),
        table,
        ProgramTexts(runs, tool, texts("metric"), texts("expect-library"), timeout_s, sides),
    )


def _texts(setting: TomlSetting) -> Sequence[str]:
    if not all(isinstance(value, str) for value in setting.values):
        raise setting.error("expected a text or a list of texts")
    return setting.values

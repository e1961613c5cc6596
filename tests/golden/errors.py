"""Bad input: the exit code and the line of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tests.golden import badsuites
from tests.golden.running import Place
from tests.golden.suites import MINE

COMMANDS = Path(__file__).with_name("bad_commands.txt")
"""A command a line, in groups below their names."""


def _groups() -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for line in COMMANDS.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            groups[line.removeprefix("# ")] = lines = []
        else:
            lines.append(line)
    return groups


def files() -> dict[str, Callable[[Place], str]]:
    """Name of a file -> what makes it."""
    refused = {f"errors/{group}.txt": _refused(lines) for group, lines in _groups().items()}
    return {**refused, "errors/suite-files.txt": badsuites.checked}


def _refused(lines: Sequence[str]) -> Callable[[Place], str]:
    def made(place: Place) -> str:
        place.write("mine.toml", MINE)
        place.write("misspelt.toml", MINE.replace("[[criterion]]", "[[criterium]]", 1))
        return place.shown(*lines)

    return made

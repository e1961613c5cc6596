"""From texts, as a command line or a file has them, to a comparison of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omb_py.errors import UsageError
from omb_py.orchestrate.compare.pip_environments import Note
from omb_py.orchestrate.compare.side_environments import SideSpec, where_of
from omb_py.orchestrate.programs.command import SideProgram, parse_commands
from omb_py.orchestrate.programs.exchanged import parse_expected
from omb_py.orchestrate.programs.reading import reading_of
from omb_py.orchestrate.programs.session import DEFAULT_TIMEOUT_S, ProgramsDesign
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.match import SIDES, Side
from omb_py.results.dialects.named_metrics import parse_metric


@dataclass(frozen=True, slots=True)
class ProgramTexts:
    """What is said of two programs, as texts."""

    runs: Sequence[str]
    tool: str = ""
    metrics: Sequence[str] = ()
    expected: Sequence[str] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    sides: Mapping[Side, SideSpec] = field(default_factory=lambda: {side: SideSpec() for side in SIDES})
    """What else is set for a side."""

    def design(self, rules: CompareRules, launches: int, store: Path, note: Note = lambda text: None) -> ProgramsDesign:
        """The comparison.

        Args:
            rules: rules of the verdicts.
            launches: of each side, in each round.
            store: folder of the launches.
            note: called with a sentence before packages are installed.

        Raises:
            UsageError: a text is wrong, or nothing differs between the sides.
            EnvironmentProblem: the environment of a side cannot be made.
        """
        for side, spec in self.sides.items():
            if spec.options:
                raise UsageError(
                    f"--option {side}: …: options of a program stand in its command: --run '{side}: COMMAND'"
                )
        commands = parse_commands(self.runs)
        if commands["BASE"] == commands["NEW"] and self.sides["BASE"] == self.sides["NEW"]:
            raise UsageError(
                "nothing differs between the sides: give each its own --run, or --set, --env, --module or --pip for one"
            )
        reading = reading_of(self.tool, [parse_metric(text) for text in self.metrics])
        expected = parse_expected(self.expected)
        programs = {
            side: SideProgram(
                side, commands[side], where_of(side, spec, note=note, needs_omb_py=False), spec.describe()
            )
            for side, spec in self.sides.items()
        }
        return ProgramsDesign(programs, reading, rules, launches, store, self.timeout_s, expected=expected)

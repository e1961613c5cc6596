"""Runs ``omb-py compare --run``: programs of the user's own, started in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from omb_py.cli.comparing import CompareOptions, show_report
from omb_py.cli.output import check_files
from omb_py.errors import UsageError
from omb_py.orchestrate.compare.side_environments import SideSpec, where_of
from omb_py.orchestrate.programs.command import SideProgram, parse_commands
from omb_py.orchestrate.programs.exchanged import parse_expected
from omb_py.orchestrate.programs.reading import reading_of
from omb_py.orchestrate.programs.session import ProgramsDesign, compare_programs
from omb_py.results.compare.match import Side
from omb_py.results.dialects.named_metrics import parse_metric


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """The options that are those of programs alone."""

    runs: Sequence[str]
    tool: str
    metrics: Sequence[str]
    expected: Sequence[str]
    timeout_s: float


def run_programs(
    words: Sequence[str], specs: Mapping[Side, SideSpec], programs: ProgramOptions, options: CompareOptions
) -> int:
    """Compare two programs, or one under two environments; the exit code."""
    check_files(options.output)
    if not programs.runs:
        raise UsageError("--read, --metric and --expect-library are of programs: say which with --run 'NEW: COMMAND'")
    if words:
        raise UsageError(f"unexpected word {words[0]!r} beside --run: a command with blanks needs quotes")
    for side, spec in specs.items():
        if spec.options:
            raise UsageError(f"--option {side}: …: options of a program stand in its command: --run '{side}: COMMAND'")
    commands = parse_commands(programs.runs)
    if commands["BASE"] == commands["NEW"] and specs["BASE"] == specs["NEW"]:
        raise UsageError(
            "nothing differs between the sides: give each its own --run, or --set, --env, --module or --pip for one"
        )

    def note(text: str) -> None:
        if not options.quiet:
            click.echo(f"omb-py: {text}", err=True)

    design = ProgramsDesign(
        {
            side: SideProgram(
                side, commands[side], where_of(side, spec, note=note, needs_omb_py=False), spec.describe()
            )
            for side, spec in specs.items()
        },
        reading_of(programs.tool, [parse_metric(text) for text in programs.metrics]),
        options.rules,
        options.launches,
        options.folder,
        programs.timeout_s,
        options.seed,
        parse_expected(programs.expected),
        quiet=options.quiet,
    )
    return show_report(compare_programs(design, options.resume), options)

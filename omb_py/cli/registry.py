"""The commands of ``omb-py`` that are no benchmarks: ours, and those of installed packages (``omb_py.commands``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from omb_py.plug_ins import PlugIns, load_plug_ins
from omb_py.suites.registry import home_of

if TYPE_CHECKING:
    import click

ENTRY_POINTS = "omb_py.commands"
TOOLS = "Tools"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of ``omb-py``: its line in the help, its options and its work.

    A package offers one under the entry-point group ``omb_py.commands``; this is all of ``omb-py greet``::

        import click
        from omb_py.plugin import Command

        def make() -> click.Command:
            name = click.Argument(["name"])
            return click.Command("greet", params=[name], callback=work, help="Say hello to somebody.")

        def work(name: str) -> int:
            click.echo(f"hello, {name}")
            return 0  # the exit code

        COMMAND = Command("greet", "say hello to somebody", make)

    An :class:`omb_py.plugin.OmbError` of the work is printed as one line, and its exit code is that of omb-py.
    """

    name: str
    summary: str
    """Its line in ``omb-py --help``."""
    make: Callable[[], click.Command]
    """Makes the click command with options, help page and work. It is called when the command is asked for."""
    group: str = TOOLS
    """Heading above its line in ``omb-py --help``."""


def _ours(name: str, maker: str, summary: str) -> Command:
    """Declare a command of :mod:`omb_py.cli.commands`; its module is imported when the command is asked for."""
    module, _, function = maker.partition(":")

    def make() -> click.Command:
        made: click.Command = getattr(import_module(f"omb_py.cli.commands.{module}"), function)()
        return made

    return Command(name, summary, make)


OURS: Mapping[str, Command] = {
    command.name: command
    for command in (
        _ours("list", "info:list_command", "all benchmarks, and where each of them can run"),
        _ours("explain", "info:explain_command", "what a benchmark does, what is timed, which formula"),
        _ours("doctor", "info:doctor_command", "what this machine can do, and what is missing"),
        _ours("expect", "info:expect_command", "what this machine should reach, and what results reached of it"),
        _ours("run", "suites:run_command", "measure a suite of benchmarks"),
        _ours("suite", "suites:group", "list, show and check suites"),
        _ours("workloads", "workloads:workloads_command", "calls of a training or inference step, with sources"),
        _ours("train", "train:train_command", "real training steps with PyTorch: how long they communicate"),
        _ours("replay", "train:replay_command", "measure the communication of a recorded step again"),
        _ours("compare", "compare:command", "is NEW slower than BASE? a verdict for each message size"),
        _ours("gate", "gate:command", "is a build slower? programs of a file, for a build server"),
        _ours("bisect", "bisect:command", "which commit made a program slower? git bisect by verdicts"),
        _ours("aa", "compare:aa_command", "a library against itself: how often compare errs here"),
        _ours("tune", "tune:command", "which setting of the library is fastest, by size, with proof"),
        _ours("accept", "accept:command", "acceptance test: run a suite and judge its criteria"),
        _ours("links", "links:command", "measure every pair of nodes, name slow links and nodes"),
        _ours("guidelines", "guidelines:command", "is a collective slower than others that do the same?"),
        _ours("knobs", "knobs:command", "what can be set in this communication library, and how"),
        _ours("results", "results.listing:group", "list, show, import, export and maintain stored results"),
        _ours("history", "history:history_command", "one benchmark over time or versions, and its changes"),
        _ours("model", "model:model_command", "latency and bandwidth as a fitted curve, more ranks"),
        _ours("report", "report:command", "one HTML file of what was measured and what is slower"),
        _ours("plot", "plot:command", "one picture for slides: who is fastest, with the crossover"),
        _ours("dashboard", "dashboard:command", "explore the results in a browser, on 127.0.0.1"),
        _ours("rehearse", "rehearse:command", "a command on several nodes that are this machine"),
        _ours("osu-names", "osu_names:command", "a folder of osu_latency, osu_bw, … for scripts made for OMB"),
        _ours("completion", "info:completion_command", "shell completion for bash, zsh and fish"),
    )
}
"""The commands that come with omb-py, in the order of its help."""


def commands() -> Mapping[str, Command]:
    """All commands by name, ours first."""
    return {**_plug_ins().loaded, **OURS}


def broken_commands() -> Mapping[str, str]:
    """Name of each command of an installed package that cannot be loaded -> why."""
    return _plug_ins().broken


def _plug_ins() -> PlugIns[Command]:
    return load_plug_ins(ENTRY_POINTS, Command, ours=_is_ours)


def _is_ours(name: str) -> bool:
    return name in OURS or bool(home_of(name))

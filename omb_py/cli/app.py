"""The command ``omb-py`` itself: its help, and click's errors as one line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from omb_py.cli.help import (
    ALL_EXIT_CODES,
    CONTEXT,
    ENVIRONMENT,
    Grouped,
    Helped,
    debug_option,
    write_options,
    write_sections,
)
from omb_py.cli.registry import OURS, TOOLS, broken_commands, commands
from omb_py.distribution import version_line
from omb_py.errors import OK, USAGE, EnvironmentProblem, Interrupted, UsageError, nearest
from omb_py.suites import BENCHMARKS, find, names
from omb_py.suites.registry import broken

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETE_VAR = "_OMB_PY_COMPLETE"


FAMILIES = {
    "pt2pt": "Point-to-point",
    "collective": "Collective",
    "non-blocking": "Non-blocking collective",
    "persistent": "Persistent collective",
    "neighborhood": "Neighborhood collective",
    "one-sided": "One-sided",
    "startup": "Start-up",
    "workload": "Workload",
    "host": "Host",
}
"""Families of benchmarks and their titles, in the order of help and ``omb-py list``."""

FIRST = (
    "omb-py doctor                 what this machine can do",
    "omb-py allreduce -n 4         start 4 ranks here and measure",
    "mpirun -n 4 omb-py allreduce  measure on ranks that a launcher starts",
    "omb-py latency --help         the options of a benchmark",
    "omb-py run quick              measure a suite of six benchmarks",
    "omb-py results list           what has been measured",
)


class Root(Helped, click.Group):
    """The group of all commands, each of which is made when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all benchmarks, then of all tools."""
        return [*names(), *commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command or a benchmark, with or without OMB's ``osu_``; None when there is no such thing."""
        if cmd_name in OURS:
            return OURS[cmd_name].make()
        short = cmd_name.lower().removeprefix("osu_")
        # our own names are tried first: those of other packages take time to find
        if short not in BENCHMARKS and short not in names() and short not in broken():
            if cmd_name in broken_commands():
                raise EnvironmentProblem(f"command {cmd_name} cannot be loaded: {broken_commands()[cmd_name]}")
            return commands()[cmd_name].make() if cmd_name in commands() else None
        from omb_py.cli.commands.benchmark import command  # not needed for --help, and loads the planner

        return command(find(cmd_name))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name from the tables; click's own way would make every command that fits."""
        from click.shell_completion import CompletionItem

        summaries = {name: find(name).summary for name in names()}
        summaries |= {name: command.summary for name, command in commands().items()}
        fits = [
            CompletionItem(name, help=summary) for name, summary in summaries.items() if name.startswith(incomplete)
        ]
        return [*fits, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, and name the nearest command in the error."""
        command = self.get_command(ctx, args[0])
        if command is None:
            from omb_py.results.dialects.registry import translate_line

            args = translate_line(args) or args
            command = self.get_command(ctx, args[0])
        name = args[0]
        if command is None and not ctx.resilient_parsing:
            if name.startswith("-"):
                raise click.NoSuchOption(name, ctx=ctx)
            if os.path.isdir(name):
                raise UsageError(
                    f"{name} is a folder: omb-py report {name} shows it, omb-py dashboard {name} explores it"
                )
            named = name.lower().removeprefix("osu_").removeprefix("xccl_")
            near = nearest(named, self.list_commands(ctx), 0.6, "see omb-py list and omb-py --help")
            raise UsageError(f"unknown benchmark or command {name!r}: {near}")
        return command.name if command else None, command, args[1:]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write how many benchmarks each family has and its first names, then the tools."""
        benchmarks = [find(name) for name in names()]
        with formatter.section(f"Benchmarks: {len(benchmarks)}. omb-py list names them all"):
            rows = []
            for family in dict.fromkeys([*FAMILIES, *(b.family for b in benchmarks)]):  # other packages may add some
                of_family = [b.name for b in benchmarks if b.family == family]
                if of_family:
                    rows.append((f"{FAMILIES.get(family, family)} ({len(of_family)})", _first_names(of_family)))
            formatter.write_dl(rows)
        groups: dict[str, list[tuple[str, str]]] = {TOOLS: []}
        for command in commands().values():
            groups.setdefault(command.group, []).append((command.name, command.summary))
        for group, lines in groups.items():
            with formatter.section(group):
                formatter.write_dl(lines, col_max=14)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what people type first, then commands, options, exit codes and variables."""
        write_sections((("Type first", [(line, "") for line in FIRST]),), formatter)
        self.format_commands(ctx, formatter)
        write_options(self.get_params(ctx), ctx, formatter)
        write_sections((("Exit codes", ALL_EXIT_CODES), ("Environment variables", ENVIRONMENT)), formatter)


def _first_names(of_family: Sequence[str]) -> str:
    """Names that fit into a line of the list, and an ellipsis where there are more."""
    shown = list(of_family)
    while len(text := ", ".join([*shown, *["…"] * (len(shown) < len(of_family))])) > 46 and len(shown) > 1:
        shown.pop()
    return text


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(version_line())
        ctx.exit()


ROOT = Root(
    "omb-py",
    params=[
        Grouped(
            ["-v", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version and exit.",
        ),
        debug_option(),
    ],
    context_settings=dict(CONTEXT),
    subcommand_metavar="BENCHMARK|COMMAND [OPTIONS]",
    options_metavar="",
    no_args_is_help=False,
    help="Communication benchmarks in Python, over MPI, NCCL and Gloo: the OSU Micro-Benchmarks (OMB) and more, "
    "every sample stored. Names may begin with osu_.",
)


def invoke(words: Sequence[str]) -> int:
    """Run the command line; the exit code of what was run. ``help NAME`` is ``NAME --help``.

    Raises:
        OmbError: an error whose text the user should read as one line.
    """
    instruction = os.environ.get(COMPLETE_VAR)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(ROOT, {}, "omb-py", COMPLETE_VAR, instruction)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        with ROOT.make_context("omb-py", list(words)) as ctx:
            if not words:
                click.echo(ROOT.get_help(ctx), err=True)
                return USAGE
            result = ROOT.invoke(ctx)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.Abort:
        raise Interrupted("interrupted") from None
    except click.UsageError as error:
        raise UsageError(usage_line(error, words)) from error
    except click.ClickException as error:
        raise EnvironmentProblem(error.format_message()) from error
    return result if isinstance(result, int) else OK


def usage_line(error: click.UsageError, words: Sequence[str]) -> str:
    """Click's usage error as one line, with the nearest choice or the help page to read."""
    ctx = error.ctx
    path = _path(ctx) if ctx else " ".join(["omb-py", *words[:1]])
    if isinstance(error, click.NoSuchOption):
        options = [name for param in (ctx.command.params if ctx else []) for name in _visible(param)]
        begin_so = [name for name in options if name.startswith(error.option_name) and name.startswith("--")]
        if len(begin_so) > 1:
            return f"{error.option_name} is short for several options: {', '.join(begin_so)}"
        if ctx is not None and ctx.parent is None and (first := _first_command(words)):
            return f"{error.option_name} stands behind the benchmark or command: omb-py {first} {error.option_name} …"
        long = [name.removeprefix("--") for name in options if name.startswith("--")]
        see = f"see {path} --help"
        near = nearest(error.option_name.removeprefix("--"), long, 0.55, see)
        near = near.replace("did you mean ", "did you mean --")
        return f"no such option {error.option_name}: {near if error.option_name.startswith('--') else see}"
    text = " ".join(error.format_message().rstrip(".").split())
    extra = re.search(r"^Got unexpected extra argument \((.+)\)$", text)
    if extra and all(map(_is_benchmark, (path.split()[-1], extra[1]))):
        return f"one benchmark a command: {extra[1]} is another; a suite measures several: omb-py run --help"
    stores = ctx is not None and any("--store" in param.opts for param in ctx.command.params)
    if extra and stores and os.path.isdir(extra[1]):
        return f"{extra[1]} is a folder: give it as --store {extra[1]}"
    return f"{text[:1].lower()}{text[1:]}: see {path} --help"


def _path(ctx: click.Context) -> str:
    """The command whose ``--help`` explains an error, such as ``omb-py results list``.

    A benchmark's line inside another command, as in ``compare … latency -W 4``, is that of the benchmark.
    """
    names, parent = [str(ctx.info_name)], ctx.parent
    while parent is not None and isinstance(parent.command, click.Group):
        names.insert(0, str(parent.info_name))
        parent = parent.parent
    return " ".join(names if names[0] == "omb-py" else ["omb-py", *names])


def _first_command(words: Sequence[str]) -> str:
    """The first word that is a benchmark or a command; empty: there is none."""
    return next((word for word in words if word in OURS or _is_benchmark(word)), "")


def _is_benchmark(word: str) -> bool:
    return word.lower().removeprefix("osu_") in BENCHMARKS


def _visible(param: click.Parameter) -> Iterable[str]:
    return () if getattr(param, "hidden", False) else param.opts

"""Click options, made from the entries of :mod:`omb_py.options.table`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import click

from omb_py.backends.registry import capabilities_of, default
from omb_py.cli.help import GluedOption, Grouped, ParsedType, debug_option, tool_option
from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.rank.launcher_variables import joined_environment
from omb_py.launchers.own_mpi import use_own_mpi
from omb_py.options.option import Defaults, Option, render
from omb_py.options.readers import Reader, whole, word
from omb_py.options.request import DEFAULT_RANKS, NEWEST
from omb_py.options.table import make_cell, option_of, options_of
from omb_py.suites import BENCHMARKS

RESUME_HELP = (
    "Resume a run that was killed: its id, the beginning of it, or nothing for the newest of this suite. "
    "Alone it takes the words that began the run. Cells that are in the store are not measured again. "
    "(default: a new run)"
)


def measuring_options(benchmark: Benchmark) -> list[click.Parameter]:
    """Every option of a measuring command. Those that the benchmark does not take are hidden and refused later."""
    return [measuring_option(option, benchmark) for option in options_of(benchmark)]


def measuring_option(option: Option, benchmark: Benchmark) -> Grouped:
    """One option of a measuring command, hidden where the benchmark does not take it."""
    if option.name == "debug":
        return debug_option(exposed=True)
    return _make_param(option, defaults_of(benchmark), not option.takes(benchmark))


@cache
def defaults_of(benchmark: Benchmark) -> Defaults:
    """What help pages say of a benchmark when no option is given."""
    known = capabilities_of()
    bindings = dict.fromkeys(binding for backend in known.values() for binding in backend.bindings)
    cell = make_cell(benchmark, default(), "native", 0)
    return Defaults(benchmark, tuple(known), tuple(bindings), cell)


def _make_param(option: Option, defaults: Defaults, hidden: bool = False) -> Grouped:
    if option.name == "debug":
        return debug_option()
    words = [*option.flags.split(), option.name]
    common: dict[str, Any] = {
        "heading": option.heading,
        "help": option.help_text(defaults),
        "hidden": hidden or option.hidden,
        "rare": option.rare,
    }
    if option.reader is None:
        return Grouped(words, is_flag=True, **common)
    choices = option.offers(defaults) if option.offers else option.reader.choices
    common |= {
        "metavar": option.metavar,
        "type": ParsedType(replace(option.reader, choices=choices)),
        "multiple": option.repeats or option.joins,
        "envvar": option.envvar or None,
    }
    if option.joins:
        common["callback"] = partial(_join, option.reader)
    if option.name == "own_mpi":
        common |= {"is_eager": True, "expose_value": False, "callback": _use_mpi}
    if option.is_glued:
        return GluedOption(words, option.bare, option.is_glued, **common)
    return Grouped(words, **common)


def _join(reader: Reader, ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> object:
    return reader.parse(",".join(filter(None, texts))) if texts else None


def _use_mpi(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    if path is not None and not ctx.resilient_parsing:
        use_own_mpi(joined_environment(os.environ) is not None, path)


def general_help(option: Option) -> str:
    """The sentence of an option on a page of no benchmark; where it depends on that, the longest."""
    takers = (benchmark for benchmark in BENCHMARKS.values() if option.takes(benchmark))
    return max((render(option.help, defaults_of(benchmark)) for benchmark in takers), key=len)


def table_option(name: str, heading: str = "", default: str | None = None) -> click.Option:
    """An option of the table for the page of a tool.

    Args:
        name: as in :func:`omb_py.options.table.option_of`.
        heading: where it stands on the page; empty: under the heading of the table.
        default: what the page says of the default; None: as for the first benchmark.
    """
    option = option_of(name)
    option = replace(option, heading=heading or option.heading, help=general_help(option))
    if default is not None:
        option = replace(option, default=default)
    return _make_param(option, defaults_of(next(iter(BENCHMARKS.values()))))


def store_is_given() -> bool:
    """Whether the command line names the store, and no default does."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source("store") is click.core.ParameterSource.COMMANDLINE


def backend_option(heading: str) -> click.Option:
    """``--backend`` of a tool, which takes one."""
    names = tuple(capabilities_of())
    text = f"Communication library: {', '.join(names)}."
    return tool_option(heading, "--backend NAME", text, word("backend", names, strict=False), default=default())


def ranks_option(heading: str, text: str = "Number of ranks.", unset: str = "") -> click.Option:
    """``-n N``, by default :data:`DEFAULT_RANKS`; with `unset` it has none, and help says `unset` in its place."""
    count = {} if unset else {"default": DEFAULT_RANKS}
    text = f"{text} (default: {unset or DEFAULT_RANKS})"
    return tool_option(heading, "-n --ranks N", text, whole("ranks", 1), **count)


def resume_option(text: str = RESUME_HELP) -> click.Option:
    """``--resume[=RUN]``, with the help `text`."""
    return GluedOption(["--resume"], NEWEST, bool, heading="Storage", metavar="RUN", help=text)

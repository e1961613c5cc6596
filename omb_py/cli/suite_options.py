"""The options of measuring commands as keys of a suite."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import click

from omb_py.cli.commands.benchmark import request_of
from omb_py.engine.program.benchmark import Benchmark
from omb_py.grammar.values import one_size
from omb_py.options.option import Option
from omb_py.options.request import Request, is_given
from omb_py.options.table import TABLE, options_of
from omb_py.orchestrate.suites.option_values import OptionKey, Values

RUN_WIDE = frozenset(option.long for option in TABLE if option.scope == "run")
"""Options that hold for a whole run: a suite may give them once, in its defaults."""
LINE_ONLY = frozenset(option.long for option in TABLE if option.scope == "line")
"""Options that say nothing about what is measured: they belong to the command line."""
RANKS = "ranks"
"""No key of an entry's options: an entry is measured once for each number of ranks (docs/suites.md)."""


class CommandLine:
    """The :class:`omb_py.orchestrate.suites.option_values.Vocabulary` of this version's commands."""

    def keys(self, benchmark: Benchmark) -> Mapping[str, OptionKey]:
        """The options of a benchmark by long name."""
        return _keys(benchmark)

    def request(self, benchmark: Benchmark, values: Values) -> Request:
        """The request of a command line with these options. Raises UsageError."""
        return request_of(benchmark, {option.name: values.get(option.long) for option in options_of(benchmark)})


def long_name(option: click.Option) -> str:
    """``message-size`` of ``-m, --message-size``."""
    return next(name for name in option.opts if name.startswith("--")).removeprefix("--")


def given(ctx: click.Context) -> dict[str, object]:
    """The options that a command line has given, by long name."""
    options = (param for param in ctx.command.params if isinstance(param, click.Option))
    values = {long_name(param): ctx.params.get(param.name or "") for param in options}
    return {name: value for name, value in values.items() if is_given(value)}


@cache
def _keys(benchmark: Benchmark) -> Mapping[str, OptionKey]:
    options = (option for option in options_of(benchmark) if option.name not in (RANKS, "debug"))
    return {option.long: _key(option, benchmark) for option in options}


def _key(option: Option, benchmark: Benchmark) -> OptionKey:
    if option.reader is None:
        return OptionKey(option.long, str, option.scope, option.takes(benchmark), bare=True, text=False)
    bare = option.reader.parse(option.bare) if option.bare else None
    fits = option.takes(benchmark)
    parse = one_size if option.name == "sizes" else option.reader.parse
    return OptionKey(option.long, parse, option.scope, fits, bare=bare, repeats=option.repeats)

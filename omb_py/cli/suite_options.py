"""The options of measuring commands as suites use them: taken from the options themselves, never listed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import click

from omb_py.backends.registry import own_options
from omb_py.cli.commands.benchmark import request_of
from omb_py.cli.help import GluedOption
from omb_py.cli.option_params import measuring_options
from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.suites.option_values import Key, Values

RUN_WIDE = frozenset({"tag", "timeout", "seed", "launches", "hosts", "launcher", "launcher-args"})
"""Options that hold for a whole run, as some of backends do: a suite may give them once, in its defaults."""
LINE_ONLY = frozenset({"store", "no-store", "format", "quiet", "debug", "inject"})
"""Options that say nothing about what is measured: they belong to the command line."""
RANKS = "ranks"
"""Not among the options of a suite: it multiplies them (docs/suites.md)."""


class CommandLine:
    """The :class:`omb_py.orchestrate.suites.option_values.Vocabulary` of this version's commands."""

    def keys(self, benchmark: Benchmark) -> Mapping[str, Key]:
        """The options of a benchmark by long name."""
        return {name: key for name, (key, _) in _options(benchmark).items()}

    def request(self, benchmark: Benchmark, values: Values) -> Request:
        """The request of a command line with these options. Raises UsageError."""
        options = _options(benchmark)
        parsed = {param.name: _absent(param) for _, param in options.values()}
        parsed["ranks"] = None
        parsed.update({options[name][1].name: value for name, value in values.items() if value is not None})
        return request_of(benchmark, parsed)


def long_name(option: click.Option) -> str:
    """``message-size`` of ``-m, --message-size``."""
    return next(name for name in option.opts if name.startswith("--")).removeprefix("--")


def given(ctx: click.Context) -> dict[str, Any]:
    """The options that a command line has given, by long name."""
    found: dict[str, Any] = {}
    for param in ctx.command.params:
        value = ctx.params.get(param.name or "")
        if isinstance(param, click.Option) and value not in (None, (), False):
            found[long_name(param)] = value
    return found


@cache
def _options(benchmark: Benchmark) -> Mapping[str, tuple[Key, click.Option]]:
    options = [
        param for param in measuring_options(benchmark) if isinstance(param, click.Option) and param.expose_value
    ]
    named = {long_name(option): option for option in options}
    return {name: (_key(name, option), option) for name, option in named.items() if name != RANKS}


def _key(name: str, option: click.Option) -> Key:
    read, own = _reader(option), own_options().get(name)
    bare: Any = True if option.is_flag else read(option.glued.bare) if isinstance(option, GluedOption) else None
    return Key(
        name,
        read,
        "run" if name in RUN_WIDE or (own and own.run_wide) else "line" if name in LINE_ONLY else "cell",
        fits=not option.hidden or name in LINE_ONLY,
        bare=bare,
        text=not option.is_flag,
        repeats=option.multiple,
    )


def _reader(option: click.Option) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return option.type.convert(text, option, None)
        except click.UsageError as error:  # of click's own types; ours raise UsageError themselves
            raise UsageError(error.format_message()) from None

    return read


def _absent(option: click.Option) -> Any:
    return () if option.multiple else False if option.is_flag else None

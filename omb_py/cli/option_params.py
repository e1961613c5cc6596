"""Click options, made from the entries of :mod:`omb_py.options.table`."""

from __future__ import annotations

from functools import cache
from typing import Any

import click

from omb_py.backends.registry import capabilities_of
from omb_py.cli.help import GluedOption, Grouped, debug_option
from omb_py.cli.param_types import Parsed, whole
from omb_py.engine.program.benchmark import Benchmark
from omb_py.options.option import Defaults, Option
from omb_py.options.request import DEFAULT_RANKS
from omb_py.options.table import option_of, options_of
from omb_py.suites import BENCHMARKS


def measuring_options(benchmark: Benchmark) -> list[click.Parameter]:
    """Every option of a measuring command. Those that the benchmark does not take are hidden and refused later."""
    defaults = _defaults(benchmark)
    return [
        debug_option(exposed=True)
        if option.name == "debug"
        else _rendered(option, defaults, not option.takes(benchmark))
        for option in options_of(benchmark)
    ]


def _defaults(benchmark: Benchmark) -> Defaults:
    known = capabilities_of()
    bindings = dict.fromkeys(binding for backend in known.values() for binding in backend.bindings)
    return Defaults(benchmark, tuple(known), tuple(bindings))


def _rendered(option: Option, defaults: Defaults, hidden: bool = False) -> click.Option:
    if option.name == "debug":
        return debug_option()
    words = [*option.flags.split(), option.name]
    common: dict[str, Any] = {
        "heading": option.heading,
        "help": option.help_text(defaults),
        "hidden": hidden or option.hidden,
    }
    if option.reader is None:
        return Grouped(words, is_flag=True, **common)
    choices = option.offers(defaults) if option.offers else option.reader.choices
    common |= {
        "metavar": option.metavar,
        "type": Parsed(option.reader.what, option.reader.parse, choices),
        "multiple": option.repeats,
        "envvar": option.envvar or None,
    }
    if option.is_glued:
        return GluedOption(words, option.bare, option.is_glued, **common)
    return Grouped(words, **common)


@cache
def _usual() -> Defaults:
    """Defaults for options of tools, whose help is the same for every benchmark."""
    return _defaults(next(iter(BENCHMARKS.values())))


def full_option() -> click.Option:
    """``-f``."""
    return _rendered(option_of("full"), _usual())


def tails_option() -> click.Option:
    """``-z``."""
    return _rendered(option_of("percentiles"), _usual())


def store_option(heading: str = "Storage") -> click.Option:
    """``--store DIR``."""
    option = _rendered(option_of("store"), _usual())
    assert isinstance(option, Grouped)
    option.heading = heading
    return option


def ranks_option(heading: str, text: str = "Number of ranks.", unset: str = "") -> click.Option:
    """``-n N``, by default :data:`DEFAULT_RANKS`; with `unset` it has none, and help says `unset` in its place."""
    count = {} if unset else {"default": DEFAULT_RANKS}
    return Grouped(
        ["-n", "--ranks"],
        heading=heading,
        metavar="N",
        type=whole("ranks", 1),
        help=f"{text} (default: {unset or DEFAULT_RANKS})",
        **count,
    )

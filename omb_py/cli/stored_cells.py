"""Options and helpers that the commands on stored cells share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from omb_py.cli.help import tool_option
from omb_py.errors import UsageError
from omb_py.options.readers import word
from omb_py.results.dialects.imb.names import benchmark_of
from omb_py.results.repro_command import storing
from omb_py.results.store.filters import parse_filters
from omb_py.results.store.paths import is_store
from omb_py.suites import BENCHMARKS

BENCHMARK_FIRST = {"benchmark": "the benchmark"}


def where_option(heading: str) -> click.Option:
    return tool_option(
        heading,
        "--where COLUMN=VALUE",
        "Only rows with this value, with tag=K=V of this tag, with date=FROM..TO of these days; repeat it for several. "
        "(default: all)",
        str,
        multiple=True,
    )


def format_option() -> click.Option:
    """``--format table|json``."""
    return tool_option(
        "Output", "--format form FORM", "table or json.", word("format", ("table", "json")), default="table"
    )


def filters(where: tuple[str, ...], arguments: Mapping[str, str] = BENCHMARK_FIRST) -> dict[str, Any]:
    """The filters of ``--where`` for :func:`omb_py.load`.

    Args:
        arguments: columns that the command takes as arguments -> what they are called.

    Raises:
        UsageError: a word is no filter, or names a column of `arguments`.
    """
    values = parse_filters(where)
    for column, what in arguments.items():
        if column in values:
            raise UsageError(f"{what} is an argument, not --where {column}=…")
    return values


def benchmark_name(command: str, word: str) -> str:
    """The name of a benchmark as stores have it, of our own, OMB's or IMB's. Raises UsageError on the folder of a
    store."""
    if is_store(word):
        raise UsageError(
            f"{word} is a folder; {command} takes a benchmark of it: omb-py {command} BENCHMARK --store {word} "
            f"({storing('omb-py results list', word)})"
        )
    name = word.lower().removeprefix("osu_")
    ours = benchmark_of(name)
    return name if ours is None or name in BENCHMARKS else ours


def skipped(path: Path, why: str) -> None:
    """Say on stderr that a file of the store was left out."""
    click.echo(f"omb-py: skipped {path}: {why}", err=True)

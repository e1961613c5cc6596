"""The tables of docs/cli.md, made from the commands and the option table.

``python -m tests.architecture.options_page`` writes them; test_options_page.py fails when they are out of date.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from omb_py.cli.app import ROOT
from omb_py.cli.help import ENVIRONMENT
from omb_py.cli.option_params import defaults_of, general_help
from omb_py.cli.registry import OURS
from omb_py.engine.program.benchmark import Benchmark
from omb_py.options.option import Option
from omb_py.options.table import TABLE
from omb_py.printing.writers.markdown import escaped
from omb_py.suites import BENCHMARKS
from tests.architecture.graph import ROOT as FOLDER
from tests.architecture.marked import replaced

PAGE = FOLDER / "docs" / "cli.md"
_OWN = {"--debug", "--help"}
"""Options of every command, which no table repeats."""


def takers(option: Option) -> list[Benchmark]:
    """The benchmarks that take an option."""
    return [benchmark for benchmark in BENCHMARKS.values() if option.takes(benchmark)]


def help_of(option: Option) -> str:
    """The sentence of the help page, without what it says of one benchmark alone."""
    text = general_help(option)
    alone = (f"; {benchmark.name} takes {benchmark.ranks.text}" for benchmark in takers(option))
    return next((text.replace(part, "") for part in alone if part in text), text)


def default_of(option: Option) -> str:
    """The default of the help page. Where it depends on the benchmark, that of most."""
    texts = Counter(option.default_text(defaults_of(benchmark)) for benchmark in takers(option))
    most = texts.most_common(1)[0][0]
    return most if len(texts) == 1 else f"mostly {most}"


def option_lists() -> str:
    """A list for each heading of a benchmark's help page."""
    headings: dict[str, list[str]] = {}
    for option in TABLE:
        if not option.hidden and f"--{option.long}" not in _OWN:
            default = "" if (text := default_of(option)) in {"off", "none"} else f" Default: {text}."
            line = f"- {code([*option.flags.split()], option.metavar)}: {help_of(option)}{default}"
            headings.setdefault(option.heading, []).append(line)
    return "\n\n".join("\n".join((f"### {heading}\n", *lines)) for heading, lines in headings.items())


def commands(ctx: click.Context | None = None) -> Iterator[tuple[str, click.Command]]:
    """All commands that are no benchmark, verbs of groups too: ``results list`` and its command."""
    for name in OURS:
        command = ROOT.get_command(click.Context(ROOT), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {verb}", inner) for verb, inner in command.commands.items())
        else:
            yield name, command


def tool_list() -> str:
    """A line for each command: what it does, and the names of its own options."""
    shared = {f"--{option.long}" for option in TABLE}
    lines = []
    for name, command in commands():
        params = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
        own = [code([p.opts[-1]], p.metavar or "") for p in params if not {*p.opts} & {*_OWN, *shared}]
        about = OURS[name].summary if name in OURS else re.split(r"(?<=[.:?])\s", command.help or "")[0].rstrip(".:")
        options = f" ({', '.join(own)})" if own else ""
        lines.append(f"- `omb-py {name}`: {about}{options}")
    return "\n".join(lines)


def code(flags: Sequence[str], metavar: str) -> str:
    """``-m``, ``--message-size SIZES`` in code spans."""
    *others, last = flags
    return ", ".join(f"`{text}`" for text in [*others, f"{last} {metavar}".strip()])


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of cells that are escaped."""
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def parts() -> Mapping[str, str]:
    """The parts of the page that are made, by the name in their markers."""
    variables = [(f"`{name}`", escaped(meaning)) for name, meaning in ENVIRONMENT]
    return {
        "options of benchmarks": option_lists(),
        "options of commands": tool_list(),
        "variables": table(("variable", "use"), variables),
    }


def page(text: str) -> str:
    """The page with its tables made anew."""
    for name, part in parts().items():
        text = replaced(text, name, "tests.architecture.options_page", part)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

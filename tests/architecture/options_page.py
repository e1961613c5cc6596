"""The tables of docs/cli.md, made from the commands and the option table.

``python -m tests.architecture.options_page`` writes them; test_options_page.py fails when they are out of date.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from omb_py.cli.app import FAMILIES, ROOT, TOOLS
from omb_py.cli.help import ENVIRONMENT
from omb_py.cli.option_params import defaults_of, general_help
from omb_py.engine.program.benchmark import Benchmark
from omb_py.options.option import Option, render
from omb_py.options.table import TABLE
from omb_py.printing.writers.markdown import escaped
from omb_py.suites import BENCHMARKS
from tests.architecture.graph import ROOT as FOLDER
from tests.architecture.marked import replaced

PAGE = FOLDER / "docs" / "cli.md"
NAMED = 6
"""Most benchmarks that a row names."""
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
    return most if len(texts) == 1 else f"the benchmark's, mostly {most}"


def taken_by(option: Option) -> str:
    """Which benchmarks take an option, in words; empty: all."""
    names = [benchmark.name for benchmark in takers(option)]
    if len(names) == len(BENCHMARKS):
        return ""
    if len(names) <= NAMED:
        return ", ".join(names)
    if option.lacks:
        return f"with {option.lacks}"
    families = {benchmark.family for benchmark in takers(option)}
    return ", ".join(title.lower() for family, title in FAMILIES.items() if family in families)


def measuring_tables() -> str:
    """A table for each heading of a benchmark's help page."""
    headings: dict[str, list[list[str]]] = {}
    for option in TABLE:
        if not option.hidden and f"--{option.long}" not in _OWN:
            spelled = code([*option.flags.split()], option.metavar)
            row = [spelled, escaped(help_of(option)), escaped(default_of(option)), escaped(taken_by(option))]
            headings.setdefault(option.heading, []).append(row)
    return "\n\n".join(
        f"### {heading}\n{table(('option', 'meaning', 'default', 'benchmarks that take it (empty: all)'), rows)}"
        for heading, rows in headings.items()
    )


def commands(ctx: click.Context | None = None) -> Iterator[tuple[str, click.Command]]:
    """All commands that are no benchmark, verbs of groups too: ``results list`` and its command."""
    for name in TOOLS:
        command = ROOT.get_command(click.Context(ROOT), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {verb}", inner) for verb, inner in command.commands.items())
        else:
            yield name, command


def tool_tables() -> str:
    """For each command what it does, its own options, and the names of those that it shares with benchmarks."""
    shared = {option.long: option for option in TABLE}
    parts = []
    for name, command in commands():
        own: list[list[str]] = []
        benchmarks: list[Option] = []
        for param in command.params:
            if not isinstance(param, click.Option) or param.hidden or _OWN & {*param.opts}:
                continue
            long = next(opt for opt in param.opts if opt.startswith("--"))
            option = shared.get(long.removeprefix("--"))
            if option is not None and is_same(param, option):
                benchmarks.append(option)
            else:
                own.append([code(param.opts, param.metavar or ""), escaped(param.help or "")])
        about = (command.help or "").partition("\n\n")[0]
        blocks = [f"### omb-py {name}\n{escaped(about)}"]
        if own:
            blocks.append(table(("option", "meaning"), own))
        if benchmarks:
            blocks.append(_also(benchmarks))
        parts.append("\n\n".join(blocks))
    return "\n\n".join(parts)


def _also(options: Sequence[Option]) -> str:
    """The options that a command shares with benchmarks, or those of benchmarks that it does not have."""
    known = [option for option in TABLE if not option.hidden and f"--{option.long}" not in _OWN]
    rest = [option for option in known if option not in options]
    text = "Options of benchmarks that it takes too"
    if len(rest) >= len(options):
        return f"{text}: {_names(options)}."
    return f"{text}: all but {_names(rest)}." if rest else f"{text}: all."


def _names(options: Iterable[Option]) -> str:
    return ", ".join(f"`--{option.long}`" for option in options)


def is_same(param: click.Option, option: Option) -> bool:
    """Whether a command's option is a benchmark's, with the help that some benchmark shows."""
    text = (param.help or "").partition("(default:")[0].rstrip()
    helps = {render(option.help, defaults_of(benchmark)) for benchmark in takers(option)}
    return text in helps or text == help_of(option)


def code(flags: Sequence[str], metavar: str) -> str:
    """``-m``, ``--message-size SIZES`` in code spans, for a cell of a table."""
    *others, last = flags
    value = f" {metavar}" if metavar else ""
    return ", ".join(f"`{text}`" for text in [*others, last + value.replace("|", "\\|")])


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of cells that are escaped."""
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def summary() -> str:
    """A line for each command, as ``omb-py --help`` has it."""
    rows = [("`omb-py BENCHMARK`", "measure"), *((f"`omb-py {name}`", tool.summary) for name, tool in TOOLS.items())]
    return table(("command", "what it does"), [(name, escaped(text)) for name, text in rows])


def parts() -> Mapping[str, str]:
    """The parts of the page that are made, by the name in their markers."""
    variables = [(f"`{name}`", escaped(meaning)) for name, meaning in ENVIRONMENT]
    return {
        "commands": summary(),
        "options of benchmarks": measuring_tables(),
        "options of commands": tool_tables(),
        "variables": table(("variable", "use"), variables),
    }


def page(text: str) -> str:
    """The page with its tables made anew."""
    for name, part in parts().items():
        text = replaced(text, name, "tests.architecture.options_page", part)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
